// Relay's environment in front of Kith.
import { ask, type Session, socketOptions } from "@kith/client";
import { createClient } from "graphql-ws";
import { Environment, Network, Observable, RecordSource, Store } from "relay-runtime";
import type { GraphQLResponse, RequestParameters, Variables } from "relay-runtime";

// connected is called whenever a subscription has begun: ask then for what happened before.
export function createEnvironment(url: string, session: Session, connected: () => void) {
  const fetch = ({ text }: RequestParameters, variables: Variables) => ask(url, session, { query: text!, variables }) as Promise<GraphQLResponse>;

  const socket = createClient(socketOptions(url, session, connected));
  const subscribe = ({ text: query }: RequestParameters, variables: Variables) =>
    Observable.create<GraphQLResponse>((sink) =>
      socket.subscribe({ query: query!, variables }, sink as Parameters<typeof socket.subscribe>[1]),
    );

  return new Environment({ network: Network.create(fetch, subscribe), store: new Store(new RecordSource()) });
}
