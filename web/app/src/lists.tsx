// Named lists: pages of them, one list with its posts and members, and the dialog that puts somebody on lists.
import { useEffect, useRef, useState, type FormEvent, type ReactNode } from 'react';
import { useMutation, useQuery, CombinedError } from 'urql';
import * as gql from './gql';
import { Undo } from './own';
import { Endless, PeopleList, nodesOf, tellFollowed } from './people';
import { Feed } from './posts';
import { Link, navigate } from './router';
import { useSession } from './session';
import { Dialog, Empty, Failure, Icon, PageTitle, Skeleton, atMost, report, sentence } from './ui';

type Card = gql.ListCardFragment;
type Person = gql.PersonFragment;

const facts = (list: Card) => `${list.public ? 'Public' : 'Private'} · ${list.memberCount} ${list.memberCount === 1 ? 'person' : 'people'}`;

/** The viewer's own lists. */
export function OwnLists() {
  const session = useSession();
  return (
    <>
      <PageTitle title="Lists">
        <Link to="/marked" className="button">
          <Icon name="mark" /> Marked
        </Link>
      </PageTitle>
      <p className="quiet">Read the posts of some people by themselves. They aren’t told, and you needn’t follow them.</p>
      <ListForm />
      <Lists of={session!.userId} empty={<Empty icon="list" title="You don’t have any lists yet." />} />
    </>
  );
}

/** The lists of a user that the viewer sees. */
export function Lists({ of, empty }: { of: string; empty: ReactNode }) {
  const link = (list: Card) => (
    <div className="row lines">
      <Link to={`/list/${list.id}`} className="name">
        {list.name}
      </Link>
      <span className="quiet">{facts(list)}</span>
    </div>
  );
  return <Endless document={gql.ListsDocument} variables={{ id: of }} pick={data => nodesOf(data.user?.lists)} id={list => list.id} row={link} label="lists" empty={empty} />;
}

type Change = Promise<{ data?: Record<string, { outcomes?: readonly { error: { message: string } | null }[] } | null>; error?: CombinedError }>;

/** Shows the outcome of a change of a list with at most one user, as report does. */
async function reported(change: Change, good?: string) {
  const { data, error } = await change;
  const refused = Object.values(data ?? {})[0]?.outcomes?.[0]?.error;
  return report(Promise.resolve({ error: refused ? new CombinedError({ graphQLErrors: [refused.message] }) : error }), good);
}

/** Changes a list, or makes one, with a person on it if that is given. */
function ListForm({ list, person, done, children }: { list?: Card; person?: Person; done?: () => void; children?: ReactNode }) {
  const [, create] = useMutation(gql.CreateListDocument);
  const [, update] = useMutation(gql.UpdateListDocument);
  const [busy, setBusy] = useState(false);
  const send = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const given = new FormData(form);
    const named = { name: String(given.get('name')).trim(), public: given.get('public') === 'on' };
    done?.();
    if (list) return report(update({ id: list.id, ...named }), 'Saved.');
    setBusy(true);
    if (await reported(create({ ...named, userIds: person ? [person.id] : [] }), `Created “${named.name}”.`)) form.reset();
    setBusy(false);
  };
  return (
    <form onSubmit={send} className={person || list ? undefined : 'card'}>
      <label className="field">
        {list ? 'Name' : 'New list'}
        <input name="name" {...atMost(60)} required pattern=".*\S.*" placeholder="Name" defaultValue={list?.name} />
      </label>
      <label className="choice">
        <input type="checkbox" name="public" defaultChecked={list?.public} /> Everyone can see this list
      </label>
      <div className="bar">
        <button className="button primary" disabled={busy}>
          {list ? 'Save' : 'Create list'}
        </button>
        {children}
      </div>
    </form>
  );
}

/** On which of the viewer's lists somebody is. */
export function ListsDialog({ user, close }: { user: Person; close: () => void }) {
  const session = useSession();
  return (
    <Dialog title={`Add ${user.name} to lists`} close={close}>
      <Endless
        document={gql.ListsWithDocument}
        variables={{ id: session!.userId, userId: user.id }}
        pick={data => {
          const page = nodesOf(data.user?.lists);
          return page && { ...page, items: page.items.map(list => ({ ...list, has: !!data.viewer?.lists?.some(one => one.id === list.id) })) };
        }}
        id={list => list.id}
        row={list => <Membership list={list} user={user} />}
        label="lists"
        empty={<p className="quiet">You don’t have any lists yet.</p>}
      />
      <ListForm person={user} />
    </Dialog>
  );
}

function Membership({ list, user }: { list: Card & { has: boolean }; user: Person }) {
  const [on, setOn] = useState(list.has);
  const changes = useRef(0); // under way
  useEffect(() => {
    if (!changes.current) setOn(list.has);
  }, [list.has]);
  const [, add] = useMutation(gql.AddToListDocument);
  const [, remove] = useMutation(gql.RemoveFromListDocument);
  const toggle = async () => {
    setOn(!on);
    changes.current++;
    if (!(await reported((on ? remove : add)({ listId: list.id, userId: user.id })))) setOn(on);
    changes.current--;
  };
  return (
    <label className="choice">
      <input type="checkbox" checked={on} onChange={toggle} />
      <span>
        {list.name} <small className="quiet">{facts(list)}</small>
      </span>
    </label>
  );
}

/** One list: what its members post, and who they are. */
export function ListPage({ id }: { id: string }) {
  const session = useSession();
  const [{ data, error }, ask] = useQuery({ query: gql.ListDocument, variables: { id }, requestPolicy: 'cache-and-network' });
  const [tab, setTab] = useState(session ? 'Posts' : 'Members');
  const [, remove] = useMutation(gql.RemoveFromListDocument);
  const list = data?.node && 'memberCount' in data.node ? data.node : null;
  if (!list) {
    if (!data) return error ? <Failure text={sentence(error)} retry={() => ask({ requestPolicy: 'network-only' })} /> : <Skeleton />;
    return (
      <>
        <PageTitle title="List" />
        <Empty icon="search" title="This list was deleted, or you can’t see it." />
      </>
    );
  }
  const isOwn = !!session && list.owner?.id === session.userId;
  const take = (person: Person) => <Undo text="Remove" person={person} undo={() => report(remove({ listId: id, userId: person.id }), `${person.name} is no longer on this list.`)} />;
  return (
    <>
      <PageTitle title={list.name}>{isOwn ? <Edit list={list} /> : session && <FollowAll list={list} />}</PageTitle>
      <p className="quiet">
        {facts(list)} · by {list.owner && <Link to={`/u/${list.owner.handle}`}>{list.owner.name}</Link>}
      </p>
      <div className="tabs" role="group" aria-label="What to show">
        {(session ? ['Posts', 'Members'] : ['Members']).map(one => (
          <button key={one} type="button" aria-pressed={tab === one} onClick={() => setTab(one)}>
            {one}
          </button>
        ))}
      </div>
      {tab === 'Posts' ? (
        <Feed list={id} empty={<Empty icon="home" title="No posts yet from the people on this list." />} />
      ) : (
        <PeopleList
          document={gql.MembersDocument}
          variables={{ id }}
          pick={data => (data.node && 'members' in data.node ? nodesOf(data.node.members) : null)}
          row={isOwn ? take : undefined}
          label="members"
          empty={<Empty icon="people" title="No one is on this list.">{isOwn && 'You can add people on their profiles.'}</Empty>}
        />
      )}
    </>
  );
}

function Edit({ list }: { list: Card }) {
  const [open, setOpen] = useState(false);
  const [, remove] = useMutation(gql.DeleteListDocument);
  const close = () => setOpen(false);
  const end = async () => (await report(remove({ id: list.id }), `Deleted “${list.name}”.`)) && navigate('/lists', { replace: true });
  return (
    <>
      <button type="button" className="button" onClick={() => setOpen(true)}>
        Edit list
      </button>
      {open && (
        <Dialog title="Edit list" close={close}>
          <ListForm list={list} done={close}>
            <button type="button" className="button danger" onClick={end}>
              Delete list
            </button>
          </ListForm>
        </Dialog>
      )}
    </>
  );
}

/** Follows the members of a list, page by page, and says how many. */
function FollowAll({ list }: { list: Card }) {
  const [busy, setBusy] = useState(false);
  const [, follow] = useMutation(gql.FollowListDocument);
  const all = async () => {
    setBusy(true);
    const made: gql.OutcomeFragment[] = [];
    let after: string | null | undefined = null; // of the next page: null before the first, undefined after the last
    while (after !== undefined) {
      const change: ReturnType<typeof follow> = follow({ id: list.id, after });
      if (!(await report(change))) break;
      const { outcomes, pageInfo } = (await change).data!.followList!;
      made.push(...outcomes);
      after = pageInfo.hasNextPage ? pageInfo.endCursor : undefined;
    }
    setBusy(false);
    if (after !== null) tellFollowed(made);
  };
  return (
    <button type="button" className="button primary" disabled={busy} onClick={all}>
      Follow everyone on this list
    </button>
  );
}
