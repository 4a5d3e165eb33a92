// The copy of @kith/client, as examples/go/copy: reads what kith changes prints.
import { createInterface } from "node:readline";
import { edgesCopy } from "../../../web/client/copy.js";

const copy = edgesCopy();
let digests = 0;
let differ = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const event = JSON.parse(line);
  digests += event.type === "kith.digests" ? 1 : 0;
  const users = copy.take(event);
  if (!users) continue;
  differ++;
  console.log(JSON.stringify({ differs: event.subject, users }));
}
console.log(JSON.stringify({ digests, differ, edges: copy.size }));
process.exitCode = differ ? 1 : 0;
