// Live updates without a cache: graphql-ws, or graphql-sse where WebSockets do not pass.
import { createClient as createSocket } from "graphql-ws";
import { createClient as createStream } from "graphql-sse";
import { isUnauthenticated, socketOptions } from "../session.mjs";

const query = "subscription { followerAdded { edge { followedAt node { id handle } } } }";

// watchSocket calls seen with each follower until the function that it returns is called. connected is called
// whenever the connection has been opened: ask then for what happened before.
export function watchSocket(url, session, connected, seen) {
  const client = createSocket(socketOptions(url, session, connected));
  client.subscribe({ query }, { next: ({ data }) => data && seen(data.followerAdded), error: console.error, complete() {} });
  return () => client.dispose();
}

// The same by server-sent events. Kith cuts a stream whose token has ended, and answers 401 to the next attempt.
export function watchStream(url, session, connected, seen) {
  let sent;
  const client = createStream({
    url,
    retryAttempts: Infinity,
    headers: () => {
      sent = session.token;
      return session.headers;
    },
    fetchFn: async (input, init) => {
      const response = await fetch(input, init);
      if (response.status !== 401) return response;
      await session.renew(sent);
      return fetch(input, { ...init, headers: { ...init.headers, ...session.headers } });
    },
    on: { connected },
  });
  client.subscribe({ query }, { next: ({ data }) => data && seen(data.followerAdded), error: console.error, complete() {} });
  return () => client.dispose();
}
