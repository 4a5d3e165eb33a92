// Who is signed in, and what they have written: what every client needs, whatever its library.

// Consistency tokens are sent for half a minute: reads that bring them pass Kith's caches, and wait if a row will never come. The newest ones
// are sent in one header, which is at most this long, or has one token.
const writtenLife = 30_000;
const writtenLength = 3_000;

// createSession returns a session. index.d.ts says what its options are.
export function createSession({ token = null, signIn, extend, changed = () => {} } = {}) {
  let written = []; // pairs of a token and when it came
  let renewing = null;
  let timer;

  // A token is extended when half of its time is over. If that fails, half of the rest is waited for, until the end is near: a gateway that does
  // not answer just then does not cost a person the password. If the token ends, the next refused request signs in.
  function plan() {
    clearTimeout(timer);
    const left = extend && token ? expiry(token) - Date.now() : 0;
    const old = token;
    const extended = (fresh) => token === old && (fresh ? use(fresh) : left > 2_000 && plan());
    if (left > 0) timer = setTimeout(() => extend(old).then(extended, () => extended(null)).catch(() => {}), Math.min(left / 2, 2 ** 31 - 1));
  }
  function use(fresh) {
    token = fresh;
    plan();
    changed(token);
  }
  plan();

  function consistency() {
    written = written.filter(([, at]) => Date.now() - at < writtenLife);
    return written.map(([one]) => one).join(",");
  }

  const session = {
    get token() {
      return token;
    },
    get headers() {
      const tokens = consistency();
      return {
        ...(token && { Authorization: `Bearer ${token}` }),
        ...(tokens && { "Kith-Consistency": tokens }),
      };
    },
    close() {
      written = [];
      use(null);
    },

    // Requests that are refused at the same time share one sign-in. If the token is a newer one by now, there is nothing to do.
    async renew(refused) {
      if (token !== refused) return;
      if (!signIn) return session.close();
      renewing ??= signIn()
        .then((fresh) => token === refused && use(fresh)) // unless the session has been closed meanwhile
        .finally(() => (renewing = null));
      await renewing;
    },

    async fetch(url, init = {}) {
      const send = () => {
        const headers = new Headers(init.headers ?? url.headers);
        for (const [name, value] of Object.entries(session.headers)) headers.set(name, value);
        return globalThis.fetch(url instanceof Request ? url.clone() : url, { ...init, headers });
      };
      const sent = token;
      let response = await send();
      if (response.status === 401 && sent) {
        await session.renew(sent);
        if (token) response = await send();
      }
      const wrote = response.headers.get("Kith-Consistency");
      if (wrote) written.push([wrote, Date.now()]);
      while (written.length > 1 && consistency().length > writtenLength) written.shift();
      return response;
    },
  };
  return session;
}

// ask is for clients that bring no library of their own.
export async function ask(url, { fetch }, { query, variables }) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ query: String(query), variables }),
  });
  const answer = await response.json().catch(() => null);
  if (!answer?.data && !answer?.errors?.length) throw new Error(`The gateway has not answered: HTTP ${response.status}.`); // but a proxy, perhaps
  return answer;
}

export async function login(url, handle, password) {
  const query = "mutation Login($handle: String!, $password: String!) { login(handle: $handle, password: $password) { token } }";
  const { data, errors } = await ask(url, globalThis, { query, variables: { handle, password } });
  if (!data?.login) throw Object.assign(new Error(errors[0].message), { errors });
  return data.login.token;
}

// Kith answers null once it renews no more, --session-ttl after the password was given.
export async function renewToken(url, token) {
  const { data } = await ask(url, createSession({ token }), { query: "mutation { renewToken { token } }" });
  return data?.renewToken?.token ?? null;
}

// expiry is when a JWT ends, in milliseconds as in Date.now(), or 0 if it does not say so.
function expiry(token) {
  try {
    return JSON.parse(atob(token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/"))).exp * 1000 || 0;
  } catch {
    return 0;
  }
}
