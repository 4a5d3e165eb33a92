// Options for the libraries that speak the protocols of subscriptions. Both connect again by themselves, and wait longer after
// each failure.

// The libraries' own waits double without an end. This one ends at half a minute, and spreads clients that were cut off together.
const retryWait = (retries) => new Promise((go) => setTimeout(go, Math.min(4_000 * 2 ** retries, 30_000) * (0.5 + Math.random() / 2)));

// Kith closes a connection with 4403 when its token has ended: the next one has to bring a new token.
export function socketOptions(url, session, connected = () => {}) {
  let sent, refused;
  return {
    url: url.replace(/^http/, "ws"),
    connectionParams: async () => {
      if (refused) await session.renew(refused).catch(() => {}); // graphql-ws would give up; the old token is refused again, and so this is tried again
      refused = undefined;
      sent = session.token;
      return { ...session.headers, begun: "ping" };
    },
    on: {
      ping: (received, payload) => {
        if (received && payload?.begun) connected();
      },
      closed: ({ code }) => {
        if (code === 4403) refused = sent;
      },
    },
    retryAttempts: Infinity,
    retryWait,
    shouldRetry: () => true,
  };
}

// Kith cuts a stream whose token has ended, and answers 401 to the next attempt.
export function streamOptions(url, session, connected = () => {}) {
  return { url, fetchFn: session.fetch, on: { connected }, retryAttempts: Infinity, retryWait };
}
