import { createClient } from "graphql-sse";
import { job, run, say } from "./job.mjs";

const client = createClient({
  url: job.url,
  headers: job.headers,
  retryAttempts: job.retries ?? 0,
  retry: () => new Promise((resolve) => setTimeout(resolve, 100)),
  onMessage: ({ event }) => event === "complete" && say("completed by the server"),
});
await run(client);
client.dispose();
