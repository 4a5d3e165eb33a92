// urql with graphcache in front of Kith.
import { graphcache, socketOptions } from "@kith/client";
import { Client, fetchExchange, gql, subscriptionExchange } from "@urql/core";
import { cacheExchange } from "@urql/exchange-graphcache";
import { relayPagination } from "@urql/exchange-graphcache/extras";
import { createClient as createSocket } from "graphql-ws";

const cache = cacheExchange({
  ...graphcache(relayPagination),
  // The answers that Kith will most likely give. If Kith refuses, graphcache takes all of it back.
  optimistic: {
    follow({ userId }, cache) {
      const { viewer, user: node } = changed(cache, userId, 1);
      return { __typename: "RelationshipPayload", viewer, followingEdge: { __typename: "FollowEdge", cursor: "", node } };
    },
    unfollow: ({ userId }, cache) => ({ __typename: "RelationshipPayload", ...changed(cache, userId, -1) }),
    dismissSuggestion: () => ({ __typename: "RelationshipPayload", changed: true }),
  },
  updates: {
    Mutation: {
      follow: ({ follow }, { userId }, cache) => follow && list(cache, Followings, "followings", userId, follow.followingEdge),
      unfollow: ({ unfollow }, { userId }, cache) => unfollow && list(cache, Followings, "followings", userId),
      dismissSuggestion: ({ dismissSuggestion: done }, { userId }, cache) => done && list(cache, Suggestions, "followSuggestions", userId),
      // The dismissal is undone: the list is asked for again.
      undismissSuggestion: (_, __, cache) => {
        const user = cache.resolve(cache.resolve("Query", "viewer"), "user");
        for (const { fieldName, arguments: page } of cache.inspectFields(user)) {
          if (fieldName === "followSuggestions") cache.invalidate(user, fieldName, page);
        }
      },
    },
    Subscription: {
      followerAdded: ({ followerAdded }, _, cache) =>
        followerAdded && list(cache, Followers, "followers", followerAdded.edge.node.id, followerAdded.edge),
    },
  },
});

// changed has the viewer and the user as they most likely are after a change.
function changed(cache, userId, by) {
  const viewer = cache.resolve("Query", "viewer");
  const viewerId = cache.resolve(cache.resolve(viewer, "user"), "id");
  const [user, relationship] = [`User:${userId}`, `Relationship:rel_${viewerId}_${userId}`];
  const back = ["FOLLOWED_BY", "MUTUAL"].includes(cache.resolve(relationship, "status"));
  const status = by > 0 ? (back ? "MUTUAL" : "FOLLOWING") : back ? "FOLLOWED_BY" : "NONE";
  return {
    viewer: {
      __typename: "Viewer",
      id: cache.resolve(viewer, "id"),
      user: { __typename: "User", id: viewerId, followingCount: cache.resolve(`User:${viewerId}`, "followingCount") + by },
    },
    user: {
      __typename: "User",
      id: userId,
      handle: cache.resolve(user, "handle"),
      name: cache.resolve(user, "name"),
      followerCount: cache.resolve(user, "followerCount") + by,
      viewerRelationship: { __typename: "Relationship", id: `rel_${viewerId}_${userId}`, status },
    },
  };
}

// The users themselves are in the cache by their ids already. list takes a user from a list, or puts its new edge first.
function list(cache, query, field, userId, edge) {
  cache.updateQuery({ query }, (data) => {
    if (!data?.viewer) return data;
    const { user } = data.viewer;
    const others = user[field].edges.filter(({ node }) => node.id !== userId);
    return { ...data, viewer: { ...data.viewer, user: { ...user, [field]: { ...user[field], edges: edge ? [edge, ...others] : others } } } };
  });
}

export function createClient(url, session) {
  const refetch = () => client.query(Followers, {}, { requestPolicy: "network-only" }).toPromise();
  const socket = createSocket(socketOptions(url, session, refetch));
  const forwardSubscription = ({ query, variables }) => ({
    subscribe: (sink) => ({ unsubscribe: socket.subscribe({ query, variables }, sink) }),
  });
  const exchanges = [cache, fetchExchange, subscriptionExchange({ forwardSubscription })];
  const client = new Client({ url, fetch: session.fetch, preferGetMethod: false, exchanges });
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
    viewer { id user { id followerCount followers(first: 20) { edges { cursor node { ...Person } } pageInfo { hasNextPage endCursor } } } }
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
export const Unfollow = gql`
  mutation Unfollow($userId: ID!) {
    unfollow(userId: $userId) { viewer { id user { id followingCount } } user { ...Person } }
  }
  ${person}
`;
export const Suggestions = gql`
  query Suggestions($after: String) {
    viewer { id user { id followSuggestions(first: 20, after: $after) { edges { node { id handle } } pageInfo { hasNextPage endCursor } } } }
  }
`;
export const Dismiss = gql`mutation Dismiss($userId: ID!) { dismissSuggestion(userId: $userId) { changed } }`;
export const Undismiss = gql`mutation Undismiss($userId: ID!) { undismissSuggestion(userId: $userId) { changed } }`;
export const NewFollowers = gql`
  subscription NewFollowers {
    followerAdded { edge { cursor node { ...Person } } viewer { id user { id followerCount } } }
  }
  ${person}
`;
