// What docs/how-to/behind-a-router.md shows of schema stitching.
import { readFileSync } from "node:fs";
import { ApolloServer } from "@apollo/server";
import { startStandaloneServer } from "@apollo/server/standalone";
import { buildHTTPExecutor } from "@graphql-tools/executor-http";
import { stitchSchemas } from "@graphql-tools/stitch";
import { buildSchema } from "graphql";

const passed = ["authorization", "kith-viewer", "kith-consistency"];
const joined = (...tokens) => tokens.filter(Boolean).join(",");

// file is what `kith schema` has printed. The schema of articles has a type User with the field id. With --type-prefix=Kith, users is
// "kithUsers".
export function stitched(kith, file, articles, users = "users") {
  return stitchSchemas({
    subschemas: [
      {
        schema: buildSchema(readFileSync(file, "utf8")),
        executor: buildHTTPExecutor({
          endpoint: kith,
          fetch: async (url, request, context) => {
            const answer = await fetch(url, request);
            const token = answer.headers.get("kith-consistency");
            if (token) {
              context["kith-consistency"] = joined(context["kith-consistency"], token); // for what is asked later in the same operation
              context.wrote(token);
            }
            return answer;
          },
          headers: ({ context }) => Object.fromEntries(passed.filter((name) => context[name]).map((name) => [name, context[name]])),
        }),
        merge: {
          User: {
            selectionSet: "{ id }",
            fieldName: users,
            key: ({ id }) => id,
            argsFromKeys: (ids) => ({ by: { ids } }),
            dataLoaderOptions: { maxBatchSize: 500 },
          },
        },
      },
      articles,
    ],
  });
}

export async function serve(schema, port) {
  return startStandaloneServer(new ApolloServer({ schema }), {
    listen: { host: "127.0.0.1", port },
    context: async ({ req, res }) => ({
      ...Object.fromEntries(passed.map((name) => [name, req.headers[name]])),
      wrote: (token) => res.setHeader("kith-consistency", joined(res.getHeader("kith-consistency"), token)),
    }),
  });
}
