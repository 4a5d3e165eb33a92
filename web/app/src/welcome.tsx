// What a visitor who is not signed in sees first: sign in, register, or be a user of the demo graph.
import { useEffect, useState, type FormEvent } from 'react';
import { useClient, useMutation, useQuery, type CombinedError } from 'urql';
import { Mark } from './app';
import { DemoUsersDocument, LoginDocument, RegisterDocument, ViewerDocument } from './gql';
import { Face } from './people';
import { Link, navigate, usePath } from './router';
import { askToSignIn, becomeDemoUser, demoUsers, hasPasswords, hostOf, isSignedIn, signIn, signIns, useEnded, type SignIn, type Token } from './session';
import { Count, Failure, PageTitle, Skeleton, atMost, present, sentence, tell } from './ui';

export function Welcome() {
  return (
    <div className="welcome">
      <div className="hero">
        <div>
          <Mark />
          <PageTitle title="Kith" />
          <p className="lead">A place for the people you know, and the people they know.</p>
          <ul>
            <li>Follow people, and read what they write, newest first.</li>
            <li>See who you have in common, and how everyone around you is connected.</li>
            <li>Decide who can follow you, and who sees your posts and lists.</li>
          </ul>
        </div>
        <Sketch />
      </div>
      <section className="card">
        <Entry />
      </section>
      {demoUsers > 0 && <DemoUsers />}
    </div>
  );
}

// Where groups of people are in the sketch, and how many people are in each.
const groups = [[95, 85, 11], [335, 75, 9], [290, 225, 10]] as const;
const you = { x: 180, y: 170, group: 8 };
const spread = (i: number) => i && 20 + 15 * Math.sqrt(i);

/** A small network: somebody in the middle of three groups of people. */
function Sketch() {
  const people = groups.flatMap(([x, y, n], group) => Array.from({ length: n }, (_, i) => ({ x: x + spread(i) * Math.cos(2.4 * i), y: y + spread(i) * Math.sin(2.4 * i), group })));
  const first = (one: (typeof people)[number]) => people.findIndex(other => other.group === one.group);
  const follows = people.flatMap((from, i) => [1, 3, 5].map(back => ({ from, to: people[i - back]! })).filter(({ to }) => to?.group === from.group));
  const known = people.filter((one, i) => i - first(one) < 4).map(to => ({ from: you, to }));
  return (
    <svg className="sketch" viewBox="0 0 430 310" role="img" aria-label="You, and three groups of people around you who follow one another">
      {[...known, ...follows].map(({ from, to }, i) => (
        <line key={i} className={`dot c${from.group}`} x1={from.x} y1={from.y} x2={to.x} y2={to.y} />
      ))}
      {[...people, you].map((one, i) => {
        const size = one === you ? 26 : i === first(one) ? 20 : i - first(one) < 4 ? 13 : 6;
        return (
          <g key={i} className={`dot c${one.group}`}>
            <circle cx={one.x} cy={one.y} r={size} />
            {size > 6 && <image href={`/faces/${i + 1}.svg`} x={one.x - size + 2} y={one.y - size + 2} width={2 * size - 4} />}
          </g>
        );
      })}
      <text x={you.x} y={you.y + 44}>
        You
      </text>
    </svg>
  );
}

/** All ways to sign in or to register. Afterwards one is on the same page, but somebody new who has come to none goes on to the first suggestions. */
export function Entry({ registers: first = false }) {
  const path = usePath();
  const ended = useEnded();
  const { problem, stranger, busy, go } = useProvider();
  const [registers, setRegisters] = useState(first);
  const next = path === '/' ? '/start' : undefined;
  return (
    <div className="entry">
      {(problem || ended) && (
        <p className="problem" role="alert">
          {problem || 'Your session has ended. Sign in to return to this page.'}
        </p>
      )}
      {stranger ? (
        <RegisterForm of={stranger} next={next} />
      ) : (
        <>
          {providers.map(at => (
            <button key={at.issuer} type="button" className="button primary wide" disabled={busy} onClick={() => go(at)}>
              Sign in with {hostOf(at.issuer)}
            </button>
          ))}
          {hasPasswords && (
            <>
      <div className="tabs" role="group" aria-label="Sign in or register">
        <button type="button" aria-pressed={!registers} onClick={() => setRegisters(false)}>
          Sign in
        </button>
        <button type="button" aria-pressed={registers} onClick={() => setRegisters(true)}>
          Register
        </button>
      </div>
              {registers ? <RegisterForm next={next} /> : <LoginForm />}
            </>
          )}
        </>
      )}
      {path !== '/' && demoUsers > 0 && <Link to="/" onClick={() => askToSignIn('')}>Or explore as a demo user</Link>}
    </div>
  );
}

const providers = isSecureContext ? signIns : []; // elsewhere browsers make no challenge of a code

// The answer of an identity provider, if it has led to this page. It counts once, and not for somebody who is signed in.
const answered = /[?&](code|error)=/.test(location.search);
let answer = answered && !isSignedIn() ? import('./provider').then(({ finish }) => finish()) : undefined;
if (answered && !answer) history.replaceState(null, '', location.pathname);

/** As whom a provider's token asks before anybody is signed in here. */
const as = ({ token }: Token) => ({ fetchOptions: { headers: { Authorization: `Bearer ${token}` } } });

/** Signs in at an identity provider. A stranger is somebody who has no account here yet. */
function useProvider() {
  const client = useClient();
  const path = usePath();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(hasPasswords || providers.length ? '' : signIns.length ? 'Open this page by https to sign in.' : 'Nobody can sign in here: this gateway makes no tokens, and no identity provider knows this app.');
  const [stranger, setStranger] = useState<Required<Token>>();
  const enter = async ({ path, ...grant }: Awaited<NonNullable<typeof answer>>) => {
    const { data, error } = await client.query(ViewerDocument, {}, { ...as(grant), requestPolicy: 'network-only' }).toPromise();
    const userId = data?.viewer?.user?.id;
    if (error?.graphQLErrors[0]?.extensions.code === 'NOT_REGISTERED') return setStranger(grant);
    if (!userId) throw new Error(sentence(error) || `${hostOf(grant.provider.issuer)} has signed you in, but you have no account here.`);
    navigate(path, { replace: true });
    signIn(userId, grant);
  };
  const run = (step: Promise<void>) => {
    setBusy(true);
    void step.catch((reason: Error) => setProblem(reason.message)).finally(() => setBusy(false));
  };
  const go = (at: SignIn) => run(import('./provider').then(({ begin }) => begin(at, path)));
  useEffect(() => {
    if (answer) run(answer.then(enter));
    answer = undefined;
  }, []);
  return { problem, stranger, busy, go };
}

type SessionPayload = { token: string; expiresAt: string; viewer: { user: { id: string } } | null } | null | undefined;

/** Runs a form's mutation, and signs in with its answer. The page stays, unless there is a next one. A refusal leads to its field. */
function useForm(of?: Required<Token>) {
  const [problem, setProblem] = useState('');
  const [busy, setBusy] = useState(false);
  const submit = async (form: HTMLFormElement, run: () => Promise<{ error?: CombinedError; session: SessionPayload }>, next?: string) => {
    setBusy(true);
    setProblem('');
    const { error, session } = await run();
    setBusy(false);
    if (error || !session?.viewer) {
      form.querySelector<HTMLInputElement>(`[name="${error?.graphQLErrors[0]?.extensions.argument}"]`)?.focus();
      return setProblem(sentence(error) || 'Something went wrong. Please try again.');
    }
    if (next) navigate(next, { replace: true });
    signIn(session.viewer.user.id, { ...session, provider: of?.provider });
  };
  return { problem, busy, submit };
}

function LoginForm() {
  const [, login] = useMutation(LoginDocument);
  const { problem, busy, submit } = useForm();
  const send = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    void submit(event.currentTarget, async () => {
      const { data, error } = await login({ handle: String(form.get('handle')).trim(), password: String(form.get('password')) });
      return { error, session: data?.login };
    });
  };
  return (
    <form onSubmit={send} aria-label="Sign in">
      <label className="field">
        Handle
        <input name="handle" autoComplete="username" autoCapitalize="none" spellCheck={false} required />
      </label>
      <label className="field">
        Password
        <input name="password" type="password" autoComplete="current-password" required />
      </label>
      <p className="problem" role="alert">
        {problem}
      </p>
      <button className="button primary wide" disabled={busy}>
        Sign in to Kith
      </button>
    </form>
  );
}

/** A form for a new user: with a password, or with the token of a provider. */
function RegisterForm({ of, next }: { of?: Required<Token>; next?: string }) {
  const [, register] = useMutation(RegisterDocument);
  const { problem, busy, submit } = useForm(of);
  const send = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    void submit(event.currentTarget, async () => {
      const who = { name: String(form.get('name')), handle: String(form.get('handle')).trim() };
      const { data, error } = await (of ? register(who, as(of)) : register({ ...who, password: String(form.get('password')) }));
      return { error, session: data?.register };
    }, next);
  };
  return (
    <form onSubmit={send} aria-label="Register">
      {of && <p>{hostOf(of.provider.issuer)} has signed you in. You are new here: choose a name and a handle.</p>}
      <label className="field">
        Name
        <input name="name" autoComplete="name" {...atMost(100)} required />
      </label>
      <label className="field">
        Handle
        <input name="handle" autoComplete="username" autoCapitalize="none" spellCheck={false} pattern="[A-Za-z0-9_]{1,30}" maxLength={30} required />
        <small className="quiet">Letters a to z, digits and underscores</small>
      </label>
      {!of && (
        <label className="field">
          Password
          <input name="password" type="password" autoComplete="new-password" minLength={8} maxLength={200} required />
          <small className="quiet">At least 8 characters</small>
        </label>
      )}
      <p className="problem" role="alert">
        {problem}
      </p>
      <button className="button primary wide" disabled={busy}>
        Create an account
      </button>
    </form>
  );
}

const demoPage = 12;

function DemoUsers() {
  const [from, setFrom] = useState(1);
  const ids = Array.from({ length: Math.min(demoPage, demoUsers - from + 1) }, (_, i) => String(from + i));
  const [{ data, error }, ask] = useQuery({ query: DemoUsersDocument, variables: { ids } });
  const become = async (id: string) => {
    try {
      await becomeDemoUser(id);
    } catch (problem) {
      tell(problem instanceof Error ? problem.message : String(problem), 'bad');
    }
  };
  const another = () => setFrom(1 + Math.floor(Math.random() * Math.max(0, demoUsers - demoPage + 1)));
  return (
    <section className="card demo" aria-labelledby="demo-title">
      <header>
        <h2 id="demo-title">Or explore as a demo user</h2>
        <button type="button" className="button" onClick={another}>
          Show others
        </button>
      </header>
      {data ? (
        <ul className="demo-users">
          {present(data.users).map(user => (
            <li key={user.id}>
              <button type="button" onClick={() => become(user.id)} data-user={user.handle}>
                <Face of={user} size={48} />
                <b>{user.name}</b>
                <small className="quiet"><Count of={user.followerCount} /> followers</small>
              </button>
            </li>
          ))}
        </ul>
      ) : error ? (
        <Failure text={sentence(error)} retry={() => ask({ requestPolicy: 'network-only' })} />
      ) : (
        <Skeleton rows={4} />
      )}
    </section>
  );
}
