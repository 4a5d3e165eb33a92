// Requests to be friends, and to follow a locked user: those that wait for the viewer, and those that the viewer has sent.
import { useState } from 'react';
import { useMutation, useQuery } from 'urql';
import * as gql from './gql';
import { Endless, Row, nodesOf } from './people';
import { Link } from './router';
import { Age, Empty, PageTitle, Skeleton, report } from './ui';

const kinds = ['Friend requests', 'Follow requests', 'Friend requests sent', 'Follow requests sent'] as const;

export function Requests() {
  const [{ data, fetching }] = useQuery({ query: gql.ViewerDocument });
  const waiting = [data?.viewer?.friendRequests?.totalCount, data?.viewer?.followRequests?.totalCount];
  const [chosen, setKind] = useState<(typeof kinds)[number]>();
  // The page begins where something waits, and stays there.
  if (!chosen && data) setKind(kinds[!waiting[0] && waiting[1] ? 1 : 0]);
  const kind = chosen ?? kinds[0];
  const received = !kind.endsWith('sent');
  const direction = received ? 'RECEIVED' : 'SENT';
  return (
    <>
      <PageTitle title="Requests" />
      <div className="tabs" role="group" aria-label="Which requests">
        {kinds.map((one, i) => (
          <button key={one} type="button" aria-pressed={kind === one} data-waiting={waiting[i] || undefined} onClick={() => setKind(one)}>
            {one}
          </button>
        ))}
      </div>
      {!chosen && fetching ? (
        <Skeleton />
      ) : (
        <Endless
          key={kind}
          document={gql.RequestsDocument}
          variables={{ kind: kind.startsWith('Friend') ? 'FRIEND' : 'FOLLOW', direction }}
          pick={data => nodesOf(data.viewer?.requests)}
          id={request => request.id}
          keep={request => request.state === 'PENDING'}
          row={request => <RequestRow request={request} received={received} />}
          label="requests"
          empty={
            kind === 'Follow requests' ? (
              <Empty icon="inbox" title="No follow requests.">
                Approve followers in the <Link to="/settings">settings</Link>, and their requests appear here.
              </Empty>
            ) : (
              <Empty icon="inbox" title={received ? 'No friend requests.' : `You haven’t sent any ${kind.replace(' sent', '').toLowerCase()}.`} />
            )
          }
        />
      )}
    </>
  );
}

/** Accepts or declines somebody who waits to follow the viewer. */
export function FollowRequest({ person }: { person: gql.PersonFragment }) {
  const [, accept] = useMutation(gql.AcceptRequestDocument);
  const [, decline] = useMutation(gql.DeclineRequestDocument);
  const request = { kind: 'FOLLOW', userId: person.id } as const;
  return (
    <>
      <button type="button" className="button primary" aria-label={`Let ${person.name} follow you`} onClick={() => report(accept(request), 'Request accepted.')}>
        Accept
      </button>
      <button type="button" className="button" aria-label={`Do not let ${person.name} follow you`} onClick={() => report(decline(request), 'Request declined.')}>
        Decline
      </button>
    </>
  );
}

/** Accepts or declines somebody who wants to be friends with the viewer. */
export function FriendRequest({ person }: { person: gql.PersonFragment }) {
  const [, accept] = useMutation(gql.AcceptRequestDocument);
  const [, decline] = useMutation(gql.DeclineRequestDocument);
  const request = { kind: 'FRIEND', userId: person.id } as const;
  return (
    <>
      <button type="button" className="button primary" aria-label={`Accept ${person.name}`} onClick={() => report(accept(request), `You and ${person.name} are now friends.`)}>
        Accept
      </button>
      <button type="button" className="button" aria-label={`Decline ${person.name}`} onClick={() => report(decline(request), 'Request declined.')}>
        Decline
      </button>
    </>
  );
}

function RequestRow({ request, received }: { request: gql.RequestFragment; received: boolean }) {
  const [, cancel] = useMutation(gql.WithdrawRequestDocument);
  const person = received ? request.from : request.to;
  if (!person) return null;
  const Answer = request.kind === 'FRIEND' ? FriendRequest : FollowRequest;
  return (
    <Row
      person={person}
      reason={
        <>
          {request.message && <span>“{request.message}”</span>}
          <Age at={request.updatedAt} />
        </>
      }
      actions={
        received ? (
          <Answer person={person} />
        ) : (
          <button type="button" className="button" aria-label={`Withdraw the request to ${person.name}`} onClick={() => report(cancel({ kind: request.kind, userId: person.id }), 'Request withdrawn.')}>
            Withdraw
          </button>
        )
      }
    />
  );
}
