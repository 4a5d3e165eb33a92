// Runs client.mjs against Kith, and prints what it shows: node main.mjs URL HANDLE PASSWORD HANDLE-TO-FOLLOW.
// KITH_TOKEN is a token of an earlier visit. It ends with its input.
import WebSocket from "ws";
import { createSession, login, renewToken } from "../session.mjs";
import { createClient, Follow, Followers, Followings, NewFollowers, Profile } from "./client.mjs";

globalThis.WebSocket ??= WebSocket; // browsers and Node.js 22 have one

const [url, handle, password, other] = process.argv.slice(2);
const say = (what, more) => console.log(JSON.stringify({ what, ...more }));
const signIn = () => login(url, handle, password);
const extend = (token) => renewToken(url, token);
const client = createClient(url, createSession(signIn, process.env.KITH_TOKEN ?? (await signIn()), extend));

// Both find out that the token has expired.
const [{ data }] = await Promise.all([client.query(Profile, { handle: other }), client.query(Followers, {})]);

// The page shows a list and a button.
let list, button;
function show() {
  const { followings, followingCount } = list?.viewer.user ?? {};
  say("shown", {
    handles: followings?.edges.map(({ node }) => node.handle),
    followings: followingCount,
    followers: button.user.followerCount,
    status: button.user.viewerRelationship.status,
  });
}
client.query(Profile, { handle: other }).subscribe((result) => ((button = result.data), show()));
client.query(Followings, {}).subscribe((result) => ((list = result.data), show()));
let page = await client.query(Followings, {});
while (page.data.viewer.user.followings.pageInfo.hasNextPage) {
  page = await client.query(Followings, { after: page.data.viewer.user.followings.pageInfo.endCursor });
}

await client.mutation(Follow, { userId: data.user.id });
say("followed");

// Nobody can follow oneself: the follow is shown, refused, and taken back.
await client.query(Profile, { handle });
const refused = await client.mutation(Follow, { userId: data.viewer.user.id });
say("refused", { code: refused.error.graphQLErrors[0].extensions.code });
show();

client.subscription(NewFollowers, {}).subscribe(({ data }) => {
  const { followerCount, followers } = client.readQuery(Followers, {}).data.viewer.user;
  say("follower", { handle: data.followerAdded.edge.node.handle, followers: followerCount, handles: followers.edges.map(({ node }) => node.handle) });
});
process.stdin.on("end", () => process.exit()).resume();
