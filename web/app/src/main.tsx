import { StrictMode, useMemo } from 'react';
import { createRoot } from 'react-dom/client';
import { Provider } from 'urql';
import { App } from './app';
import { makeClient } from './client';
import { signOut, useSession } from './session';
import { tell } from './ui';
import './app.css';

/** Whoever signs in gets a client, and a cache, of its own: nothing of the one before stays. */
function Root() {
  const session = useSession();
  const client = useMemo(() => {
    const ended = () => {
      tell('Your session has ended. Please sign in again.', 'bad');
      signOut();
    };
    return makeClient(session, ended);
  }, [session]);
  return (
    <Provider value={client} key={session?.token ?? ''}>
      <App />
    </Provider>
  );
}

createRoot(document.getElementById('app')!).render(
  <StrictMode>
    <Root />
  </StrictMode>,
);
