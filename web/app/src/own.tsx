// Lists that only the viewer sees: marked follows, and blocked users.
import { useMutation } from 'urql';
import { BlockedDocument, MarkedDocument, UnblockDocument } from './gql';
import { PeopleList, Row, pageOf } from './people';
import { Empty, PageTitle, report } from './ui';

export function Marked() {
  return (
    <>
      <PageTitle title="Marked" />
      <p className="quiet">People who are special to you. Only you see these marks.</p>
      <PeopleList
        document={MarkedDocument}
        variables={{}}
        pick={data => pageOf(data.viewer?.user.list)}
        label="marked people"
        row={person => <Row person={person} note={person.viewerRelationship?.remark ?? undefined} />}
        empty={<Empty icon="mark" title="Nobody is marked yet.">Mark somebody you follow on their profile.</Empty>}
      />
    </>
  );
}

export function Blocked() {
  const [, unblock] = useMutation(UnblockDocument);
  return (
    <>
      <PageTitle title="Blocked" />
      <PeopleList
        document={BlockedDocument}
        variables={{}}
        pick={data => {
          const page = pageOf(data.viewer?.list);
          return page && { ...page, items: page.items.filter(person => person.viewerRelationship?.blocking !== false) };
        }}
        label="blocked people"
        row={person => (
          <Row
            person={person}
            actions={
              <button type="button" className="button" aria-label={`Unblock ${person.name}`} onClick={() => report(unblock({ userId: person.id }), `You have unblocked ${person.name}.`)}>
                Unblock
              </button>
            }
          />
        )}
        empty={<Empty icon="check" title="You block nobody." />}
      />
    </>
  );
}
