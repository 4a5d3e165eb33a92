// Serves Kith and a second subgraph behind a router until its input ends: node run.mjs apollo|hive|mesh|stitch URL [SCHEMA].
// Without the file that `kith schema --federation` (for stitch, `kith schema`) has printed, the router asks Kith for its schema.
// Prints the router's address.
import { readFileSync, writeFileSync } from "node:fs";
import { IntrospectAndCompose } from "@apollo/gateway";
import { composeServices } from "@apollo/composition";
import { parse, print } from "graphql";
import { plain, serveArticles, typeDefs } from "./articles.mjs";
import { compose } from "./mesh.mjs";

const [router, kith, file] = process.argv.slice(2);
const articles = router === "stitch" ? null : await serveArticles();

function supergraph() {
  if (router === "mesh") {
    const other = file.replace("kith.graphql", "articles.graphql");
    writeFileSync(other, print(typeDefs));
    return compose([["kith", kith, file], ["articles", articles, other]]);
  }
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

const { serve, stitched } = await import(`./${router === "mesh" ? "hive" : router}.mjs`);
const { url } = await serve(stitched ? stitched(kith, file, plain) : await supergraph(), 0);
console.log(url);
process.stdin.on("end", () => process.exit()).resume();
