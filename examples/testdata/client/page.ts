// Uses the packed web/client as a page without a library does, and gives its options to the libraries' own types:
// node page.js URL HANDLE PASSWORD OTHER, with a token that has ended in KITH_TOKEN. Prints what happened as JSON.
import { InMemoryCache } from "@apollo/client";
import { relayStylePagination } from "@apollo/client/utilities";
import { Client, fetchExchange } from "@urql/core";
import { cacheExchange, type CacheExchangeOpts } from "@urql/exchange-graphcache";
import { relayPagination } from "@urql/exchange-graphcache/extras";
import { type ClientOptions as StreamOptions } from "graphql-sse";
import { type ClientOptions as SocketOptions } from "graphql-ws";
import * as client from "@kith/client";
import { apolloCache, ask, createSession, graphcache, login, optimistic, renewToken, socketOptions, streamOptions, type TypedDocument } from "@kith/client";

const [url, handle, password, other] = process.argv.slice(2) as [string, string, string, string];
const ended = process.env.KITH_TOKEN!;

const Viewer: TypedDocument<{ viewer: { user: { handle: string } } | null }, {}> = "{ viewer { user { handle } } }";
const Follow: TypedDocument<{ follow: { changed: boolean } | null }, { userId: string }> =
  "mutation Follow($userId: ID!) { follow(userId: $userId) { changed } }";

let signIns = 0;
const tokens: (string | null)[] = [];
const session = createSession({
  token: ended,
  signIn: () => (signIns++, login(url, handle, password)),
  extend: (token) => renewToken(url, token),
  changed: (token) => tokens.push(token),
});

// Requests with a token that has ended share one sign-in, and each is sent again.
const answers = await Promise.all([1, 2, 3].map(() => ask(url, session, { query: Viewer })));
const handles: (string | undefined)[] = answers.map(({ data }) => data?.viewer?.user.handle);
const changed: boolean | undefined = (await ask(url, session, { query: Follow, variables: { userId: other } })).data?.follow?.changed;
// @ts-expect-error userId is required
const code = (await ask(url, session, { query: Follow, variables: {} })).errors?.[0]?.extensions?.code;

// However many writes there are, the header stays within its bound, and has the newest token.
const written = session.headers["Kith-Consistency"];
const userId = other;
for (let i = 0; i < 80; i++) {
  const name = i % 2 ? "follow" : "unfollow";
  await ask(url, session, { query: `mutation ($userId: ID!) { ${name}(userId: $userId) { changed } }`, variables: { userId } });
}
const longest = session.headers["Kith-Consistency"]!.length;
const { now } = Date;
Date.now = () => now() + 31_000;
const halfAMinuteLater = session.headers["Kith-Consistency"] ?? null;
Date.now = now;

const renewed = await renewToken(url, session.token!);
const refusedLogin = await login(url, handle, "not the password").catch(({ errors }) => errors[0].extensions.code);

// What answers in the gateway's place has a status, and perhaps JSON.
const { fetch } = globalThis;
const proxied: string[] = [];
for (const body of ["<h1>Bad gateway</h1>", '{"message": "no upstream"}']) {
  globalThis.fetch = async () => new Response(body, { status: 502 });
  proxied.push(await login(url, handle, password).catch(({ message }) => message));
}
globalThis.fetch = fetch;

// A library may give a request whole. Its headers stay, and it can be sent once more.
const ofRequests = createSession({ token: ended, signIn: () => login(url, handle, password) });
const whole = new Request(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ query: Viewer }) });
handles.push((await (await ofRequests.fetch(whole)).json()).data?.viewer?.user.handle);

// A session that is closed while it signs in stays closed.
const slow = createSession({ token: ended, signIn: async () => (slow.close(), login(url, handle, password)) });
const closed = await ask(url, slow, { query: Viewer });

// A token that could not be extended is tried again while it is valid.
let extensions = 0;
const until = (seconds: number) => `e30.${btoa(JSON.stringify({ exp: Date.now() / 1000 + seconds }))}.`;
const again = new Promise<boolean>((done) =>
  createSession({
    token: until(6),
    extend: async () => {
      if (extensions++ === 0) throw new Error("away");
      return until(60);
    },
    changed: () => done(extensions === 2),
  }),
);

// Somebody without a token signs in.
const first = createSession({ signIn: () => login(url, handle, password) });
await first.renew(null);
handles.push((await ask(url, first, { query: Viewer })).data?.viewer?.user.handle);

// Without signIn, a token that is refused closes the session.
let without = 0;
const unable = createSession({ token: ended, changed: () => without++ });
const refused = await ask(url, unable, { query: Viewer });

// A block shows at once in what the cache has, and is taken back because it is refused.
let refuse = () => {};
const refusal = new Promise<void>((go) => (refuse = go));
const refusing: typeof fetch = async (input, init) => {
  if (!String(init?.body).includes("mutation")) return session.fetch(input, init);
  await refusal;
  return new Response("{}", { status: 500 });
};
const cache = cacheExchange(optimistic(graphcache(relayPagination)) satisfies CacheExchangeOpts);
const urql = new Client({ url, fetch: refusing, preferGetMethod: false, exchanges: [cache, fetchExchange] });
const Followings = `query { viewer { id user { id followingCount followings(first: 9) { edges { cursor node { id viewerRelationship { id status } } } } } } }`;
const shown: unknown[] = [];
const look = ({ data }: { data?: any }) => {
  const { followingCount, followings } = data.viewer.user;
  shown.push([followingCount, followings.edges.some((edge: { node: { id: string } }) => edge.node.id === userId)]);
};
await urql.query(Followings, {}).toPromise().then(look);
const blocking = urql.mutation("mutation ($userId: ID!) { block(userId: $userId) { changed viewer { id user { id followingCount } } } }", { userId }).toPromise();
look(await urql.query(Followings, {}, { requestPolicy: "cache-only" }).toPromise());
refuse();
await blocking;
look(await urql.query(Followings, {}, { requestPolicy: "cache-only" }).toPromise());

// Whoever is no longer followed, or no longer follows, is no friend. Whoever is followed, or has asked and is accepted, may be one: lists are asked for again.
const befriended = async (change: string, list: string) => {
  const user = (id: string) => ({ __typename: "User", id });
  const of = (kind: string) => ({ __typename: `${kind}Connection`, edges: [{ __typename: `${kind}Edge`, cursor: "c", node: user("2") }] });
  const viewer = { __typename: "Viewer", id: "viewer_1", user: { ...user("1"), friends: of("Match"), [list]: of("Follow") } };
  const payload = { [change]: { __typename: "RelationshipPayload", changed: true } };
  const canned: typeof fetch = async (_, init) => Response.json({ data: String(init?.body).includes("mutation") ? payload : { viewer } });
  const known = new Client({ url, fetch: canned, preferGetMethod: false, exchanges: [cacheExchange(optimistic({ ...graphcache(relayPagination), viewerId: "1" }) satisfies CacheExchangeOpts), fetchExchange] });
  const Lists = `query { viewer { id user { id friends(first: 9) { edges { cursor node { id } } } ${list}(first: 9) { edges { cursor node { id } } } } } }`;
  await known.query(Lists, {}).toPromise();
  await known.mutation(`mutation { ${change}(userId: "2") { changed } }`, {}).toPromise();
  const { data } = await known.query(Lists, {}, { requestPolicy: "cache-only" }).toPromise();
  return data && [data.viewer.user.friends.edges.length, data.viewer.user[list].edges.length];
};
const friends = [await befriended("unfollow", "followings"), await befriended("removeFollower", "followers"), await befriended("follow", "followers"), await befriended("acceptRequest", "followers"), await befriended("removeFriend", "followings"), await befriended("acceptRequests", "followers"), await befriended("followMany", "followings")];

// What is shown while a change is under way, and after its answer: null if it is asked for again. Lists may be of nodes, an edge may lack
// its node, an argument may be left out, and what is a favorite already counts once.
const meanwhile = async (read: string, data: object, change: string, answer: object, look: (data: any) => unknown) => {
  let end = () => {};
  const pending = new Promise<void>((go) => (end = go));
  const canned: typeof fetch = async (_, init) => (String(init?.body).includes("mutation") ? (await pending, Response.json({ data: answer })) : Response.json({ data }));
  const known = new Client({ url, fetch: canned, preferGetMethod: false, exchanges: [cacheExchange(optimistic({ ...graphcache(relayPagination), viewerId: "1" }) satisfies CacheExchangeOpts), fetchExchange] });
  const seen = async () => {
    const { data } = await known.query(read, {}, { requestPolicy: "cache-only" }).toPromise();
    return data ? look(data) : null;
  };
  await known.query(read, {}).toPromise();
  const changing = known.mutation(`mutation { ${change} }`, {}).toPromise();
  const before = await seen();
  end();
  await changing;
  return [before, await seen()];
};
const [user, payload] = [(id: string) => ({ __typename: "User", id }), { __typename: "RelationshipPayload", changed: true }];
const viewerWith = (page: object) => ({ viewer: { __typename: "Viewer", id: "viewer_1", user: { ...user("1"), followings: { __typename: "FollowConnection", ...page } } } });
const nodesOf = "{ viewer { id user { id followings(first: 9) { nodes { id } } } } }";
const edgesOf = "{ viewer { id user { id followings(first: 9) { edges { cursor node { id } } } } } }";
const ids = ({ viewer: { user: { followings: { nodes, edges } } } }: any) => (nodes ?? edges.map(({ node }: any) => node)).map(({ id }: any) => id).join();
const edge = { __typename: "FollowEdge", cursor: "c" };
const relation = { __typename: "Relationship", id: "rel_1_2", muted: null };
const post = { __typename: "Post", id: "9", viewerHasFavorited: true, favoritesReceivedCount: 4 };
const during = [
  await meanwhile(nodesOf, viewerWith({ nodes: [user("2"), user("3")] }), `unfollow(userId: "2") { changed }`, { unfollow: payload }, ids),
  await meanwhile(nodesOf, viewerWith({ nodes: [user("3")] }), `follow(userId: "2") { changed followingEdge { cursor node { id } } }`, { follow: { ...payload, followingEdge: { ...edge, node: user("2") } } }, ids),
  await meanwhile(edgesOf, viewerWith({ edges: [{ ...edge, node: user("3") }] }), `follow(userId: "2") { changed followingEdge { cursor } }`, { follow: { ...payload, followingEdge: edge } }, ids),
  await meanwhile("{ user(by: {id: 2}) { id viewerRelationship { id muted } } }", { user: { ...user("2"), viewerRelationship: relation } }, `mute(userId: "2") { changed relationship { id muted } }`, { mute: { ...payload, relationship: { ...relation, muted: "EVERYTHING" } } }, ({ user }) => user.viewerRelationship.muted),
  await meanwhile("{ node(id: 9) { id ... on Post { viewerHasFavorited favoritesReceivedCount } } }", { node: post }, `favorite(postId: "9") { changed post { id viewerHasFavorited favoritesReceivedCount } }`, { favorite: { __typename: "FavoritePayload", changed: false, post } }, ({ node }) => node.favoritesReceivedCount),
];

// An identity provider that does not answer for a while does not end subscriptions: each attempt to connect asks it again.
let away = true;
const troubled = createSession({ token: ended, signIn: async () => (away ? Promise.reject(new Error("away")) : login(url, handle, password)) });
const { connectionParams, on } = socketOptions(url, troubled);
const attempts: unknown[] = [];
while (attempts.length < 3) {
  attempts.push(await connectionParams().then(({ Authorization }) => Authorization === `Bearer ${ended}`, String));
  on.closed({ code: 4403 });
  away = attempts.length < 2;
}

const extended = await again;
session.close();
const anonymous = await ask(url, session, { query: Viewer });

const apollo = new InMemoryCache(apolloCache(relayStylePagination));
const socket: SocketOptions = socketOptions(url, session);
const stream: StreamOptions = streamOptions(url, session);

// Waits between attempts, without waiting.
const waits: number[] = [];
Object.assign(globalThis, { setTimeout: (go: () => void, wait: number) => (waits.push(wait), go()) });
for (const { retryWait } of [socketOptions(url, session), streamOptions(url, session)]) for (const retries of [0, 100]) await retryWait(retries);

console.log(JSON.stringify({
  exports: Object.keys(client).sort(), signIns, handles, changed, code, written, longest, halfAMinuteLater, refusedLogin, proxied,
  renewed: renewed !== null, extended, told: tokens.length, last: tokens.at(-1), headers: session.headers,
  closed: [slow.token, closed.errors?.[0]?.extensions?.code],
  unable: [unable.token, refused.errors?.[0]?.extensions?.code, without],
  anonymous: anonymous.data, shown, friends, during, attempts, apollo: Object.keys(apollo.policies).length > 0,
  urls: [socket.url, stream.url], waits,
}));
process.exit();
