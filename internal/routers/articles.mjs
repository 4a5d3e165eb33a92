// A second subgraph: articles, whose authors are users of Kith.
import { ApolloServer } from "@apollo/server";
import { startStandaloneServer } from "@apollo/server/standalone";
import { buildSubgraphSchema } from "@apollo/subgraph";
import { makeExecutableSchema } from "@graphql-tools/schema";
import { parse } from "graphql";

export const typeDefs = parse(`
  extend schema @link(url: "https://specs.apollo.dev/federation/v2.9", import: ["@key", "@shareable"])

  type Query {
    articles: [Article!]!
    node(id: ID!): Node @shareable
    nodes(ids: [ID!]!): [Node]! @shareable
  }
  interface Node { id: ID! }
  type Article implements Node @key(fields: "id") {
    id: ID!
    title: String!
    author: User
  }
  type User implements Node @key(fields: "id") {
    id: ID!
    articles: [Article!]!
  }
  type PageInfo @shareable { hasNextPage: Boolean! hasPreviousPage: Boolean! startCursor: String endCursor: String }
`);

// The authors are users 1 to 100, twice, and somebody whom nobody knows.
const articles = Array.from({ length: 201 }, (_, i) => ({
  id: "article_" + (i + 1),
  title: "Article " + (i + 1),
  author: { __typename: "User", id: i === 200 ? "999999" : String((i % 100) + 1) },
}));

const resolvers = {
  Query: {
    articles: () => articles,
    node: (_, { id }) => articles.find((a) => a.id === id) ?? null,
    nodes: (_, { ids }) => ids.map((id) => articles.find((a) => a.id === id) ?? null),
  },
  Node: { __resolveType: (o) => (o.title ? "Article" : "User") },
  Article: { __resolveReference: ({ id }) => articles.find((a) => a.id === id) },
  User: { articles: ({ id }) => articles.filter((a) => a.author.id === id) },
};

export async function serveSubgraph() {
  const server = new ApolloServer({ schema: buildSubgraphSchema([{ typeDefs, resolvers }]) });
  const { url } = await startStandaloneServer(server, { listen: { host: "127.0.0.1", port: 0 } });
  return url;
}

// The same without Federation, to be stitched: 1,100 articles by as many users.
export const plain = {
  schema: makeExecutableSchema({
    typeDefs: `
      type Query { articles: [Article!]! }
      type Article { title: String! author: User }
      type User { id: ID! }
    `,
    resolvers: { Query: { articles: () => Array.from({ length: 1100 }, (_, i) => ({ title: "Article", author: { id: String(i + 1) } })) } },
  }),
};
