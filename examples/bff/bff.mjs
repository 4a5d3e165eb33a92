// A backend for front ends with Hive Gateway in front of Kith.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { createGatewayRuntime } from "@graphql-hive/gateway-runtime";
import { ask, createSession } from "@kith/client";

// The signed-in user, by cookie. Browsers see neither tokens nor what they have written. With several instances, keep
// this where all of them find it.
const sessions = new Map();

// kith is Kith's address, such as https://kith.internal/graphql, schema the output of `kith schema`. signIn gets the backend's own
// token, which needs the scope act-as. A session ends after some seconds.
export async function createBff(kith, schema, signIn, sessionSeconds = 12 * 60 * 60) {
  const backend = createSession({ token: await signIn(), signIn });

  // Every request to Kith passes here, those for entities and lists of ids as well.
  const asUser = {
    onFetch({ context, fetchFn, setFetchFn }) {
      const session = sessions.get(cookie(context?.request?.headers.get("cookie")));
      setFetchFn(async (url, options, ...rest) => {
        const request = () => {
          const headers = { ...options.headers, ...backend.headers };
          if (session) headers["Kith-Viewer"] = session.userId;
          if (session?.written.length) headers["Kith-Consistency"] = session.written.join(",");
          return fetchFn(url, { ...options, headers }, ...rest);
        };
        const sent = backend.token;
        let response = await request();
        if (response.status === 401) {
          await backend.renew(sent);
          response = await request();
        }
        const written = response.headers.get("Kith-Consistency");
        if (session && written) {
          session.written = [...session.written, written];
          while (session.written.length > 1 && session.written.join(",").length > 3_000) session.written.shift(); // servers refuse long headers
          setTimeout(() => (session.written = session.written.filter((one) => one !== written)), 30_000).unref();
        }
        return response;
      });
    },
  };

  const gateway = createGatewayRuntime({
    proxy: { endpoint: kith },
    schema,
    logging: false,
    plugins: () => [asUser],
  });
  return createServer((request, response) =>
    request.url === "/login" ? login(kith, sessionSeconds, request, response).catch(() => response.writeHead(502).end()) : gateway(request, response),
  );
}

// Kith checks the password. With an identity provider, this is the end of its flow instead.
async function login(kith, sessionSeconds, request, response) {
  // A form on another site could sign its visitors in as somebody else. It cannot have this type.
  if (!request.headers["content-type"]?.startsWith("application/json")) return response.writeHead(415).end();
  const isShort = Number(request.headers["content-length"]) <= 4096; // whoever is not signed in gets no more memory
  const variables = isShort && (await json(request).catch(() => null));
  if (!variables) return response.writeHead(400).end();
  const { data } = await ask(kith, globalThis, {
    query: "mutation Login($handle: String!, $password: String!) { login(handle: $handle, password: $password) { viewer { user { id } } } }",
    variables,
  });
  if (!data?.login) return response.writeHead(401).end();
  const key = randomUUID();
  sessions.delete(cookie(request.headers.cookie));
  sessions.set(key, { userId: data.login.viewer.user.id, written: [] });
  setTimeout(() => sessions.delete(key), sessionSeconds * 1000).unref();
  // SameSite keeps other sites from writing in the user's name.
  response.writeHead(204, { "Set-Cookie": `session=${key}; Max-Age=${sessionSeconds}; HttpOnly; Secure; SameSite=Strict; Path=/` }).end();
}

const cookie = (header) => /(?:^|; )session=([^;]+)/.exec(header ?? "")?.[1];
