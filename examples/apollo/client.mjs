// Apollo Client 4 in front of Kith.
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from "@apollo/client";
import { GraphQLWsLink } from "@apollo/client/link/subscriptions";
import { relayStylePagination } from "@apollo/client/utilities";
import { apolloCache, socketOptions } from "@kith/client";
import { createClient as createSocket } from "graphql-ws";
import { OperationTypeNode } from "graphql";

export function createClient(url, session) {
  const http = new HttpLink({ uri: url, fetch: session.fetch });
  const refetch = () => client.query({ query: Followers, fetchPolicy: "network-only" });
  const socket = new GraphQLWsLink(createSocket(socketOptions(url, session, refetch)));
  const client = new ApolloClient({
    link: ApolloLink.split(({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION, socket, http),
    cache: new InMemoryCache(apolloCache(relayStylePagination)),
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
const Follow = gql`
  mutation Follow($userId: ID!) {
    follow(userId: $userId) { viewer { id user { id followingCount } } followingEdge { cursor node { ...Person } } }
  }
  ${person}
`;
const Unfollow = gql`
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
const Dismiss = gql`mutation Dismiss($userId: ID!) { dismissSuggestion(userId: $userId) { changed } }`;
const Undismiss = gql`mutation Undismiss($userId: ID!) { undismissSuggestion(userId: $userId) { changed } }`;
const NewFollowers = gql`
  subscription NewFollowers {
    followerAdded { edge { cursor node { ...Person } } viewer { id user { id followerCount } } }
  }
  ${person}
`;

// The viewer and the user as they most likely are after a change. If Kith refuses it, Apollo Client takes all of it back.
function changed(viewer, user, by) {
  const { id, status: was } = user.viewerRelationship ?? {}; // null for the viewer
  const back = was === "FOLLOWED_BY" || was === "MUTUAL";
  const status = by > 0 ? (back ? "MUTUAL" : "FOLLOWING") : back ? "FOLLOWED_BY" : "NONE";
  return {
    viewer: { ...viewer, user: { ...viewer.user, followingCount: viewer.user.followingCount + by } },
    user: { ...user, followerCount: user.followerCount + by, viewerRelationship: user.viewerRelationship && { __typename: "Relationship", id, status } },
  };
}

export function follow(client, viewer, user) {
  const { viewer: me, user: node } = changed(viewer, user, 1);
  return client.mutate({
    mutation: Follow,
    variables: { userId: user.id },
    optimisticResponse: {
      follow: { __typename: "RelationshipPayload", viewer: me, followingEdge: { __typename: "FollowEdge", cursor: "", node } },
    },
    update: (cache, { data }) => list(cache, viewer.user.id, "followings", user.id, data.follow.followingEdge),
  });
}

export function unfollow(client, viewer, user) {
  return client.mutate({
    mutation: Unfollow,
    variables: { userId: user.id },
    optimisticResponse: { unfollow: { __typename: "RelationshipPayload", ...changed(viewer, user, -1) } },
    update: (cache) => list(cache, viewer.user.id, "followings", user.id),
  });
}

// A dismissed user leaves the list at once. Undoing that asks for the list again.
export function dismiss(client, viewer, userId) {
  return client.mutate({
    mutation: Dismiss,
    variables: { userId },
    optimisticResponse: { dismissSuggestion: { __typename: "RelationshipPayload", changed: true } },
    update: (cache) => list(cache, viewer.user.id, "followSuggestions", userId),
  });
}
export const undismiss = (client, userId) =>
  client.mutate({ mutation: Undismiss, variables: { userId }, refetchQueries: [Suggestions] });

// followLive keeps the viewer's followers up to date until the subscription that it returns is unsubscribed.
export function followLive(client, viewerId, seen) {
  return client.subscribe({ query: NewFollowers }).subscribe(({ data }) => {
    if (!data) return;
    list(client.cache, viewerId, "followers", data.followerAdded.edge.node.id, data.followerAdded.edge);
    seen(data.followerAdded.edge.node);
  });
}

// The users themselves are in the cache by their ids already. list takes a user from a list, or puts its new edge first.
function list(cache, ownerId, field, userId, edge) {
  cache.modify({
    id: cache.identify({ __typename: "User", id: ownerId }),
    fields: {
      [field]: (page, { readField, toReference }) => ({
        ...page,
        edges: [
          ...(edge ? [{ ...edge, node: toReference(edge.node) }] : []),
          ...page.edges.filter(({ node }) => readField("id", node) !== userId),
        ],
      }),
    },
  });
}
