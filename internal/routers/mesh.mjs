// What docs/how-to/behind-a-router.md shows of GraphQL Mesh.
import { getComposedSchemaFromConfig, loadGraphQLHTTPSubgraph } from "@graphql-mesh/compose-cli";

// Each subgraph is its name, its address and a file with its schema; Kith's is what `kith schema --federation` has printed.
export const config = (subgraphs) => ({
  subgraphs: subgraphs.map(([name, endpoint, source]) => ({ sourceHandler: loadGraphQLHTTPSubgraph(name, { endpoint, source }) })),
});

const silent = { child: () => silent, debug() {}, info() {}, log() {}, warn: console.error, error: console.error };

export const compose = (subgraphs) => getComposedSchemaFromConfig(config(subgraphs), silent);
