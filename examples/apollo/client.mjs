// Apollo Client 4 in front of Kith.
import { ApolloClient, ApolloLink, CombinedGraphQLErrors, HttpLink, InMemoryCache, gql } from "@apollo/client";
import { ErrorLink } from "@apollo/client/link/error";
import { GraphQLWsLink } from "@apollo/client/link/subscriptions";
import { relayStylePagination } from "@apollo/client/utilities";
import { createClient as createSocket } from "graphql-ws";
import { OperationTypeNode } from "graphql";
import { from, switchMap, tap } from "rxjs";
import { isUnauthenticated, socketOptions } from "../session.mjs";

export function createClient(url, session) {
  // A retry passes through the links below once more, with the new token.
  const renew = new ErrorLink(({ error, operation, forward }) => {
    if (!CombinedGraphQLErrors.is(error) || !error.errors.some(isUnauthenticated)) return;
    return from(session.renew(operation.getContext().token)).pipe(switchMap(() => forward(operation)));
  });
  const identify = new ApolloLink((operation, forward) => {
    operation.setContext({ token: session.token, headers: session.headers });
    operation.extensions = session.extensions;
    return forward(operation).pipe(tap((answer) => session.wrote(answer)));
  });
  const http = ApolloLink.from([renew, identify, new HttpLink({ uri: url, includeExtensions: true })]);
  const refetch = () => client.query({ query: Followers, fetchPolicy: "network-only" });
  const socket = new GraphQLWsLink(createSocket(socketOptions(url, session, refetch)));

  const selected = relayStylePagination(["filter", "orderBy"]);
  const client = new ApolloClient({
    link: ApolloLink.split(({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION, socket, http),
    cache: new InMemoryCache({
      // A list is one entry of the cache, whatever page was asked for; each filter and each order has a list of its own.
      typePolicies: { User: { fields: { followings: selected, followers: selected } } },
      possibleTypes: { Node: ["User", "Relationship", "FriendRequest", "Post", "Comment"] },
    }),
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
const Follow = gql`
  mutation Follow($userId: ID!) {
    follow(userId: $userId) { viewer { id user { id followingCount } } followingEdge { cursor node { ...Person } } }
  }
  ${person}
`;
const NewFollowers = gql`
  subscription NewFollowers {
    followerAdded { edge { cursor node { ...Person } } viewer { id user { id followerCount } } }
  }
  ${person}
`;

// follow shows the follow before Kith has answered. If Kith refuses, Apollo Client takes all of it back.
export function follow(client, viewer, user) {
  const { id, status } = user.viewerRelationship;
  const node = {
    ...user,
    followerCount: user.followerCount + 1,
    viewerRelationship: { __typename: "Relationship", id, status: status === "FOLLOWED_BY" ? "MUTUAL" : "FOLLOWING" },
  };
  return client.mutate({
    mutation: Follow,
    variables: { userId: user.id },
    optimisticResponse: {
      follow: {
        __typename: "RelationshipPayload",
        viewer: { ...viewer, user: { ...viewer.user, followingCount: viewer.user.followingCount + 1 } },
        followingEdge: { __typename: "FollowEdge", cursor: "", node },
      },
    },
    update: (cache, { data }) => prepend(cache, data.follow.viewer.user.id, "followings", data.follow.followingEdge),
  });
}

// followLive keeps the viewer's followers up to date until the subscription that it returns is unsubscribed.
export function followLive(client, viewerId, seen) {
  return client.subscribe({ query: NewFollowers }).subscribe(({ data }) => {
    if (!data) return;
    prepend(client.cache, viewerId, "followers", data.followerAdded.edge);
    seen(data.followerAdded.edge.node);
  });
}

// The users themselves are in the cache by their ids already, but the list does not have its new edge.
function prepend(cache, userId, list, edge) {
  cache.modify({
    id: cache.identify({ __typename: "User", id: userId }),
    fields: {
      [list]: (page, { readField, toReference }) => ({
        ...page,
        edges: [
          { ...edge, node: toReference(edge.node) },
          ...page.edges.filter((other) => readField("id", other.node) !== edge.node.id),
        ],
      }),
    },
  });
}
