// The page at / once GraphiQL is built. What the gateway has to say to it (where to
// send queries, what to show first) comes as data attributes of #graphiql, because
// the Content-Security-Policy allows no inline script.
import { explorerPlugin } from '@graphiql/plugin-explorer';
import { createGraphiQLFetcher, createLocalStorage } from '@graphiql/toolkit';
import { GraphiQL, HISTORY_PLUGIN } from 'graphiql';
import { createRoot } from 'react-dom/client';

import 'graphiql/style.css';
import '@graphiql/plugin-explorer/style.css';
import './main.css';

globalThis.MonacoEnvironment = {
  getWorker(_id, label) {
    const name = label === 'json' || label === 'graphql' ? label : 'editor';
    return new Worker(new URL(`${name}.worker.js`, import.meta.url));
  },
};

const root = document.getElementById('graphiql');
const { endpoint, query, headers } = root.dataset;
const link = new URLSearchParams(location.search); // ?query=…&variables=… fills the page in

// Subscriptions go over a WebSocket of their own, which takes what is in the header editor (a
// token) as the payload of its connection_init.
const socket = new URL(endpoint, location.href);
socket.protocol = socket.protocol.replace('http', 'ws');

createRoot(root).render(
  <GraphiQL
    fetcher={createGraphiQLFetcher({ url: endpoint, subscriptionUrl: socket.href })}
    // A name of our own: another GraphiQL that once ran on this address keeps its tabs, and we ours.
    storage={createLocalStorage({ namespace: 'kith' })}
    plugins={[HISTORY_PLUGIN, explorerPlugin()]}
    defaultQuery={query}
    initialQuery={link.get('query') ?? undefined}
    initialVariables={link.get('variables') ?? undefined}
    // Given headers (a token) hold for every load, since by default headers are not stored.
    initialHeaders={headers || undefined}
    defaultHeaders={headers || undefined}
    inputValueDeprecation
  >
    <GraphiQL.Logo>
      <span className="kith-logo">Kith</span>
    </GraphiQL.Logo>
  </GraphiQL>,
);
