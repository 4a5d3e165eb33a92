// urql with graphcache in front of Kith.
import { Client, fetchExchange, gql, mapExchange, subscriptionExchange } from "@urql/core";
import { authExchange } from "@urql/exchange-auth";
import { cacheExchange } from "@urql/exchange-graphcache";
import { relayPagination } from "@urql/exchange-graphcache/extras";
import { createClient as createSocket } from "graphql-ws";
import { isUnauthenticated, socketOptions } from "../session.mjs";

// Objects without an id belong to the object that they were read from. (graphcache knows connections, edges and
// pageInfo by their names.)
const keyless = [
  "EdgesAmong", "FollowError", "FollowOutcome", "LinkedIdentity", "ListVisibility", "Media", "NewerPosts", "SuggestionExclusions",
];

const cache = cacheExchange({
  keys: Object.fromEntries(keyless.map((type) => [type, () => null])),
  resolvers: { User: { followings: relayPagination(), followers: relayPagination() } },
  // The answer that Kith will most likely give. If Kith refuses, graphcache takes all of it back.
  optimistic: {
    follow({ userId }, cache) {
      const viewer = cache.resolve("Query", "viewer");
      const viewerId = cache.resolve(cache.resolve(viewer, "user"), "id");
      const [user, relationship] = [`User:${userId}`, `Relationship:rel_${viewerId}_${userId}`];
      const status = cache.resolve(relationship, "status") === "FOLLOWED_BY" ? "MUTUAL" : "FOLLOWING";
      return {
        __typename: "RelationshipPayload",
        viewer: {
          __typename: "Viewer",
          id: cache.resolve(viewer, "id"),
          user: { __typename: "User", id: viewerId, followingCount: cache.resolve(`User:${viewerId}`, "followingCount") + 1 },
        },
        followingEdge: {
          __typename: "FollowEdge",
          cursor: "",
          node: {
            __typename: "User",
            id: userId,
            handle: cache.resolve(user, "handle"),
            name: cache.resolve(user, "name"),
            followerCount: cache.resolve(user, "followerCount") + 1,
            viewerRelationship: { __typename: "Relationship", id: `rel_${viewerId}_${userId}`, status },
          },
        },
      };
    },
  },
  updates: {
    Mutation: { follow: ({ follow }, _, cache) => follow && prepend(cache, Followings, "followings", follow.followingEdge) },
    Subscription: { followerAdded: ({ followerAdded }, _, cache) => prepend(cache, Followers, "followers", followerAdded?.edge) },
  },
});

// The users themselves are in the cache by their ids already, but the list does not have its new edge.
function prepend(cache, query, list, edge) {
  cache.updateQuery({ query }, (data) => {
    if (!data?.viewer || !edge) return data;
    const { user } = data.viewer;
    const others = user[list].edges.filter(({ node }) => node.id !== edge.node.id);
    return { ...data, viewer: { ...data.viewer, user: { ...user, [list]: { ...user[list], edges: [edge, ...others] } } } };
  });
}

export function createClient(url, session) {
  const auth = authExchange(async (utilities) => ({
    addAuthToOperation: (operation) => ({
      ...utilities.appendHeaders(operation, session.headers),
      extensions: session.extensions,
    }),
    didAuthError: (error) => error.graphQLErrors.some(isUnauthenticated),
    refreshAuth: () => session.renew(session.token),
  }));
  const refetch = () => client.query(Followers, {}, { requestPolicy: "network-only" }).toPromise();
  const socket = createSocket(socketOptions(url, session, refetch));
  const client = new Client({
    url,
    preferGetMethod: false,
    exchanges: [
      cache,
      mapExchange({ onResult: (answer) => session.wrote(answer) }),
      auth,
      fetchExchange,
      subscriptionExchange({
        forwardSubscription: ({ query, variables }) => ({
          subscribe: (sink) => ({ unsubscribe: socket.subscribe({ query, variables }, sink) }),
        }),
      }),
    ],
  });
  return client;
}

const person = gql`
  fragment Person on User { id handle name followerCount viewerRelationship { id status } }
`;
export const Followings = gql`
  query Followings($after: String) {
    viewer {
      id
      user {
        id
        followingCount
        listVisibility { followings }
        followings(first: 20, after: $after) { edges { cursor node { ...Person } } pageInfo { hasNextPage endCursor } }
      }
    }
  }
  ${person}
`;
export const Followers = gql`
  query Followers {
    viewer {
      id
      user { id followerCount followers(first: 20) { edges { cursor node { ...Person } } pageInfo { hasNextPage endCursor } } }
    }
  }
  ${person}
`;
export const Profile = gql`
  query Profile($handle: String!) { viewer { id user { id followingCount } } user(by: { handle: $handle }) { ...Person } }
  ${person}
`;
export const Follow = gql`
  mutation Follow($userId: ID!) {
    follow(userId: $userId) { viewer { id user { id followingCount } } followingEdge { cursor node { ...Person } } }
  }
  ${person}
`;
export const NewFollowers = gql`
  subscription NewFollowers {
    followerAdded { edge { cursor node { ...Person } } viewer { id user { id followerCount } } }
  }
  ${person}
`;
