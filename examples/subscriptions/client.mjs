// Live updates without a cache: graphql-ws, or graphql-sse where WebSockets do not pass.
import { socketOptions, streamOptions } from "@kith/client";
import { createClient as createSocket } from "graphql-ws";
import { createClient as createStream } from "graphql-sse";

const query = "subscription { followerAdded { edge { followedAt node { id handle } } } }";

// Both call seen with each follower until the function that they return is called. connected is called whenever the subscription
// has begun: ask then for what happened before.
export const watchSocket = (url, session, connected, seen) => watch(createSocket(socketOptions(url, session, connected)), seen);
export const watchStream = (url, session, connected, seen) => watch(createStream(streamOptions(url, session, connected)), seen);

// Kith ends a subscription that too much has happened for, or that could not begin. Libraries do not begin it again.
function watch(client, seen) {
  let isOver = false;
  const begin = () => isOver || client.subscribe({ query }, { next: ({ data }) => data && seen(data.followerAdded), error: again, complete: again });
  const again = (problem) => {
    if (problem) console.error(problem);
    setTimeout(begin, 2_000 + 2_000 * Math.random()); // clients that were ended together come back one by one
  };
  begin();
  return () => {
    isOver = true;
    client.dispose();
  };
}
