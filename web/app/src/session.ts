// Who is signed in, in this browser. All tabs share it.
import { useSyncExternalStore } from 'react';

/** renewAt is when to ask for another token, in milliseconds as in Date.now(); provider is who gives it, if that is not the gateway. */
type Session = { token: string; renewAt: number; userId: string; provider?: Provider };

/** An identity provider, and what leads to its next token, and out. */
export type Provider = { issuer: string; refreshToken?: string; idToken?: string };

const key = 'kith-session';
const storage = open();
const listeners = new Set<() => void>();
let current = read();
let ended = false;
let asked = '';

/** A provider that has not answered is not asked again before this time, in milliseconds as in Date.now(): each time may take it ten seconds, and the token is still valid. */
let patientUntil = 0;

/** What all tabs share. A browser that may keep nothing has a session of this tab, until the page is loaded again. */
function open(): Pick<Storage, 'getItem' | 'setItem' | 'removeItem'> {
  try {
    return localStorage;
  } catch {
    const kept = new Map<string, string>();
    return { getItem: name => kept.get(name) ?? null, setItem: (name, value) => void kept.set(name, value), removeItem: name => void kept.delete(name) };
  }
}

function read(): Session | null {
  try {
    return JSON.parse(storage.getItem(key) ?? 'null') as Session | null;
  } catch {
    return null;
  }
}

function set(next: Session | null, end = false) {
  current = next;
  ended = end;
  asked = '';
  for (const listener of listeners) listener();
}

function keep(session: Session) {
  patientUntil = 0;
  storage.setItem(key, JSON.stringify(session));
  set(session);
}

export type Token = { token: string; expiresAt: string; provider?: Provider };

/** What is kept of a token. It is renewed when half of its time is over, but never more than once a second. */
const renewable = ({ token, expiresAt, provider }: Token) => ({ token, provider, renewAt: Date.now() + Math.max(1_000, (Date.parse(expiresAt) - Date.now()) / 2) });

export const signIn = (userId: string, token: Token) => keep({ userId, ...renewable(token) });

/** Ends the session, and the one at the provider that it comes from. */
export function signOut() {
  const provider = current?.provider;
  storage.removeItem(key);
  set(null);
  if (provider) void import('./provider').then(({ end }) => end(provider)).catch(() => {});
}

/** Takes over the session as another tab has changed it. Whoever has signed out here is told nothing: what waits behind that finds no session, too. */
function take(kept = read()) {
  set(kept, !kept && (ended || !!current));
}

addEventListener('storage', event => {
  if (event.key === key) take();
});

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const isSignedIn = () => !!current;

export const useSession = () => useSyncExternalStore(subscribe, () => current);

/** Whether a session has ended on this page. After signing in again, one continues on the same page. */
export const useEnded = () => useSyncExternalStore(subscribe, () => ended);

/** Asks a visitor to sign in, or to register: the title says what for. Nobody is asked by an empty one. */
export function askToSignIn(title: string) {
  asked = title;
  for (const listener of listeners) listener();
}

export const useAsked = () => useSyncExternalStore(subscribe, () => asked);

/** The token of a user; none once another user is signed in. */
export const tokenOf = (userId: string | undefined) => (current?.userId === userId ? current?.token : undefined);

const due = () => !!current && Date.now() >= Math.max(current.renewAt, patientUntil);

/** The token of a user. One of a provider is renewed first if it is time, whatever asks: providers give tokens for minutes. */
export async function freshToken(userId: string | undefined) {
  if (tokenOf(userId) && current?.provider?.refreshToken && due()) await inTurn(({ provider }) => import('./provider').then(({ renew }) => renew(provider!)).catch(() => undefined));
  return tokenOf(userId);
}

/** Called when the gateway refuses a token: returns the token of another tab, if there is one, or ends the session. */
export function refused(token: string): string | undefined {
  const kept = read();
  if (kept?.token === token && kept.provider?.refreshToken && Date.now() >= kept.renewAt) {
    patientUntil = 0; // the provider does not answer now, and nothing goes on before it does
    return undefined;
  }
  if (kept?.token === token) storage.removeItem(key);
  take(kept?.token === token ? null : kept);
  return current?.token;
}

/** A gateway's answer to a request for another token: the token, that it gives none, or nothing. */
export type Renewal = Token | 'refused' | undefined;

/** Asks for another token if it is time. One tab asks at a time, and the others take its token. */
async function inTurn(ask: (session: Session) => Promise<Renewal>) {
  const renew = async () => {
    take();
    const before = current;
    if (!before || !due()) return;
    const answer = await ask(before);
    if (read()?.token !== before.token) return; // signed out meanwhile
    if (answer === 'refused') keep({ ...before, renewAt: Number.MAX_SAFE_INTEGER });
    else if (answer) keep({ ...before, ...renewable(answer) });
    else patientUntil = Date.now() + 30_000;
    await new Promise(go => setTimeout(go, 200)); // what one tab stores, another one in a process of its own reads a moment later
  };
  // Browsers have locks only in secure contexts. Two tokens do no harm: both are valid.
  await (navigator.locks ? navigator.locks.request(key, renew) : renew());
}

// The events that show that somebody uses the app.
const uses = ['pointerdown', 'keydown', 'wheel', 'focus'] as const;

/** Asks the gateway for another token in time, while somebody uses the app. */
export function renewWhileUsed(ask: () => Promise<Renewal>): () => void {
  let asking = false;
  const used = async () => {
    if (asking || !due() || current?.provider) return;
    asking = true;
    await inTurn(ask).finally(() => (asking = false));
  };
  for (const use of uses) addEventListener(use, used, { passive: true });
  return () => uses.forEach(use => removeEventListener(use, used));
}

/** What the gateway tells the app: data attributes of #app, because the page must not contain scripts. */
const { endpoint = '/graphql', demo = '0', passwords = 'true', signIns: providers = '[]' } = document.getElementById('app')?.dataset ?? {};
export { endpoint };
export const hasPasswords = passwords === 'true';

export type SignIn = { issuer: string; clientId: string; scopes?: string[] };
export const signIns = JSON.parse(providers) as SignIn[];
export const hostOf = (issuer: string) => new URL(issuer).host;

/** How many users of the demo graph a visitor may be, by ids from 1; 0 without --demo. */
export const demoUsers = Number(demo);

/** Signs in as a user of the demo graph. */
export async function becomeDemoUser(userId: string) {
  const response = await fetch(`/demo/token?user=${userId}`, { method: 'POST' });
  if (!response.ok) throw new Error('You can’t sign in as this person here.');
  signIn(userId, (await response.json()) as Token);
}
