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

createRoot(document.getElementById('app')!).render(
  <StrictMode>
    <Root />
  </StrictMode>,
);
