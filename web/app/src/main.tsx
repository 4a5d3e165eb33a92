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

createRoot(document.getElementById('app')!).render(
  <StrictMode>
    <Root />
  </StrictMode>,
);
