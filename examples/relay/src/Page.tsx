// A page with the viewer's followings, a button to follow somebody, followers as they come, and suggestions.
import { useMemo } from "react";
import { graphql, useLazyLoadQuery, usePaginationFragment, useSubscription } from "react-relay";
import type { Page_followings$key } from "./__generated__/Page_followings.graphql";
import type { PageFollowersQuery } from "./__generated__/PageFollowersQuery.graphql";
import type { PageNewFollowersSubscription } from "./__generated__/PageNewFollowersSubscription.graphql";
import type { PageQuery } from "./__generated__/PageQuery.graphql";
import { Follow, Suggestions } from "./Changes";

// @throwOnFieldError makes an error of a field an error of the component, for the nearest error boundary. In return
// Kith's @semanticNonNull takes the null from the types: `edges` and `node` below need no check.
const page = graphql`
  query PageQuery($handle: String!) @throwOnFieldError {
    viewer {
      user { id followingCount ...Page_followings }
    }
    user(by: { handle: $handle }) { id handle name followerCount viewerRelationship { id status } }
  }
`;

export function Page({ handle }: { handle: string }) {
  const { viewer, user } = useLazyLoadQuery<PageQuery>(page, { handle });
  if (!viewer) return <p>Nobody is signed in.</p>;
  if (!user) return <p>There is no such user.</p>;
  return (
    <>
      <h1>{viewer.user.followingCount}</h1>
      <Followings viewer={viewer.user} />
      <Follow viewer={viewer.user} user={user} />
      <Followers />
      <Suggestions />
    </>
  );
}

function Followings({ viewer }: { viewer: Page_followings$key }) {
  const { data, hasNext, isLoadingNext, loadNext } = usePaginationFragment(
    graphql`
      fragment Page_followings on User
      @argumentDefinitions(count: { type: "Int", defaultValue: 20 }, cursor: { type: "String" })
      @refetchable(queryName: "PageFollowingsQuery")
      @throwOnFieldError {
        followings(first: $count, after: $cursor) @connection(key: "Page_followings") { edges { node { id handle } } }
      }
    `,
    viewer,
  );
  return (
    <>
      <ol>{data.followings?.edges.map(({ node }) => <li key={node.id}>{node.handle}</li>)}</ol>
      {hasNext && <button name="more" disabled={isLoadingNext} onClick={() => loadNext(20)}>More</button>}
    </>
  );
}

export const followers = graphql`
  query PageFollowersQuery @throwOnFieldError {
    viewer {
      user {
        followerCount
        followers(first: 20) @connection(key: "Page_followers") { __id edges { node { id handle } } }
      }
    }
  }
`;

function Followers() {
  const { viewer } = useLazyLoadQuery<PageFollowersQuery>(followers, {});
  const list = viewer?.user.followers?.__id;
  const live = useMemo(
    () => ({
      subscription: graphql`
        subscription PageNewFollowersSubscription($lists: [ID!]!) {
          followerAdded {
            edge @prependEdge(connections: $lists) {
              cursor
              node { id handle }
            }
            viewer { id user { id followerCount } }
          }
        }
      `,
      variables: { lists: list ? [list] : [] },
    }),
    [list],
  );
  useSubscription<PageNewFollowersSubscription>(live);
  return (
    <>
      <h2>{viewer?.user.followerCount}</h2>
      <ul>{viewer?.user.followers?.edges.map(({ node }) => <li key={node.id}>{node.handle}</li>)}</ul>
    </>
  );
}
