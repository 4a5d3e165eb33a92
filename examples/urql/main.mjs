// Runs client.mjs against Kith, and prints what it shows: node main.mjs URL HANDLE PASSWORD HANDLE-TO-FOLLOW.
// KITH_TOKEN is a token of an earlier visit. It ends with its input.
import { createSession, login, renewToken } from "@kith/client";
import WebSocket from "ws";
import { createClient, Dismiss, Follow, Followers, Followings, NewFollowers, Profile, Suggestions, Undismiss, Unfollow } from "./client.mjs";

globalThis.WebSocket ??= WebSocket; // browsers and Node.js 22 have one

const [url, handle, password, other] = process.argv.slice(2);
if (!other) {
  console.error("arguments are missing: node main.mjs URL HANDLE PASSWORD HANDLE-TO-FOLLOW");
  process.exit(2);
}
const say = (what, more) => console.log(JSON.stringify({ what, ...more }));
const signIn = () => login(url, handle, password);
const extend = (token) => renewToken(url, token);
const session = createSession({ token: process.env.KITH_TOKEN ?? (await signIn()), signIn, extend });
const client = createClient(url, session);

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

await client.mutation(Unfollow, { userId: data.user.id });
say("unfollowed");

// Dismissing a suggestion, and undoing it.
const { data: first } = await client.query(Suggestions, {});
client.query(Suggestions, {}).subscribe(({ data, stale }) => {
  if (!stale) say("suggested", { handles: data.viewer.user.followSuggestions.edges.map(({ node }) => node.handle) });
});
const userId = first.viewer.user.followSuggestions.edges[0].node.id;
await client.mutation(Dismiss, { userId });
say("dismissed");
await client.mutation(Undismiss, { userId });
say("undone");

client.subscription(NewFollowers, {}).subscribe(({ data }) => {
  const { followerCount, followers } = client.readQuery(Followers, {}).data.viewer.user;
  say("follower", { handle: data.followerAdded.edge.node.handle, followers: followerCount, handles: followers.edges.map(({ node }) => node.handle) });
});
process.stdin.on("end", () => process.exit()).resume();
