// Runs client.mjs against Kith, and prints what it shows: node main.mjs URL HANDLE PASSWORD HANDLE-TO-FOLLOW.
// KITH_TOKEN is a token of an earlier visit. It ends with its input.
import { createSession, login, renewToken } from "@kith/client";
import WebSocket from "ws";
import { createClient, dismiss, Followers, follow, Followings, followLive, Profile, Suggestions, undismiss, unfollow } from "./client.mjs";

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
const profile = { query: Profile, variables: { handle: other } };
const [{ data }] = await Promise.all([client.query(profile), client.query({ query: Followers })]);

// The page shows a list and a button.
const list = client.watchQuery({ query: Followings });
const button = client.watchQuery(profile);
function show() {
  const { followings, followingCount } = client.readQuery({ query: Followings }, true)?.viewer.user ?? {};
  const { user } = client.readQuery(profile, true);
  say("shown", {
    handles: followings?.edges.map(({ node }) => node.handle),
    followings: followingCount,
    followers: user.followerCount,
    status: user.viewerRelationship.status,
  });
}
list.subscribe(show);
button.subscribe(show);
let page = await client.query({ query: Followings });
while (page.data.viewer.user.followings.pageInfo.hasNextPage) {
  page = await list.fetchMore({ variables: { after: page.data.viewer.user.followings.pageInfo.endCursor } });
}

show();
await follow(client, data.viewer, data.user);
say("followed");

// Nobody can follow oneself: the follow is shown, refused, and taken back.
const self = await client.query({ query: Profile, variables: { handle } });
await follow(client, self.data.viewer, self.data.user).catch(({ errors }) => say("refused", { code: errors[0].extensions.code }));
show();

const { viewer, user } = client.readQuery(profile);
await unfollow(client, viewer, user);
say("unfollowed");

// Dismissing a suggestion, and undoing it.
const suggestions = client.watchQuery({ query: Suggestions });
const edges = () => suggestions.getCurrentResult().data.viewer.user.followSuggestions.edges;
suggestions.subscribe(({ data }) => data && say("suggested", { handles: edges().map(({ node }) => node.handle) }));
await client.query({ query: Suggestions });
const [{ node: dismissed }] = edges();
await dismiss(client, viewer, dismissed.id);
say("dismissed");
await undismiss(client, dismissed.id);
say("undone");

followLive(client, data.viewer.user.id, (follower) => {
  const { followerCount, followers } = client.readQuery({ query: Followers }).viewer.user;
  say("follower", { handle: follower.handle, followers: followerCount, handles: followers.edges.map(({ node }) => node.handle) });
});
process.stdin.on("end", () => process.exit()).resume();
