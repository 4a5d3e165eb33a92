// What docs/how-to/behind-a-router.md shows of Apollo.
import { ApolloServer } from "@apollo/server";
import { startStandaloneServer } from "@apollo/server/standalone";
import { ApolloGateway, RemoteGraphQLDataSource } from "@apollo/gateway";

const passed = ["authorization", "kith-viewer", "kith-consistency"];

// Kith is asked as the client, and sees what the client has written, also earlier in the same operation.
class Kith extends RemoteGraphQLDataSource {
  willSendRequest({ request, context }) {
    for (const name of passed) { // without a context the router asks for the schema
      if (context?.[name]) request.http.headers.set(name, context[name]);
    }
  }
  didReceiveResponse({ response, context }) {
    const token = response.http.headers.get("kith-consistency");
    if (token) {
      context.written = [context.written, token].filter(Boolean).join(",");
      context["kith-consistency"] = [context["kith-consistency"], token].filter(Boolean).join(",");
    }
    return response;
  }
}

const tokens = {
  async requestDidStart() {
    return {
      async willSendResponse({ response, contextValue }) {
        if (contextValue.written) response.http.headers.set("kith-consistency", contextValue.written);
      },
    };
  },
};

export async function serve(supergraphSdl, port) {
  const gateway = new ApolloGateway({
    supergraphSdl,
    buildService: ({ name, url }) => (name === "kith" ? new Kith({ url }) : new RemoteGraphQLDataSource({ url })),
  });
  const server = new ApolloServer({ gateway, plugins: [tokens] });
  return startStandaloneServer(server, {
    listen: { host: "127.0.0.1", port },
    context: async ({ req }) => Object.fromEntries(passed.map((name) => [name, req.headers[name]])),
  });
}
