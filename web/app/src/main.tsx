import { StrictMode, useMemo } from 'react';
import { createRoot } from 'react-dom/client';
import { Provider } from 'urql';
import { App } from './app';
import { makeClient } from './client';
import { useSession } from './session';
import './app.css';

/** Whoever signs in gets a client, and a cache, of its own: nothing of the one before stays. */
function Root() {
  const userId = useSession()?.userId;
  const client = useMemo(() => makeClient(userId), [userId]);
  return (
    <Provider value={client} key={userId ?? ''}>
      <App />
    </Provider>
  );
}

createRoot(document.getElementById('app')!).render(
  <StrictMode>
    <Root />
  </StrictMode>,
);
