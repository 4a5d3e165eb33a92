// A second subgraph that has names which Kith has, too: Post, Comment, Media, Visibility, Query.user, Mutation.register, User.name and
// User.posts. It answers the name of a user itself.
import { ApolloServer } from "@apollo/server";
import { startStandaloneServer } from "@apollo/server/standalone";
import { buildSubgraphSchema } from "@apollo/subgraph";
import { makeExecutableSchema } from "@graphql-tools/schema";
import { parse } from "graphql";

const types = (key, override) => `
  type Query { magazine: [Post!]! user(handle: String!): User }
  type Mutation { register(email: String!): User }
  type User ${key} { id: ID! name: String! ${override} posts: [Post!]! }
  type Post ${key} { id: ID! title: String! author: User media: [Media!]! comments: [Comment!]! visibility: Visibility! }
  type Comment { body: String! }
  type Media { src: String! }
  enum Visibility { PUBLISHED DRAFT }
`;

export const typeDefs = parse(`
  extend schema @link(url: "https://specs.apollo.dev/federation/v2.9", import: ["@key", "@override"])
  ${types('@key(fields: "id")', '@override(from: "kith")')}
`);

const user = (id) => ({ __typename: "User", id, name: "Author " + id });
const posts = ["1", "2"].map((id) => ({
  id, title: "Title " + id, author: user(id), media: [{ src: "cover.png" }], comments: [{ body: "Well said" }], visibility: "PUBLISHED",
}));

const resolvers = {
  Query: { magazine: () => posts, user: (_, { handle }) => (handle === "maya" ? user("1") : null) },
  Mutation: { register: () => user("2") },
  Post: { __resolveReference: ({ id }) => posts.find((p) => p.id === id) },
  User: { __resolveReference: ({ id }) => user(id), posts: ({ id }) => posts.filter((p) => p.author.id === id) },
};

export async function serveSubgraph() {
  const server = new ApolloServer({ schema: buildSubgraphSchema([{ typeDefs, resolvers }]) });
  const { url } = await startStandaloneServer(server, { listen: { host: "127.0.0.1", port: 0 } });
  return url;
}

const { __resolveReference: _post, ...Post } = resolvers.Post;
const { __resolveReference: _user, ...User } = resolvers.User;

// The same without Federation, to be stitched.
export const plain = { schema: makeExecutableSchema({ typeDefs: types("", ""), resolvers: { ...resolvers, Post, User } }) };
