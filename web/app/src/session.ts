// Who is signed in, in this browser. All tabs share it.
import { useSyncExternalStore } from 'react';

export type Session = { token: string; expiresAt: string; userId: string };

const key = 'kith-session';
const listeners = new Set<() => void>();
let current = read();

function read(): Session | null {
  try {
    const kept = JSON.parse(localStorage.getItem(key) ?? 'null') as Session | null;
    return kept && Date.parse(kept.expiresAt) > Date.now() ? kept : null;
  } catch {
    return null;
  }
}

function set(next: Session | null) {
  if (next?.token === current?.token) return;
  current = next;
  for (const listener of listeners) listener();
}

export function signIn(session: Session) {
  localStorage.setItem(key, JSON.stringify(session));
  set(session);
}

export function signOut() {
  localStorage.removeItem(key);
  set(null);
}

addEventListener('storage', event => {
  if (event.key === key) set(read());
});

export const useSession = () =>
  useSyncExternalStore(
    listener => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );

/** What the gateway says to the app: data attributes of #app, since the page may hold no script. */
const { endpoint = '/graphql', demo = '0' } = document.getElementById('app')?.dataset ?? {};
export { endpoint };

/** How many users of the demo graph whoever looks may be, by ids from 1; 0 without --demo. */
export const demoUsers = Number(demo);

/** Signs in as a user of the demo graph. */
export async function becomeDemoUser(userId: string) {
  const response = await fetch(`/demo/token?user=${userId}`, { method: 'POST' });
  if (!response.ok) throw new Error('this gateway signs nobody in as a demo user');
  const { token, expiresAt } = (await response.json()) as { token: string; expiresAt: string };
  signIn({ token, expiresAt, userId });
}
