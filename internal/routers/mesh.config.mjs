// What docs/how-to/behind-a-router.md shows of the command mesh-compose: `mesh-compose -o supergraph.graphql`.
import { config } from "./mesh.mjs";

export const composeConfig = config([
  ["kith", process.env.KITH_URL ?? "http://127.0.0.1:8080/graphql", "kith.graphql"],
  ["articles", process.env.ARTICLES_URL ?? "http://127.0.0.1:8090/graphql", "articles.graphql"],
]);
