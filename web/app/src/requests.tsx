// Requests to be friends, and to follow a locked user: those that wait for the viewer, and those that the viewer has sent.
import { useState } from 'react';
import { useMutation, useQuery } from 'urql';
import * as gql from './gql';
import { Endless, FollowButton, Row, nodesOf } from './people';
import { Link } from './router';
import { Age, Empty, PageTitle, Skeleton, present, report } from './ui';

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
      ) : kind.startsWith('Friend') ? (
        <Endless
          key={kind}
          document={gql.RequestsDocument}
          variables={{ direction }}
          pick={data => nodesOf(data.viewer?.friendRequests)}
          id={request => request.id}
          keep={request => request.state === 'PENDING'}
          row={request => <RequestRow request={request} received={received} />}
          label="requests"
          empty={<Empty icon="inbox" title={received ? 'No friend requests.' : 'You haven’t sent any friend requests.'} />}
        />
      ) : (
        <Endless
          key={kind}
          document={gql.FollowRequestsDocument}
          variables={{ direction }}
          pick={data => data.viewer?.followRequests && { items: present(data.viewer.followRequests.edges), pageInfo: data.viewer.followRequests.pageInfo }}
          id={edge => edge.node?.id ?? ''}
          keep={edge => !!edge.node?.viewerRelationship?.[received ? 'followRequestedBy' : 'followRequested']}
          row={edge => <Row person={edge.node!} note={<Age at={edge.requestedAt} />} actions={received ? <FollowRequest person={edge.node!} /> : <FollowButton person={edge.node!} />} />}
          label="requests"
          empty={
            received ? (
              <Empty icon="inbox" title="No follow requests.">
                Approve followers in the <Link to="/settings">settings</Link>, and their requests appear here.
              </Empty>
            ) : (
              <Empty icon="inbox" title="You haven’t sent any follow requests." />
            )
          }
        />
      )}
    </>
  );
}

/** Accepts or declines somebody who waits to follow the viewer. */
export function FollowRequest({ person }: { person: gql.PersonFragment }) {
  const [, accept] = useMutation(gql.AcceptFollowRequestDocument);
  const [, decline] = useMutation(gql.DeclineFollowRequestDocument);
  const userId = person.id;
  return (
    <>
      <button type="button" className="button primary" aria-label={`Let ${person.name} follow you`} onClick={() => report(accept({ userId }), 'Request accepted.')}>
        Accept
      </button>
      <button type="button" className="button" aria-label={`Do not let ${person.name} follow you`} onClick={() => report(decline({ userId }), 'Request declined.')}>
        Decline
      </button>
    </>
  );
}

/** Accepts or declines somebody who wants to be friends with the viewer. */
export function FriendRequest({ person }: { person: gql.PersonFragment }) {
  const [, accept] = useMutation(gql.AcceptFriendDocument);
  const [, decline] = useMutation(gql.DeclineFriendDocument);
  const userId = person.id;
  return (
    <>
      <button type="button" className="button primary" aria-label={`Accept ${person.name}`} onClick={() => report(accept({ userId }), `You and ${person.name} are now friends.`)}>
        Accept
      </button>
      <button type="button" className="button" aria-label={`Decline ${person.name}`} onClick={() => report(decline({ userId }), 'Request declined.')}>
        Decline
      </button>
    </>
  );
}

function RequestRow({ request, received }: { request: gql.RequestFragment; received: boolean }) {
  const [, cancel] = useMutation(gql.CancelFriendRequestDocument);
  const person = received ? request.from : request.to;
  if (!person) return null;
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
          <FriendRequest person={person} />
        ) : (
          <button type="button" className="button" aria-label={`Withdraw the request to ${person.name}`} onClick={() => report(cancel({ userId: person.id }), 'Request withdrawn.')}>
            Withdraw
          </button>
        )
      }
    />
  );
}
