// What docs/bff.md shows of the command hive-gateway: `hive-gateway supergraph supergraph.graphql`.
import { config } from "./hive.mjs";

export const gatewayConfig = config;
