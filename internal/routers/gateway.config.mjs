// What docs/how-to/behind-a-router.md shows of the command hive-gateway: `hive-gateway supergraph supergraph.graphql`.
import { config } from "./hive.mjs";

export const gatewayConfig = config;
