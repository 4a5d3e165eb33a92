import { StrictMode, useMemo } from 'react';
import { createRoot } from 'react-dom/client';
import { Provider } from 'urql';
import { App } from './app';
import { makeClient } from './client';
import { useSession } from './session';
import './app.css';

/** Each user who signs in gets a new client and a new cache: nothing of the user before stays. */
function Root() {
  const userId = useSession()?.userId;
  const client = useMemo(() => makeClient(userId), [userId]);
  return (
    <Provider value={client} key={userId ?? ''}>
      <App />
    </Provider>
  );
}

// The second click of a double click is meant for what the first one was on. By then that may be gone, and the next row be in its place.
let clicked: Element | null = null;
addEventListener(
  'click',
  event => {
    const on = (event.target as Element).closest('a, button, label');
    if (event.detail < 2 || on === clicked) return void (clicked = on);
    event.preventDefault();
    event.stopPropagation();
  },
  true,
);

// If what has the focus goes, what comes after it takes that, or what was before, or what it was in: otherwise the keyboard would begin at the
// top of the page again. A pointer finds its way.
let focused: Element | null = null;
addEventListener('focusin', event => (focused = event.target as Element));
addEventListener('pointerdown', () => (focused = null), true);
new MutationObserver(records => {
  if (!focused || focused.isConnected || document.activeElement !== document.body) return;
  let gone: Node = focused;
  for (const { target, removedNodes, nextSibling, previousSibling } of records) {
    if (![...removedNodes].some(node => node.contains(gone))) continue;
    const near = [nextSibling, previousSibling, target].find((node): node is HTMLElement => node instanceof HTMLElement && node.isConnected);
    if (near) {
      if (near.tabIndex < 0) near.tabIndex = -1;
      return near.focus({ preventScroll: true });
    }
    gone = target;
  }
}).observe(document, { childList: true, subtree: true });

createRoot(document.getElementById('app')!).render(
  <StrictMode>
    <Root />
  </StrictMode>,
);
