// The frame around all pages: navigation, the search, and live events.
import { lazy, Suspense, useEffect, useId, useRef, useState, type KeyboardEvent } from 'react';
import { useClient, useMutation, useQuery, useSubscription } from 'urql';
import { Activity, lastOf } from './activity';
import { Common } from './common';
import { ActivityAddedDocument, ReactivateAccountDocument, RenewTokenDocument, RequestChangesDocument, SearchDocument, ViewerDocument, type PersonFragment } from './gql';
import { Home } from './home';
import { Face } from './people';
import { Profile } from './profile';
import { ListPage, OwnLists } from './lists';
import { PostPage } from './posts';
import { Requests } from './requests';
import { Link, match, navigate, usePath } from './router';
import { askToSignIn, renewWhileUsed, signOut, useAsked, useEnded, useSession } from './session';
import { Settings } from './settings';
import { Start, Suggestions } from './suggestions';
import { Blocked, Dismissed, Marked, Muted } from './own';
import { Dialog, Empty, Guard, Icon, Notes, PageTitle, Skeleton, present, report, suspended, tell, useSettled, type IconName } from './ui';
import { Entry, Welcome } from './welcome';

// The picture needs a library for graphs, which no other page needs.
const Picture = lazy(() => import('./picture'));

export function App() {
  const session = useSession();
  return (
    <>
      <a className="skip" href="#page">
        Skip to the page
      </a>
      {session ? <SignedIn /> : <SignedOut />}
      <Notes />
    </>
  );
}

const register = 'Register';

function SignedOut() {
  const path = usePath();
  const asked = useAsked();
  useEffect(() => () => askToSignIn(''), [path]); // what another page has asked is over
  const open = !useEnded() && (match('/u/:handle', path) ?? match('/u/:handle/:tab', path) ?? match('/post/:id', path) ?? match('/list/:id', path));
  return (
    <div className="frame signed-out">
      <main id="page">
        {open ? (
          <>
            <header className="visitor">
              <Link to="/" className="brand" aria-label="Kith, what it is">
                <Mark />
                <span>Kith</span>
              </Link>
              <button type="button" className="button" onClick={() => askToSignIn('Sign in')}>
                Sign in
              </button>
              <button type="button" className="button primary" onClick={() => askToSignIn(register)}>
                Register
              </button>
            </header>
            <Pages path={path} />
            {asked && (
              <Dialog key={asked} title={asked} close={() => askToSignIn('')}>
                <Entry registers={asked === register} />
              </Dialog>
            )}
          </>
        ) : (
          <Welcome />
        )}
      </main>
    </div>
  );
}

function SignedIn() {
  const client = useClient();
  const [{ data }] = useQuery({ query: ViewerDocument, requestPolicy: 'cache-and-network' });
  useEffect(
    () =>
      renewWhileUsed(async () => {
        const { data, error } = await client.mutation(RenewTokenDocument, {}).toPromise();
        const refusal = error?.graphQLErrors[0]?.extensions;
        return data?.renewToken ?? (refusal?.code === 'FORBIDDEN' && refusal.reason !== 'SUSPENDED' ? 'refused' : undefined); // a suspension may end
      }),
    [client],
  );
  const [, reactivate] = useMutation(ReactivateAccountDocument);
  const path = usePath();
  const me = data?.viewer?.user;
  const standing = data?.viewer?.standing;
  const unseen = data?.viewer?.activity?.unseen;
  const places: [string, IconName, string, number?, string?][] = [
    ['/', 'home', 'Home'],
    ['/suggestions', 'people', 'Discover'],
    ['/picture', 'picture', 'Network'],
    ['/activity', 'bell', 'Activity', unseen?.count, unseen?.hasMore ? '+ new' : ' new'],
    ['/requests', 'inbox', 'Requests', (data?.viewer?.friendRequests?.totalCount ?? 0) + (data?.viewer?.followRequests?.totalCount ?? 0)],
    ['/lists', 'list', 'Lists'],
    ['/settings', 'settings', 'Settings'],
  ];
  return (
    <div className="frame">
      <nav className="side" aria-label="Pages">
        <Link to="/" className="brand" aria-label="Kith, home">
          <Mark />
          <span>Kith</span>
        </Link>
        <Search />
        <ul>
          {places.map(([to, icon, name, count, what = ' waiting']) => (
            <li key={to}>
              <Link to={to} aria-current={path === to ? 'page' : undefined}>
                <Icon name={icon} />
                <span>{name}</span>
                {!!count && (
                  <span className="count" aria-label={count + what}>
                    {count}
                    {what.startsWith('+') && '+'}
                  </span>
                )}
              </Link>
            </li>
          ))}
        </ul>
        <div className="me">
          {me ? (
            <Link to={`/u/${me.handle}`} className="who" aria-label={`${me.name} @${me.handle}, your profile`} aria-current={`${path}/`.startsWith(`/u/${me.handle}/`) ? 'page' : undefined}>
              <Face of={me} size={36} />
              <span>
                <b>{me.name}</b>
                <small className="quiet">@{me.handle}</small>
              </span>
            </Link>
          ) : (
            <span className="who" />
          )}
          <button
            type="button"
            className="button plain"
            aria-label="Sign out"
            title="Sign out"
            onClick={() => {
              signOut();
              navigate('/');
            }}
          >
            <Icon name="leave" />
          </button>
        </div>
      </nav>
      <main id="page">
        {standing?.state === 'SUSPENDED' && <p className="failure">{suspended(standing.reason ?? '', standing.until)} Other people can’t see your profile or posts.</p>}
        {standing?.state === 'DEACTIVATED' && (
          <div className="failure">
            <p>Your account is hidden. Other people can’t see your profile or posts, and you can’t change anything until you show it again.</p>
            <button type="button" className="button" onClick={() => report(reactivate({}), 'Your account is visible again.')}>
              Show my account again
            </button>
          </div>
        )}
        <Guard path={path}>
          <Suspense fallback={<Skeleton />}>
            <Pages path={path} />
          </Suspense>
        </Guard>
      </main>
      <Live />
    </div>
  );
}

function Pages({ path }: { path: string }) {
  let at = match('/u/:handle', path) ?? match('/u/:handle/:tab', path);
  if (at) return <Profile key={at.handle} handle={at.handle!} tab={at.tab} />;
  if ((at = match('/common/:one/:other', path))) return <Common key={path} one={at.one!} other={at.other!} />;
  if ((at = match('/post/:id', path))) return <PostPage key={at.id} id={at.id!} />;
  if ((at = match('/list/:id', path))) return <ListPage key={at.id} id={at.id!} />;
  if ((at = match('/picture', path) ?? match('/picture/:id', path))) return <Picture centre={at.id} />;
  switch (path) {
    case '/':
      return <Home />;
    case '/start':
      return <Start />;
    case '/suggestions':
      return <Suggestions />;
    case '/activity':
      return <Activity />;
    case '/requests':
      return <Requests />;
    case '/marked':
      return <Marked />;
    case '/lists':
      return <OwnLists />;
    case '/blocked':
      return <Blocked />;
    case '/muted':
      return <Muted />;
    case '/dismissed':
      return <Dismissed />;
    case '/settings':
      return <Settings />;
  }
  return (
    <>
      <PageTitle title="Page not found" />
      <Empty icon="search" title="There is no such page.">
        <Link to="/">Go home</Link>
      </Empty>
    </>
  );
}

export function Mark() {
  return (
    <svg className="mark" viewBox="0 0 32 32" aria-hidden="true">
      <path d="M10 22 22 10M10 10l12 12" />
      <circle cx="9" cy="9" r="4" />
      <circle cx="23" cy="9" r="4" />
      <circle cx="9" cy="23" r="4" />
      <circle cx="23" cy="23" r="4" />
    </svg>
  );
}

/** Events while the page is open: what others do is announced, and shown where it belongs. */
function Live() {
  const session = useSession();
  const client = useClient();
  // The cache is not bypassed: while a change whose outcome is shown already is under way, an answer may be older than it.
  // A read that is under way may be older than the event, and would be taken for this one.
  const refresh = async () => {
    await client.query(ViewerDocument, {}).toPromise();
    await client.query(ViewerDocument, {}, { requestPolicy: 'cache-and-network' }).toPromise();
  };
  const [activity] = useSubscription({ query: ActivityAddedDocument });
  const [request] = useSubscription({ query: RequestChangesDocument });
  const group = activity.data?.activityAdded?.edge?.node;
  const changed = request.data?.requestChanged?.request;
  useEffect(() => {
    const text = group && lastOf(group);
    if (text) tell(text, 'good', undefined, '/activity');
    if (group?.kind === 'FOLLOW') void refresh();
  }, [activity.data]);
  useEffect(() => {
    if (!changed) return;
    if (changed.state === 'ACCEPTED' && changed.kind === 'FOLLOW' && changed.from?.id === session?.userId) tell(`You now follow ${changed.to?.name}.`);
    void refresh();
  }, [request.data]);
  return null;
}

/** Finds people by words of their names and handles. Arrows choose, Enter goes there. */
function Search() {
  const [text, setText] = useState('');
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(0);
  const list = useId();
  const input = useRef<HTMLInputElement>(null);
  const asked = useSettled(text.trim(), 150);
  const [{ data, fetching }] = useQuery({ query: SearchDocument, variables: { text: asked, first: 8 }, pause: !asked });
  const found = asked && text ? present(data?.searchUsers?.nodes) : [];
  const settled = asked === text.trim() && !fetching;
  const shown = open && text !== '';
  const go = (person: PersonFragment | undefined) => {
    if (!person) return;
    setText('');
    setOpen(false);
    input.current?.blur();
    navigate(`/u/${person.handle}`);
  };
  const key = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return; // Enter and arrows are of the input method
    if (event.key === 'ArrowDown') setAt(Math.max(0, Math.min(at + 1, found.length - 1))); // perhaps nobody is found yet
    else if (event.key === 'ArrowUp') setAt(Math.max(at - 1, 0));
    else if (event.key === 'Enter') settled && go(found[at]); // people found for an earlier text are not meant
    else if (event.key === 'Escape') setOpen(false);
    else return;
    event.preventDefault();
  };
  return (
    <div className="finder" onBlur={event => !event.currentTarget.contains(event.relatedTarget) && setOpen(false)}>
      <Icon name="search" />
      <input
        ref={input}
        type="text"
        role="combobox"
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        aria-label="Find people"
        aria-expanded={shown && found.length > 0}
        aria-controls={list}
        aria-activedescendant={shown && found[at] ? `${list}-${at}` : undefined}
        placeholder="Find people"
        value={text}
        onChange={event => {
          setText(event.target.value);
          setAt(0);
          setOpen(true);
        }}
        onFocus={() => setOpen(true)}
        onKeyDown={key}
      />
      <ul id={list} role="listbox" aria-label="People found" aria-busy={!settled} className="found" hidden={!shown || found.length === 0}>
        {found.map((person, i) => (
          <li key={person.id} id={`${list}-${i}`} role="option" aria-selected={i === at} onPointerDown={event => event.preventDefault()} onClick={() => go(person)}>
            <Face of={person} size={28} />
            <span>
              {person.name} <small className="quiet">@{person.handle}</small>
            </span>
          </li>
        ))}
      </ul>
      {shown && asked && data && settled && found.length === 0 && <p className="found quiet">No one found.</p>}
    </div>
  );
}
