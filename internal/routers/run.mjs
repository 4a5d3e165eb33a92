// Serves Kith and a second subgraph behind a router until its input ends: node run.mjs apollo|hive|stitch URL [SCHEMA].
// Without the file that `kith schema --federation` (for stitch, `kith schema`) has printed, the router asks Kith for its schema.
// Prints the router's address.
import { readFileSync } from "node:fs";
import { IntrospectAndCompose } from "@apollo/gateway";
import { composeServices } from "@apollo/composition";
import { parse } from "graphql";
import { plain, serveArticles, typeDefs } from "./articles.mjs";

const [router, kith, file] = process.argv.slice(2);
const articles = router === "stitch" ? null : await serveArticles();

function supergraph() {
  if (!file) {
    return new IntrospectAndCompose({ subgraphs: [{ name: "kith", url: kith }, { name: "articles", url: articles }] });
  }
  const composed = composeServices([
    { name: "kith", url: kith, typeDefs: parse(readFileSync(file, "utf8")) },
    { name: "articles", url: articles, typeDefs },
  ]);
  if (composed.errors) throw new Error(composed.errors.map((e) => e.message).join("\n"));
  return composed.supergraphSdl;
}

const { serve, stitched } = await import(`./${router}.mjs`);
const { url } = await serve(stitched ? stitched(kith, file, plain) : supergraph(), 0);
console.log(url);
process.stdin.on("end", () => process.exit()).resume();
