// Pages have addresses below /app, kept by the browser's history.
import { useSyncExternalStore, type AnchorHTMLAttributes, type MouseEvent } from 'react';

const base = '/app';
const listeners = new Set<() => void>();

function subscribe(listener: () => void) {
  listeners.add(listener);
  addEventListener('popstate', listener);
  return () => {
    listeners.delete(listener);
    removeEventListener('popstate', listener);
  };
}

/** The path of the page that is shown, below /app: "/" or "/u/maya". */
export const usePath = () => useSyncExternalStore(subscribe, path);

function path() {
  const rest = location.pathname.slice(base.length).replace(/\/+$/, '');
  return rest || '/';
}

/** Shows another page of the app. The page that is shown already adds nothing to the way back, as with other links. */
export function navigate(to: string, { replace = to === path() } = {}) {
  history[replace ? 'replaceState' : 'pushState'](null, '', base + to);
  scrollTo(0, 0);
  for (const listener of listeners) listener();
}

type LinkProps = AnchorHTMLAttributes<HTMLAnchorElement> & { to: string };

/** A link to a page of the app. A click with a modifier opens a tab, as with other links. */
export function Link({ to, onClick, ...rest }: LinkProps) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(to);
  };
  return <a href={base + to} onClick={follow} {...rest} />;
}

/** The parts of a path that a pattern such as "/u/:handle/:tab" names, or null if the path does not match. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const wanted = pattern.split('/');
  const given = path.split('/');
  if (wanted.length !== given.length) return null;
  const found: Record<string, string> = {};
  for (const [i, part] of wanted.entries()) {
    const value = given[i]!;
    if (part.startsWith(':')) found[part.slice(1)] = decoded(value);
    else if (part !== value) return null;
  }
  return found;
}

/** A part of a path as a text. Some are none, such as %FF. */
function decoded(part: string) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
