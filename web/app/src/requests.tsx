// Friend requests: those that wait for the viewer, and those that the viewer has sent.
import { useState } from 'react';
import { useMutation } from 'urql';
import { AcceptFriendDocument, CancelFriendRequestDocument, DeclineFriendDocument, RequestsDocument, type FriendRequestDirection, type RequestFragment } from './gql';
import { Endless, Row } from './people';
import { Age, Empty, PageTitle, present, report } from './ui';

export function Requests() {
  const [direction, setDirection] = useState<FriendRequestDirection>('RECEIVED');
  return (
    <>
      <PageTitle title="Requests" />
      <div className="tabs" role="group" aria-label="Which requests">
        <button type="button" aria-pressed={direction === 'RECEIVED'} onClick={() => setDirection('RECEIVED')}>
          To you
        </button>
        <button type="button" aria-pressed={direction === 'SENT'} onClick={() => setDirection('SENT')}>
          From you
        </button>
      </div>
      <Endless
        key={direction}
        document={RequestsDocument}
        variables={{ direction }}
        pick={data => {
          const page = data.viewer?.friendRequests;
          return page ? { items: present(page.nodes), pageInfo: page.pageInfo } : null;
        }}
        id={request => request.id}
        keep={request => request.state === 'PENDING'}
        row={request => <RequestRow request={request} received={direction === 'RECEIVED'} />}
        label="requests"
        empty={<Empty icon="inbox" title={direction === 'RECEIVED' ? 'Nobody waits for you.' : 'You wait for nobody.'} />}
      />
    </>
  );
}

function RequestRow({ request, received }: { request: RequestFragment; received: boolean }) {
  const [, accept] = useMutation(AcceptFriendDocument);
  const [, decline] = useMutation(DeclineFriendDocument);
  const [, cancel] = useMutation(CancelFriendRequestDocument);
  const person = received ? request.from : request.to;
  if (!person) return null;
  const answer = (change: typeof accept | typeof decline | typeof cancel, good: string) => () => report(change({ userId: person.id }), good);
  return (
    <Row
      person={person}
      note={
        <>
          {request.message && <>“{request.message}” · </>}
          <Age at={request.updatedAt} />
        </>
      }
      actions={
        received ? (
          <>
            <button type="button" className="button primary" aria-label={`Accept ${person.name}`} onClick={answer(accept, `${person.name} and you are friends now.`)}>
              Accept
            </button>
            <button type="button" className="button" aria-label={`Decline ${person.name}`} onClick={answer(decline, 'Request declined.')}>
              Decline
            </button>
          </>
        ) : (
          <button type="button" className="button" aria-label={`Withdraw the request to ${person.name}`} onClick={answer(cancel, 'Request withdrawn.')}>
            Withdraw
          </button>
        )
      }
    />
  );
}
