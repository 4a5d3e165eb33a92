// Lists that only the viewer sees: marked follows, and users whom the viewer blocks, mutes, or does not want suggested.
import { useState, type ReactNode } from 'react';
import { useMutation } from 'urql';
import { BlockedDocument, DismissedDocument, MarkedDocument, MutedDocument, UnblockDocument, UndismissSuggestionDocument, UnmuteDocument, type MuteScope, type PersonFragment } from './gql';
import { PeopleList, Row, pageOf } from './people';
import { Empty, PageTitle, day, report } from './ui';

export function Marked() {
  return (
    <>
      <PageTitle title="Marked" />
      <p className="quiet">People you have marked. Only you can see this list.</p>
      <PeopleList
        document={MarkedDocument}
        filtered
        variables={{ filter: { special: true } }}
        pick={data => pageOf(data.viewer?.user.list)}
        label="marked people"
        row={person => <Row person={person} note={person.viewerRelationship?.remark ?? undefined} />}
        empty={<Empty icon="mark" title="No one is marked yet.">You can mark people you follow on their profiles.</Empty>}
      />
    </>
  );
}

/** Somebody, with a button that takes the viewer's choice back. */
export function Undo({ person, note, text, undo }: { person: PersonFragment; note?: ReactNode; text: string; undo: () => void }) {
  return (
    <Row
      person={person}
      note={note}
      actions={
        <button type="button" className="button" aria-label={`${text}: ${person.name}`} onClick={undo}>
          {text}
        </button>
      }
    />
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
        pick={data => pageOf(data.viewer?.list)}
        keep={person => person.viewerRelationship?.blocking !== false}
        label="blocked people"
        row={person => <Undo text="Unblock" person={person} undo={() => report(unblock({ userId: person.id }), `You unblocked ${person.name}.`)} />}
        empty={<Empty icon="check" title="You haven’t blocked anyone." />}
      />
    </>
  );
}

export const scopes: readonly [MuteScope, string][] = [
  ['EVERYTHING', 'Posts, suggestions and search'],
  ['POSTS', 'Posts only'],
];

export function Muted() {
  const [scope, setScope] = useState<MuteScope>('EVERYTHING');
  const [, unmute] = useMutation(UnmuteDocument);
  return (
    <>
      <PageTitle title="Muted" />
      <p className="quiet">People aren’t told that you muted them, and you keep following them.</p>
      <div className="tabs" role="group" aria-label="What is muted">
        {scopes.map(([one, text]) => (
          <button key={one} type="button" aria-pressed={scope === one} onClick={() => setScope(one)}>
            {text}
          </button>
        ))}
      </div>
      <PeopleList
        key={scope}
        document={MutedDocument}
        variables={{ scope }}
        pick={data => pageOf(data.viewer?.list)}
        keep={person => !!person.viewerRelationship?.muted}
        label="muted people"
        row={person => (
          <Undo
            text="Unmute"
            person={person}
            note={person.viewerRelationship?.mutedUntil && `until ${day(person.viewerRelationship.mutedUntil)}`}
            undo={() => report(unmute({ userId: person.id }), `You unmuted ${person.name}.`)}
          />
        )}
        empty={<Empty icon="check" title="You haven’t muted anyone." />}
      />
    </>
  );
}

export function Dismissed() {
  const [, undismiss] = useMutation(UndismissSuggestionDocument);
  return (
    <>
      <PageTitle title="Dismissed suggestions" />
      <p className="quiet">You dismissed these people. They won’t be suggested for 180 days after that.</p>
      <PeopleList
        document={DismissedDocument}
        variables={{}}
        pick={data => pageOf(data.viewer?.list)}
        label="dismissed suggestions"
        row={person => <Undo text="Suggest again" person={person} undo={() => report(undismiss({ userId: person.id }), `${person.name} may be suggested to you again.`)} />}
        empty={<Empty icon="check" title="You haven’t dismissed anyone." />}
      />
    </>
  );
}
