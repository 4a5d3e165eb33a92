// Runs client.mjs against Kith, and prints the followers as they come: node main.mjs URL HANDLE PASSWORD ws|sse. It ends
// with its input.
import { ask, createSession, login, renewToken } from "@kith/client";
import WebSocket from "ws";
import { watchSocket, watchStream } from "./client.mjs";

globalThis.WebSocket ??= WebSocket; // browsers and Node.js 22 have one

const [url, handle, password, transport] = process.argv.slice(2);
if (!transport) {
  console.error("arguments are missing: node main.mjs URL HANDLE PASSWORD ws|sse");
  process.exit(2);
}
const say = (what, more) => console.log(JSON.stringify({ what, ...more }));
const signIn = () => login(url, handle, password);
const extend = (token) => renewToken(url, token);
const session = createSession({ token: await signIn(), signIn, extend });

async function connected() {
  const { data } = await ask(url, session, { query: "query Followers { viewer { user { followers { nodes { handle } } } } }" });
  if (data) say("connected", { handles: data.viewer.user.followers.nodes.map((user) => user.handle) });
}
const watch = transport === "sse" ? watchStream : watchSocket;
watch(url, session, connected, ({ edge }) => say("follower", { handle: edge.node.handle }));
process.stdin.on("end", () => process.exit()).resume();
