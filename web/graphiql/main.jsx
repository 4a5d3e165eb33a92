// The page at / once GraphiQL is built. What the gateway has to say to it (where to
// send queries, what to show first) comes as data attributes of #graphiql, because
// the Content-Security-Policy allows no inline script.
import { explorerPlugin } from '@graphiql/plugin-explorer';
import { createGraphiQLFetcher, createLocalStorage } from '@graphiql/toolkit';
import { GraphiQL, HISTORY_PLUGIN } from 'graphiql';
import { Kind, parse } from 'graphql';
import { createRoot } from 'react-dom/client';

import 'graphiql/style.css';
import '@graphiql/plugin-explorer/style.css';
import { DemoUsers, identity } from './demo.jsx';
import './main.css';

globalThis.MonacoEnvironment = {
  getWorker(_id, label) {
    const name = label === 'json' || label === 'graphql' ? label : 'editor';
    return new Worker(new URL(`${name}.worker.js`, import.meta.url));
  },
};

const root = document.getElementById('graphiql');
const { endpoint, welcome, examples } = root.dataset;

// ?query=…&variables=… fills the first tab in.
const link = new URLSearchParams(location.search);
const linked = link.has('query') ? [{ query: link.get('query'), variables: link.get('variables') }] : [];
const tabs = [...linked, ...JSON.parse(examples).map(query => ({ query }))];

// Subscriptions go over a WebSocket of their own, which takes the headers (a token) as the payload of its
// connection_init.
const socket = new URL(endpoint, location.href);
socket.protocol = socket.protocol.replace('http', 'ws');
const ask = createGraphiQLFetcher({
  url: endpoint,
  subscriptionUrl: socket.href,
});

/** GraphiQL learns of an operation a moment after its tab was chosen. If the text has a single one, that is meant. */
function operationOf(params, documentAST) {
  try {
    const document = parse(params.query);
    const [operation, another] = document.definitions.filter(({ kind }) => kind === Kind.OPERATION_DEFINITION);
    return another ? [params, documentAST] : [{ ...params, operationName: operation.name?.value }, document];
  } catch {
    return [params, documentAST]; // Kith says what is wrong with it
  }
}

/** What is in the header editor counts more than the menu. */
async function fetcher(request, options) {
  const [params, documentAST] = operationOf(request, options?.documentAST);
  const own = options?.headers ?? {};
  const known = Object.keys(own).some(name => name.toLowerCase() === 'authorization');
  return ask(params, { documentAST, headers: { ...(known ? {} : await identity()), ...own } });
}

createRoot(root).render(
  <GraphiQL
    fetcher={fetcher}
    // A name of our own: another GraphiQL that once ran on this address keeps its tabs, and we ours.
    storage={createLocalStorage({ namespace: 'kith' })}
    plugins={[HISTORY_PLUGIN, explorerPlugin()]}
    defaultQuery={welcome}
    defaultTabs={tabs.length > 0 ? tabs : undefined}
    initialQuery={link.get('query') ?? undefined}
    initialVariables={link.get('variables') ?? undefined}
    inputValueDeprecation
    schemaDescription
  >
    <GraphiQL.Logo>
      <DemoUsers />
      <h1 className="kith-logo">Kith</h1>
    </GraphiQL.Logo>
  </GraphiQL>,
);
