// All rules of @graphql-eslint for schemas and of its Relay preset. Each one that is relaxed has its reason.
import graphql from "@graphql-eslint/eslint-plugin";

const recommended = graphql.configs["flat/schema-recommended"].rules;
const [, names] = recommended["@graphql-eslint/naming-convention"];

export default [
  {
    files: ["**/*.graphql"],
    languageOptions: { parser: graphql.parser, parserOptions: { graphQLConfig: { schema: "schema.graphql" } } },
    plugins: { "@graphql-eslint": graphql },
    rules: {
      ...recommended,
      ...graphql.configs["flat/schema-relay"].rules,

      // _entities, _service, _Any, _Entity and _Service are names that Apollo Federation prescribes.
      "@graphql-eslint/naming-convention": ["error", {
        ...names,
        allowLeadingUnderscore: true,
        types: { style: "PascalCase", ignorePattern: "^_" },
        FieldDefinition: { style: "camelCase", ignorePattern: "^_(entities|service)$" },
      }],

      // What has an id here is a node, which can be asked for by it. These are parts of answers and have no life of their own: payloads
      // of mutations, outcomes of one of many, parts of connections, values of a user or post, events, and what operators look at.
      "@graphql-eslint/strict-id-in-types": ["error", {
        exceptions: {
          suffixes: ["Payload", "Connection", "Edge", "Added", "Changed", "Event", "Outcome"],
          types: [
            "PageInfo", "FollowError", "SuggestionExclusions", "NewerPosts", "UnseenActivity", "ListVisibility", "Media",
            "Consistency", "ReconcileStatus", "ReconcileKind", "EdgesAmong", "LinkedIdentity", "Standing", "AccountsFile", "RefusedLine", "ModerationEntry", "_Service",
          ],
        },
      }],

      // Lists that are no connections are bounded by their arguments (users(by:)) or by what they are (nine media of a post), and `nodes`
      // of a connection is the short form of its edges, as GitHub has it. Entries of the moderation log and groups of activity are no nodes: nobody
      // asks for one by itself. TestConnectionsFollowOneRule has the rule for all others.
      "@graphql-eslint/relay-edge-types": ["error", { withEdgeSuffix: true, shouldImplementNode: false, listTypeCanWrapOnlyEdgeType: false }],

      // Posts, comments, feeds, requests, blocks, searches and suggestions are read from their beginning: they page forward only.
      "@graphql-eslint/relay-arguments": ["error", { includeBoth: false }],
    },
  },
];
