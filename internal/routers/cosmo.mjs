// Composes Kith and a second subgraph as WunderGraph Cosmo does: node cosmo.mjs SCHEMA. Prints what is wrong.
import { readFileSync } from "node:fs";
import { federateSubgraphs, ROUTER_COMPATIBILITY_VERSION_ONE } from "@wundergraph/composition";
import { parse } from "graphql";
import { typeDefs } from "./articles.mjs";

const composed = federateSubgraphs({
  subgraphs: [
    { name: "kith", url: "http://kith/graphql", definitions: parse(readFileSync(process.argv[2], "utf8")) },
    { name: "articles", url: "http://articles/graphql", definitions: typeDefs },
  ],
  version: ROUTER_COMPATIBILITY_VERSION_ONE,
});
for (const wrong of [...(composed.errors ?? []), ...composed.warnings]) console.log(wrong.message);
