// Who is signed in, and what they have written: what every client here needs, whatever its library.

// signIn gets a new token: by the mutation login, as below, or from your identity provider by its refresh token.
// token is the token kept from the last visit, if there is one. extend gets a new token for one that is still valid: renewToken,
// below, does so for those that Kith has issued. changed is told each new token, for a page that keeps it, and null at the end.
/**
 * @param {() => Promise<string>} signIn
 * @param {string | null} token
 * @param {((token: string) => Promise<string>) | null} extend
 * @param {(token: string | null) => void} changed
 */
export function createSession(signIn, token = null, extend = null, changed = () => {}) {
  const written = [];
  let renewing = null;
  let timer;

  // A token is extended when half of its time is over. If that fails, the token ends, and the next refused request signs in.
  function plan() {
    clearTimeout(timer);
    const left = extend && token ? expiry(token) - Date.now() : 0;
    const old = token;
    const renewed = (fresh) => token === old && use(fresh);
    if (left > 0) timer = setTimeout(() => extend(old).then(renewed, () => {}), Math.min(left / 2, 2 ** 31 - 1));
  }
  function use(fresh) {
    if (!fresh) return;
    token = fresh;
    changed(token);
    plan();
  }
  plan();
  return {
    get token() {
      return token;
    },
    /** @returns {Record<string, string>} */
    get headers() {
      return token ? { Authorization: `Bearer ${token}` } : {};
    },

    // Signing out here. The token itself stays valid until it ends: signOutEverywhere ends all tokens of the user.
    close() {
      clearTimeout(timer);
      token = null;
      changed(token);
    },

    // Requests that are refused at the same time share one sign-in. A request that was sent with an older token
    // is just sent again with the present one.
    async renew(refused) {
      if (token !== refused) return;
      renewing ??= signIn().then(use).finally(() => (renewing = null));
      await renewing;
    },

    // Reads send the consistency tokens of earlier writes, the newest ones: together at most 16,384 characters.
    get extensions() {
      return written.length > 0 ? { consistencyToken: written.join(",") } : {};
    },
    wrote(answer) {
      if (answer?.extensions?.consistencyToken) written.push(answer.extensions.consistencyToken);
      while (written.join().length > 3000) written.shift();
    },
  };
}

// Options of graphql-ws. Kith closes a connection with 4403 when its token has ended; graphql-ws connects again by
// itself, and has to bring a new one. connected is called after that, and at the start: ask then for what was missed.
export function socketOptions(url, session, connected) {
  let sent, refused;
  return {
    url: url.replace(/^http/, "ws"),
    connectionParams: async () => {
      if (refused !== undefined) await session.renew(refused);
      refused = undefined;
      sent = session.token;
      return session.headers;
    },
    on: {
      connected,
      closed: ({ code }) => {
        if (code === 4403) refused = sent;
      },
    },
    retryAttempts: Infinity,
  };
}

export const isUnauthenticated = (error) => error.extensions?.code === "UNAUTHENTICATED";

// ask is for clients that bring no links or exchanges of their own: it renews a token that is refused, and tries again.
export async function ask(url, session, { query, variables }, again = true) {
  const sent = session.token;
  const answer = await post(url, session.headers, { query, variables, extensions: session.extensions });
  if (again && answer.errors?.some(isUnauthenticated)) {
    await session.renew(sent);
    return ask(url, session, { query, variables }, false);
  }
  session.wrote(answer);
  return answer;
}

async function post(url, headers, body) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  return response.json();
}

export async function login(url, handle, password) {
  const query = "mutation Login($handle: String!, $password: String!) { login(handle: $handle, password: $password) { token } }";
  const { data, errors } = await post(url, {}, { query, variables: { handle, password } });
  if (!data?.login) throw Object.assign(new Error(errors[0].message), { errors });
  return data.login.token;
}

// renewToken answers null once Kith renews no more, --session-ttl after the password was given.
export async function renewToken(url, token) {
  const { data } = await post(url, { Authorization: `Bearer ${token}` }, { query: "mutation { renewToken { token } }" });
  return data?.renewToken?.token ?? null;
}

const expiry = (token) => JSON.parse(atob(token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/"))).exp * 1000;
