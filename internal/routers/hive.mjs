// What docs/how-to/behind-a-router.md shows of Hive Gateway.
import { createServer } from "node:http";
import { createGatewayRuntime } from "@graphql-hive/gateway-runtime";

const passed = ["authorization", "kith-viewer"];

export const config = {
  propagateHeaders: {
    fromClientToSubgraphs({ request, context, subgraphName }) {
      if (subgraphName !== "kith") return {};
      const headers = Object.fromEntries(passed.map((name) => [name, request.headers.get(name)]));
      headers["kith-consistency"] = [request.headers.get("kith-consistency"), context.written].filter(Boolean).join(",") || null;
      return headers;
    },
    fromSubgraphsToClient({ response, context, subgraphName }) {
      const token = subgraphName === "kith" && response.headers.get("kith-consistency");
      if (!token) return {};
      context.written = [context.written, token].filter(Boolean).join(",");
      return { "kith-consistency": token };
    },
  },
};

export async function serve(supergraph, port) {
  const server = createServer(createGatewayRuntime({ supergraph, logging: false, ...config }));
  await new Promise((listening) => server.listen(port, "127.0.0.1", listening));
  return { url: `http://127.0.0.1:${server.address().port}/graphql` };
}
