import { createClient } from "graphql-ws";
import WebSocket from "ws";
import { job, run, say } from "./job.mjs";

const client = createClient({
  url: job.url,
  webSocketImpl: WebSocket,
  connectionParams: job.headers,
  retryAttempts: job.retries ?? 0,
  retryWait: () => new Promise((resolve) => setTimeout(resolve, 100)),
  shouldRetry: () => true,
  keepAlive: 20,
  on: {
    connected: () => say("connected"),
    closed: ({ code, reason }) => say("closed", { code, reason }),
    pong: (received) => received && say("pong"),
  },
});
await run(client);
await client.dispose();
