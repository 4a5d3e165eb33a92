// What the cache knows about Kith: the most likely outcome of a change, which is shown at once, and what
// else the answer changes.
import type { Cache, CacheExchangeOpts, Entity, UpdateResolver, Variables } from '@urql/exchange-graphcache';
import { CommentCountFragmentDoc, ViewerDocument, type FriendRequestState, type MuteScope, type RelationshipChangesSubscription } from './gql';

// Types that have no id belong to the object that they were read with.
const parts = [
  'FollowConnection', 'FollowEdge', 'MatchConnection', 'MatchEdge', 'BlockConnection', 'BlockEdge', 'FollowRequestConnection', 'FollowRequestEdge', 'UserConnection', 'UserEdge', 'PageInfo',
  'ListVisibility', 'SuggestionConnection', 'SuggestionEdge', 'SuggestionExclusions',
  'FriendRequestConnection', 'FriendRequestEdge', 'UserSearchConnection', 'UserSearchEdge', 'PostConnection', 'PostEdge',
  'FeedConnection', 'ListConnection', 'NewerPosts', 'CommentConnection', 'CommentEdge', 'FavoriteConnection', 'Media', 'EdgesAmong', 'FollowOutcome', 'FollowError',
];

/** forget lets the cache read some fields of an object again. Pages that show them query them at once. */
function forget(cache: Cache, entity: Entity, ...names: string[]) {
  for (const field of cache.inspectFields(entity)) {
    if (names.includes(field.fieldName)) cache.invalidate(entity, field.fieldName, field.arguments as Variables);
  }
}

/** relist changes which objects, or edges, are on the pages of a list that have been read. */
function relist(cache: Cache, entity: Entity, list: string, change: (keys: string[], isFirst: boolean) => string[], items = 'nodes') {
  for (const field of cache.inspectFields(entity)) {
    if (field.fieldName !== list) continue;
    const page = cache.resolve(entity, field.fieldKey) as string | null;
    const keys = page && (cache.resolve(page, items) as string[] | null);
    if (keys) cache.link(page, items, change(keys, !field.arguments?.after));
  }
}

const without = (key: string) => (keys: string[]) => keys.filter(one => one !== key);
const withoutUser = (cache: Cache, userId: unknown) => (edges: string[]) => edges.filter(edge => cache.resolve(edge, 'node') !== `User:${userId}`);
const withFirst = (key: string) => (keys: string[], isFirst: boolean) => (isFirst && !keys.includes(key) ? [key, ...keys] : keys);

// The lists of a user that a block closes, or that a locked user shows to its followers alone.
const closed = ['followings', 'followers', 'friends', 'followersYouKnow', 'posts', 'favorites'];

/** later runs reads after the change has been made, not while its expected outcome is shown. */
const later =
  (update: UpdateResolver): UpdateResolver =>
  (result, args, cache, info) => {
    if (!info.optimistic) update(result, args, cache, info);
  };

export function cacheOptions(viewerId: string | undefined): Partial<CacheExchangeOpts> {
  const viewer = { __typename: 'User', id: viewerId ?? '' };
  const own = { __typename: 'Viewer', id: `viewer_${viewer.id}` };
  const becomes =
    (change: Change) =>
    ({ userId }: Variables, cache: Cache) =>
      changed(cache, viewer.id, String(userId), change);
  const close = (cache: Cache, userId: unknown) => forget(cache, { __typename: 'User', id: String(userId) }, ...closed);
  const requestsChanged = later((_, __, cache) => forget(cache, own, 'friendRequests'));
  // One request less waits. The gateway counts again when it has been answered.
  const answered =
    (list: 'friendRequests' | 'followRequests'): UpdateResolver =>
    (_, __, cache, info) => {
      if (!info.optimistic) return forget(cache, own, list);
      cache.updateQuery({ query: ViewerDocument }, data => {
        const waiting = data?.viewer?.[list];
        return waiting ? { ...data, viewer: { ...data.viewer!, [list]: { ...waiting, totalCount: Math.max(0, waiting.totalCount - 1) } } } : data;
      });
    };
  const closes = later((_, { userId }, cache) => close(cache, userId));
  const mutesChanged = later((_, __, cache) => {
    forget(cache, own, 'mutedUsers', 'feed');
    forget(cache, viewer, 'followSuggestions');
  });
  const followedMany: UpdateResolver = (_, __, cache) => {
    forget(cache, own, 'feed');
    forget(cache, viewer, 'followSuggestions');
  };
  const listOf = (id: unknown) => ({ __typename: 'List', id: String(id) });
  const listsChanged = later((_, __, cache) => forget(cache, viewer, 'lists'));
  const comments = (cache: Cache, postId: string, by: number, change: (keys: string[], isFirst: boolean) => string[]) => {
    const post = { __typename: 'Post', id: postId };
    relist(cache, post, 'comments', change);
    const count = cache.resolve(post, 'commentCount');
    if (by && typeof count === 'number') cache.writeFragment(CommentCountFragmentDoc, { ...post, commentCount: count + by });
  };
  return {
    keys: Object.fromEntries(parts.map(name => [name, () => null])),
    optimistic: {
      follow: (args, cache) => becomes(cache.resolve({ __typename: 'User', id: String(args.userId) }, 'locked') ? { followRequested: true } : { following: true })(args, cache),
      unfollow: becomes({ following: false, followRequested: false }),
      acceptFollowRequest: becomes({ followedBy: true, followRequestedBy: false }),
      declineFollowRequest: becomes({ followRequestedBy: false }),
      mute: ({ userId, scope, until }, cache) => changed(cache, viewer.id, String(userId), { muted: scope as MuteScope, mutedUntil: (until as string) ?? null }),
      unmute: becomes({ muted: null, mutedUntil: null }),
      removeFollower: becomes({ followedBy: false }),
      block: becomes({ following: false, followedBy: false, blocking: true, special: null, remark: null }),
      unblock: becomes({ blocking: false }),
      dismissSuggestion: () => ({ __typename: 'RelationshipPayload', changed: true }),
      setFollowMark: ({ userId, ...mark }, cache) => changed(cache, viewer.id, String(userId), mark),
      acceptFriend: becomes({ following: true, followedBy: true, received: 'ACCEPTED' }),
      declineFriend: becomes({ received: 'DECLINED' }),
      cancelFriendRequest: becomes({ sent: 'CANCELLED' }),
      updateList: ({ listId, name, public: isPublic }) => ({ __typename: 'ListPayload', changed: true, list: { ...listOf(listId), name, public: isPublic } }),
      removeFromList: ({ listId }, cache) => ({ __typename: 'ListPayload', changed: true, list: { ...listOf(listId), ...plus(cache, listOf(listId), 'memberCount', -1) }, outcomes: [] }),
      favorite: ({ postId }, cache) => favorited(cache, viewer, String(postId), true),
      unfavorite: ({ postId }, cache) => favorited(cache, viewer, String(postId), false),
      deletePost: (_, cache) => ({ __typename: 'PostPayload', changed: true, viewer: { ...own, user: { ...viewer, ...plus(cache, viewer, 'postCount', -1) } } }),
      deleteComment: () => ({ __typename: 'CommentPayload', changed: true }),
    },
    updates: {
      Mutation: {
        block: later((_, { userId }, cache) => {
          close(cache, userId);
          forget(cache, viewer, 'followings', 'followers', 'friends');
          forget(cache, own, 'friendRequests', 'followRequests', 'blockedUsers');
        }),
        unblock: closes,
        follow: closes,
        unfollow: closes,
        acceptFollowRequest: answered('followRequests'),
        declineFollowRequest: answered('followRequests'),
        mute: mutesChanged,
        unmute: mutesChanged,
        dismissSuggestion: ({ dismissSuggestion }: { dismissSuggestion?: unknown }, { userId }, cache, { optimistic }) => {
          if (dismissSuggestion) relist(cache, viewer, 'followSuggestions', withoutUser(cache, userId), 'edges');
          if (!optimistic) forget(cache, own, 'dismissedUsers');
        },
        undismissSuggestion: ({ undismissSuggestion }: { undismissSuggestion?: unknown }, { userId }, cache) => {
          if (undismissSuggestion) relist(cache, own, 'dismissedUsers', withoutUser(cache, userId), 'edges');
          forget(cache, viewer, 'followSuggestions');
        },
        acceptFriend: answered('friendRequests'),
        declineFriend: answered('friendRequests'),
        cancelFriendRequest: requestsChanged,
        requestFriend: requestsChanged,
        favorite: later((_, __, cache) => forget(cache, viewer, 'favorites')),
        // Posts and comments have no consistency tokens: another gateway may not know yet what has been written.
        publishPost: ({ publishPost }: { publishPost?: { post: { id: string } | null } | null }, _, cache) => {
          if (publishPost?.post) relist(cache, viewer, 'posts', withFirst(`Post:${publishPost.post.id}`));
        },
        deletePost: ({ deletePost }: { deletePost?: unknown }, { postId }, cache) => {
          if (deletePost) for (const [of, list] of [[viewer, 'posts'], [viewer, 'favorites'], [own, 'feed']] as const) relist(cache, of, list, without(`Post:${postId}`));
        },
        addComment: ({ addComment }: { addComment?: { comment: { id: string; postId: string } | null } | null }, _, cache) => {
          const comment = addComment?.comment;
          if (comment) comments(cache, comment.postId, 0, withFirst(`Comment:${comment.id}`));
        },
        deleteComment: ({ deleteComment }: { deleteComment?: { changed: boolean } | null }, { commentId }, cache, { optimistic }) => {
          const postId = cache.resolve({ __typename: 'Comment', id: String(commentId) }, 'postId');
          if (deleteComment && postId) comments(cache, String(postId), optimistic ? -1 : 0, without(`Comment:${commentId}`)); // the answer has the count
        },
        followMany: followedMany,
        followList: followedMany,
        createList: listsChanged,
        deleteList: listsChanged,
        addToList: later((_, { listId }, cache) => {
          forget(cache, listOf(listId), 'members', 'has');
          forget(cache, own, 'feed');
        }),
        removeFromList: ({ removeFromList }: { removeFromList?: unknown }, { listId, userIds }, cache, { optimistic }) => {
          if (removeFromList) for (const id of userIds as string[]) relist(cache, listOf(listId), 'members', without(`User:${id}`));
          if (optimistic) return;
          forget(cache, own, 'feed');
          forget(cache, listOf(listId), 'has');
        },
      },
      Subscription: {
        followerAdded: (_, __, cache) => forget(cache, viewer, 'followers', 'followerCount', 'friendCount'),
        followRequestAdded: (_, __, cache) => forget(cache, own, 'followRequests'),
        friendRequestChanged: requestsChanged,
        // Somebody has blocked the viewer or ended that, or has accepted its request.
        relationshipChanged: ({ relationshipChanged }: RelationshipChangesSubscription, _, cache) => close(cache, relationshipChanged?.relationship?.to?.id),
      },
    },
  };
}

/** plus is a number of an object, raised by an amount. It is empty if the number is not known, or not shown. */
function plus(cache: Cache, entity: Entity, field: string, by: number) {
  const value = cache.resolve(entity, field);
  return typeof value === 'number' ? { [field]: Math.max(0, value + by) } : {};
}

type Change = {
  following?: boolean;
  followedBy?: boolean;
  followRequested?: boolean;
  followRequestedBy?: boolean;
  muted?: MuteScope | null;
  mutedUntil?: string | null;
  blocking?: boolean;
  special?: boolean | null;
  remark?: string | null;
  sent?: FriendRequestState;
  received?: FriendRequestState;
};

/** changed is the answer that a change of the relationship will most likely have, with the counts of both. */
function changed(cache: Cache, viewerId: string, userId: string, { sent, received, ...change }: Change) {
  const rel = { __typename: 'Relationship', id: `rel_${viewerId}_${userId}` };
  const was = { following: cache.resolve(rel, 'following') === true, followedBy: cache.resolve(rel, 'followedBy') === true };
  const { following, followedBy } = { ...was, ...change };
  const out = Number(following) - Number(was.following);
  const back = Number(followedBy) - Number(was.followedBy);
  const friends = Number(following && followedBy) - Number(was.following && was.followedBy);
  const counted = (id: string, followings: number, followers: number) => {
    const user = { __typename: 'User', id };
    return { ...user, ...plus(cache, user, 'followingCount', followings), ...plus(cache, user, 'followerCount', followers), ...plus(cache, user, 'friendCount', friends) };
  };
  const request = (from: string, to: string, state: FriendRequestState | undefined) => state && { __typename: 'FriendRequest', id: `req_${from}_${to}`, state };
  return {
    __typename: 'RelationshipPayload',
    changed: true,
    viewer: { __typename: 'Viewer', id: `viewer_${viewerId}`, user: counted(viewerId, out, back) },
    user: counted(userId, back, out),
    relationship: {
      ...rel,
      ...change,
      following,
      followedBy,
      status: following ? (followedBy ? 'MUTUAL' : 'FOLLOWING') : followedBy ? 'FOLLOWED_BY' : 'NONE',
      sentRequest: request(viewerId, userId, sent),
      receivedRequest: request(userId, viewerId, received),
    },
  };
}

function favorited(cache: Cache, viewer: { __typename: string; id: string }, id: string, viewerHasFavorited: boolean) {
  const post = { __typename: 'Post', id };
  const by = viewerHasFavorited ? 1 : -1;
  return {
    __typename: 'FavoritePayload',
    changed: true,
    viewer: { __typename: 'Viewer', id: `viewer_${viewer.id}`, user: { ...viewer, ...plus(cache, viewer, 'favoriteCount', by) } },
    post: { ...post, viewerHasFavorited, ...plus(cache, post, 'favoriteCount', by) },
  };
}
