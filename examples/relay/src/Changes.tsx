// What the viewer changes: a button that follows and unfollows, and suggestions that can be dismissed.
import { useState } from "react";
import { ConnectionHandler, fetchQuery, graphql, useLazyLoadQuery, useMutation, useRelayEnvironment } from "react-relay";
import type { ChangesDismissMutation } from "./__generated__/ChangesDismissMutation.graphql";
import type { ChangesFollowMutation } from "./__generated__/ChangesFollowMutation.graphql";
import type { ChangesSuggestionsQuery } from "./__generated__/ChangesSuggestionsQuery.graphql";
import type { ChangesUndismissMutation } from "./__generated__/ChangesUndismissMutation.graphql";
import type { ChangesUnfollowMutation } from "./__generated__/ChangesUnfollowMutation.graphql";
import type { PageQuery } from "./__generated__/PageQuery.graphql";

type Shown = PageQuery["response"];

export function Follow({ viewer, user }: { viewer: NonNullable<Shown["viewer"]>["user"]; user: NonNullable<Shown["user"]> }) {
  const [refused, setRefused] = useState<string>();
  const [follow, isFollowing] = useMutation<ChangesFollowMutation>(graphql`
    mutation ChangesFollowMutation($userId: ID!, $lists: [ID!]!) {
      follow(userId: $userId) {
        viewer { id user { id followingCount } }
        followingEdge @prependEdge(connections: $lists) {
          cursor
          node { id handle name followerCount viewerRelationship { id status } }
        }
      }
    }
  `);
  const [unfollow, isUnfollowing] = useMutation<ChangesUnfollowMutation>(graphql`
    mutation ChangesUnfollowMutation($userId: ID!, $lists: [ID!]!) {
      unfollow(userId: $userId) {
        viewer { id user { id followingCount } }
        user { id @deleteEdge(connections: $lists) followerCount viewerRelationship { id status } }
      }
    }
  `);
  const status = user.viewerRelationship?.status;
  const variables = { userId: user.id, lists: [ConnectionHandler.getConnectionID(viewer.id, "Page_followings")] };
  const onCompleted = (_: unknown, errors: unknown) => setRefused((errors as { extensions?: { code: string } }[] | null)?.[0]?.extensions?.code);

  // The viewer and the user as they most likely are after a change. If Kith refuses it, Relay takes all of it back.
  const changed = (by: 1 | -1) => {
    const back = status === "FOLLOWED_BY" || status === "MUTUAL";
    return {
      viewer: { id: `viewer_${viewer.id}`, user: { id: viewer.id, followingCount: viewer.followingCount + by } },
      user: {
        ...user,
        followerCount: user.followerCount + by,
        viewerRelationship: {
          id: `rel_${viewer.id}_${user.id}`,
          status: by > 0 ? (back ? "MUTUAL" : "FOLLOWING") : back ? "FOLLOWED_BY" : "NONE",
        },
      },
    } as const;
  };
  const change = () => {
    if (status === "FOLLOWING" || status === "MUTUAL") return unfollow({ variables, optimisticResponse: { unfollow: changed(-1) }, onCompleted });
    const { viewer, user: node } = changed(1);
    follow({ variables, optimisticResponse: { follow: { viewer, followingEdge: { cursor: "", node } } }, onCompleted });
  };
  return (
    <>
      <button name="follow" disabled={isFollowing || isUnfollowing} onClick={change}>{status}</button>
      <strong>{user.followerCount}</strong>
      {refused && <em>{refused}</em>}
    </>
  );
}

const suggestions = graphql`
  query ChangesSuggestionsQuery @throwOnFieldError {
    viewer {
      user { followSuggestions(first: 20) @connection(key: "Changes_followSuggestions") { __id edges { node { id handle } } } }
    }
  }
`;

// A dismissed user leaves the list at once. Undoing that asks for the list again.
export function Suggestions() {
  const environment = useRelayEnvironment();
  const { viewer } = useLazyLoadQuery<ChangesSuggestionsQuery>(suggestions, {});
  const [dismissed, setDismissed] = useState<string>();
  const [dismiss, isDismissing] = useMutation<ChangesDismissMutation>(graphql`
    mutation ChangesDismissMutation($userId: ID!, $lists: [ID!]!) {
      dismissSuggestion(userId: $userId) { user { id @deleteEdge(connections: $lists) } }
    }
  `);
  const [undismiss, isUndoing] = useMutation<ChangesUndismissMutation>(graphql`
    mutation ChangesUndismissMutation($userId: ID!) { undismissSuggestion(userId: $userId) { changed } }
  `);
  const list = viewer?.user.followSuggestions;
  const leave = (userId: string) =>
    dismiss({
      variables: { userId, lists: [list!.__id] },
      optimisticResponse: { dismissSuggestion: { user: { id: userId } } },
      onCompleted: () => setDismissed(userId),
    });
  const undo = (userId: string) =>
    undismiss({
      variables: { userId },
      onCompleted: () => {
        setDismissed(undefined);
        fetchQuery<ChangesSuggestionsQuery>(environment, suggestions, {}).subscribe({});
      },
    });
  return (
    <>
      <dl>{list?.edges.map(({ node }) => <dt key={node.id} onClick={() => leave(node.id)}>{node.handle}</dt>)}</dl>
      {dismissed && <button name="undo" disabled={isDismissing || isUndoing} onClick={() => undo(dismissed)}>Undo</button>}
    </>
  );
}
