// urql with graphcache in front of Kith.
import { graphcache, optimistic, socketOptions } from "@kith/client";
import { Client, fetchExchange, gql, subscriptionExchange } from "@urql/core";
import { cacheExchange } from "@urql/exchange-graphcache";
import { relayPagination } from "@urql/exchange-graphcache/extras";
import { createClient as createSocket } from "graphql-ws";

// Changes show at once. If Kith refuses one, graphcache takes it back.
const cache = cacheExchange(optimistic(graphcache(relayPagination)));

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
