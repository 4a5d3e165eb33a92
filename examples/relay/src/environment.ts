// Relay's environment in front of Kith.
import { type ClientOptions, createClient } from "graphql-ws";
import { Environment, Network, Observable, RecordSource, Store } from "relay-runtime";
import type { GraphQLResponse, RequestParameters, Variables } from "relay-runtime";
import { ask, type createSession, socketOptions } from "../../session.mjs";

type Session = ReturnType<typeof createSession>;

// connected is called whenever the connection for subscriptions has been opened: ask then for what happened before.
export function createEnvironment(url: string, session: Session, connected: () => void) {
  const fetch = ({ text: query }: RequestParameters, variables: Variables) => ask(url, session, { query, variables });

  const socket = createClient(socketOptions(url, session, connected) as ClientOptions);
  const subscribe = ({ text: query }: RequestParameters, variables: Variables) =>
    Observable.create<GraphQLResponse>((sink) =>
      socket.subscribe({ query: query!, variables }, sink as Parameters<typeof socket.subscribe>[1]),
    );

  return new Environment({ network: Network.create(fetch, subscribe), store: new Store(new RecordSource()) });
}
