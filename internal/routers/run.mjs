// Serves Kith and a second subgraph behind a router until its input ends: node run.mjs apollo|hive|mesh|stitch URL SCHEMA OTHER.
// Without the file that `kith schema --federation` (for stitch, `kith schema`) has printed, which then is -, the router asks Kith
// for its schema. OTHER is articles or magazine. Prints the router's address; that of the second subgraph if the router is none.
import { readFileSync, writeFileSync } from "node:fs";
import { IntrospectAndCompose } from "@apollo/gateway";
import { composeServices } from "@apollo/composition";
import { parse, print } from "graphql";
import { compose } from "./mesh.mjs";

const [router, kith, file, second] = process.argv.slice(2);
const { plain, serveSubgraph, typeDefs } = await import(`./${second}.mjs`);
const other = router === "stitch" ? null : await serveSubgraph();

function supergraph() {
  if (router === "mesh") {
    const its = file.replace("kith.graphql", `${second}.graphql`);
    writeFileSync(its, print(typeDefs));
    return compose([["kith", kith, file], [second, other, its]]);
  }
  if (file === "-") {
    return new IntrospectAndCompose({ subgraphs: [{ name: "kith", url: kith }, { name: second, url: other }] });
  }
  const composed = composeServices([
    { name: "kith", url: kith, typeDefs: parse(readFileSync(file, "utf8")) },
    { name: second, url: other, typeDefs },
  ]);
  if (composed.errors) throw new Error(composed.errors.map((e) => e.message).join("\n"));
  return composed.supergraphSdl;
}

if (router === "none") {
  writeFileSync(file.replace("kith.graphql", "articles.graphql"), print(typeDefs));
  console.log(other);
} else {
  const { serve, stitched } = await import(`./${router === "mesh" ? "hive" : router}.mjs`);
  const { url } = await serve(stitched ? stitched(kith, file, plain, second === "magazine" ? "kithUsers" : "users") : await supergraph(), 0);
  console.log(url);
}
process.stdin.on("end", () => process.exit()).resume();
