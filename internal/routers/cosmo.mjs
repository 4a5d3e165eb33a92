// Composes Kith and a second subgraph, articles or magazine, as WunderGraph Cosmo does: node cosmo.mjs SCHEMA OTHER. Prints what is wrong.
import { readFileSync } from "node:fs";
import { federateSubgraphs, ROUTER_COMPATIBILITY_VERSION_ONE } from "@wundergraph/composition";
import { parse } from "graphql";

const [file, second] = process.argv.slice(2);
const { typeDefs } = await import(`./${second}.mjs`);
const composed = federateSubgraphs({
  subgraphs: [
    { name: "kith", url: "http://kith/graphql", definitions: parse(readFileSync(file, "utf8")) },
    { name: second, url: `http://${second}/graphql`, definitions: typeDefs },
  ],
  version: ROUTER_COMPATIBILITY_VERSION_ONE,
});
for (const wrong of [...(composed.errors ?? []), ...composed.warnings]) console.log(wrong.message);
