// People: faces, names, rows, the follow button, and lists that continue as one scrolls.
import { memo, useEffect, useState, type ReactNode } from 'react';
import { useMutation, useQuery, type AnyVariables, type TypedDocumentNode } from 'urql';
import { FollowDocument, UnfollowDocument, type MoreFragment, type OutcomeFragment, type PersonFragment } from './gql';
import { Link } from './router';
import { askToSignIn, useSession } from './session';
import { Dialog, Failure, Sentinel, Skeleton, present, report, sentence, tell, useSettled } from './ui';

type Faced = { id: string; avatarUrl: string | null };

/** The address of a picture from this gateway, or else of a face that it draws: the page loads nothing from elsewhere. */
export const faceOf = (of: Faced) => /\/faces\/\d+\.svg$/.exec(of.avatarUrl ?? '')?.[0] ?? `/faces/${of.id}.svg`;

export function Face({ of, size = 44 }: { of: Faced; size?: number }) {
  return <img className="face" src={faceOf(of)} width={size} height={size} alt="" loading="lazy" decoding="async" />;
}

export function FollowButton({ person }: { person: PersonFragment }) {
  const session = useSession();
  const [, follow] = useMutation(FollowDocument);
  const [, unfollow] = useMutation(UnfollowDocument);
  const [asking, setAsking] = useState(false);
  const relation = person.viewerRelationship;
  if (!session) {
    return (
      <button type="button" className="button follow primary" aria-label={`Follow: ${person.name}`} onClick={() => askToSignIn(`Sign in to follow ${person.name}`)}>
        {person.locked ? 'Request to follow' : 'Follow'}
      </button>
    );
  }
  if (!relation || relation.blockedBy || session.userId === person.id) return null;
  const { following, followedBy, followRequested } = relation;
  const text = following ? (followedBy ? 'Friends' : 'Following') : followRequested ? 'Requested' : person.locked ? 'Request to follow' : followedBy ? 'Follow back' : 'Follow';
  const change = () => {
    setAsking(false);
    void report((following || followRequested ? unfollow : follow)({ userId: person.id }), person.locked && !following && !followRequested ? `Request sent to ${person.name}.` : undefined);
  };
  return (
    <>
      <button
        type="button"
        className={`button follow ${following || followRequested ? 'on' : 'primary'}`}
        aria-label={`${text}: ${person.name}`}
        title={following ? `Unfollow ${person.name}` : followRequested ? 'Withdraw your request' : undefined}
        data-following={following}
        onClick={() => (following && (followedBy || person.locked) ? setAsking(true) : change())}
      >
        {text}
      </button>
      {asking && (
        <Dialog title={`Unfollow ${person.name}?`} close={() => setAsking(false)}>
          <p>
            {followedBy && 'You’ll no longer be friends. '}
            {person.locked && `To follow ${person.name} again, you’ll need their approval.`}
          </p>
          <div className="bar">
            <button type="button" className="button danger" onClick={change}>
              Unfollow
            </button>
            <button type="button" className="button" onClick={() => setAsking(false)}>
              Keep following
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}

/** Says what has become of follows of several people. One that has to be approved is no follow yet. */
export function tellFollowed(outcomes: readonly OutcomeFragment[]) {
  const counts = { followed: 0, already: 0, private: 0, refused: 0 };
  for (const { changed, relationship, error } of outcomes) counts[error ? 'refused' : relationship?.followRequested ? 'private' : changed ? 'followed' : 'already']++;
  const why = outcomes.find(({ error }) => error)?.error?.message;
  const others = [
    counts.already && `${counts.already} you followed before`,
    counts.private && `${counts.private} ${counts.private === 1 ? 'has' : 'have'} to approve you`,
    counts.refused && `${counts.refused} could not be followed: ${why}`,
  ].filter(Boolean);
  tell(`You now follow ${counts.followed} more ${counts.followed === 1 ? 'person' : 'people'}.${others.length ? ` ${others.join(', ')}.` : ''}`);
}

type RowProps = { person: PersonFragment & { bio?: string | null }; note?: ReactNode; reason?: ReactNode; actions?: ReactNode };

/** One person in a list. A reason why the person is there has the width of the row, below the bio. */
export const Row = memo(function Row({ person, note, reason, actions }: RowProps) {
  const relation = person.viewerRelationship;
  const about = (note ?? person.bio) && <span className="note-line quiet">{note ?? person.bio}</span>;
  return (
    <div className="row" data-user={person.handle}>
      <Link to={`/u/${person.handle}`} className="who" aria-label={person.name}>
        <Face of={person} />
      </Link>
      <div className="lines">
        <Link to={`/u/${person.handle}`} className="name">
          {person.name}
        </Link>
        <span className="quiet handle">
          @{person.handle}
          {!reason && relation?.followedBy && !relation.following && <span className="tag">follows you</span>}
        </span>
        {!reason && about}
      </div>
      {reason && (
        <div className="below">
          {about}
          <span className="reason quiet">{reason}</span>
        </div>
      )}
      <div className="row-actions">{actions ?? <FollowButton person={person} />}</div>
    </div>
  );
});

/** Faces beside one another, and a sentence. */
export function Faces({ of, children }: { of: readonly { id: string; avatarUrl: string | null }[]; children: ReactNode }) {
  return (
    <span className="faces">
      <span className="stack">
        {of.map(one => (
          <Face key={one.id} of={one} size={24} />
        ))}
      </span>
      <span>{children}</span>
    </span>
  );
}

export type Page<T> = { items: readonly T[]; pageInfo: MoreFragment; total?: number };

type EndlessProps<Data, Variables extends AnyVariables, T> = {
  document: TypedDocumentNode<Data, Variables>;
  variables: Omit<NonNullable<Variables>, 'after'>;
  /** The page in an answer; null if the viewer may not see it. */
  pick: (data: Data) => Page<T> | null | undefined;
  id: (item: T) => string;
  row: (item: T) => ReactNode;
  /** Which of the items to show. */
  keep?: (item: T) => boolean;
  empty: ReactNode;
  closed?: ReactNode;
  label: string;
};

// A filter reads so many pages by itself; then the user has to ask for more.
const pagesAtOnce = 40;

/**
 * A list that continues as one scrolls. Each page is a query of its own, from the cursor where the page before ends. If that one is read again
 * and ends elsewhere, the next one begins there: nothing is lost between them, or there twice.
 */
export function Endless<Data, Variables extends AnyVariables, T>(props: EndlessProps<Data, Variables, T>) {
  const [cursors, setCursors] = useState<(string | null)[]>([null]);
  const [most, setMost] = useState(pagesAtOnce);
  const [shown, setShown] = useState<Record<number, number>>({});
  const [ended, setEnded] = useState(false);
  const rows = cursors.reduce((sum, _, i) => sum + (shown[i] ?? 0), 0);
  const enough = cursors.length >= most;
  return (
    <div className="list">
      {cursors.map((after, i) => (
        <EndlessPage
          key={i}
          {...props}
          after={after}
          first={i === 0}
          last={i === cursors.length - 1}
          onRows={n => setShown(now => (now[i] === n ? now : { ...now, [i]: n }))}
          onEnd={setEnded}
          onNext={next => setCursors(now => (i + 1 >= now.length || now[i + 1] === next ? now : next ? now.map((one, at) => (at === i + 1 ? next : one)) : now.slice(0, i + 1)))}
          more={enough ? undefined : cursor => setCursors(now => (now.includes(cursor) ? now : [...now, cursor]))}
        />
      ))}
      {ended && rows === 0 && props.empty}
      {enough && !ended && (
        <button type="button" className="button" onClick={() => setMost(most + pagesAtOnce)}>
          Load more
        </button>
      )}
    </div>
  );
}

type EndlessPageProps<Data, Variables extends AnyVariables, T> = EndlessProps<Data, Variables, T> & {
  after: string | null;
  first: boolean;
  last: boolean;
  more?: (cursor: string) => void;
  onRows: (n: number) => void;
  onEnd: (end: boolean) => void;
  onNext: (cursor: string | null) => void;
};

function EndlessPage<Data, Variables extends AnyVariables, T>(props: EndlessPageProps<Data, Variables, T>) {
  const { document, variables, pick, id, row, keep, after, first, last, more, onRows, onEnd, onNext, closed, label } = props;
  const [{ data, error, fetching }, ask] = useQuery<Data, AnyVariables>({
    query: document as TypedDocumentNode<Data, AnyVariables>,
    variables: { ...variables, after },
    requestPolicy: 'cache-and-network',
  });
  const page = data ? (pick(data) ?? null) : undefined;
  const items = page ? (keep ? page.items.filter(keep) : page.items) : [];
  const end = !!page && !page.pageInfo.hasNextPage;
  const next = page?.pageInfo.hasNextPage ? page.pageInfo.endCursor : null;
  useEffect(() => onRows(items.length), [items.length]);
  // A list that has been closed meanwhile has no end, and no further pages.
  useEffect(() => {
    if (data && last) onEnd(end);
  }, [!!data, last, end]);
  useEffect(() => {
    if (data) onNext(next);
  }, [!!data, next]);
  if (error && !page) return <Failure text={sentence(error)} retry={() => ask({ requestPolicy: 'network-only' })} />;
  if (data && page === null) return <>{closed}</>;
  if (!page) return fetching || first ? <Skeleton rows={first ? 6 : 2} /> : null;
  return (
    <>
      {items.length > 0 && (
        <ul aria-label={first ? label : `More ${label}`}>
          {items.map(item => (
            <li key={id(item)} className="item">
              {row(item)}
            </li>
          ))}
        </ul>
      )}
      {next && last && more && <Sentinel key={`${next} ${items.length}`} see={() => more(next)} />}
    </>
  );
}

type ConnectionOfNodes<T> = { nodes: readonly (T | null)[] | null; pageInfo: MoreFragment } | null;

export const nodesOf = <T,>(connection: ConnectionOfNodes<T> | undefined): Page<T> | null => connection ? { items: present(connection.nodes), pageInfo: connection.pageInfo } : null;

type ConnectionOfPeople<P> = {
  totalCount: number;
  edges: readonly ({ node: P | null } | null)[] | null;
  pageInfo: MoreFragment;
} | null;

export const pageOf = <P,>(connection: ConnectionOfPeople<P> | undefined): Page<P> | null =>
  connection ? { items: present(connection.edges?.map(edge => edge?.node)), pageInfo: connection.pageInfo, total: connection.totalCount } : null;

type PeopleListProps<Data, Variables extends AnyVariables, P extends PersonFragment> = {
  document: TypedDocumentNode<Data, Variables>;
  variables: Omit<NonNullable<Variables>, 'after'>;
  pick: (data: Data) => Page<P> | null | undefined;
  /** Which of the people to show. */
  keep?: (person: P) => boolean;
  empty: ReactNode;
  closed?: ReactNode;
  label: string;
  searchable?: boolean;
  /** The document takes a filter, so Kith finds the names. Otherwise the pages are searched as they come. */
  filtered?: boolean;
  row?: (person: P) => ReactNode;
};

/** A list of people, with a field that finds them by name or handle. */
export function PeopleList<Data, Variables extends AnyVariables, P extends PersonFragment>({ searchable = true, filtered = false, keep = () => true, row, empty, ...rest }: PeopleListProps<Data, Variables, P>) {
  const [text, setText] = useState('');
  const wanted = fold(text.trim()).replace(/^@/, ''); // handles are shown with it
  const match = useSettled(filtered ? text.trim() : '', 150);
  const variables = match ? { ...rest.variables, filter: { ...(rest.variables as { filter?: object }).filter, match } } : rest.variables;
  return (
    <>
      {searchable && (
        <label className="field search">
          <span className="visually-hidden">Search {rest.label}</span>
          <input type="search" value={text} placeholder="Search by name or handle" onChange={event => setText(event.target.value)} />
        </label>
      )}
      <Endless
        key={JSON.stringify(variables)}
        {...rest}
        variables={variables}
        id={person => person.id}
        row={row ?? (person => <Row person={person} />)}
        keep={person => keep(person) && (!wanted || filtered || fold(person.name).includes(wanted) || person.handle.includes(wanted))}
        empty={wanted ? <p className="quiet pad">No one here matches “{text.trim()}”.</p> : empty}
      />
    </>
  );
}

// A text as Kith searches it: in one form, without case and marks, and without the strokes and ligatures that Unicode does not take apart.
const letters: Record<string, string> = { ß: 'ss', ς: 'σ', æ: 'ae', œ: 'oe', ø: 'o', ł: 'l', đ: 'd', ı: 'i' };
const fold = (text: string) => text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase().replace(/[ßςæœøłđı]/g, one => letters[one]!);
