// What the cache knows about Kith beside what every client has to: what else the answer of a change changes.
import type { Cache, CacheExchangeOpts, Entity, OptimisticMutationResolver, UpdateResolver, Variables } from '@urql/exchange-graphcache';
import { graphcache, optimistic } from '../../client';
import { CommentCountFragmentDoc, type ActivityAddedSubscription, type RelationshipChangesSubscription } from './gql';

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
  const kith = optimistic({ keys: graphcache(() => null).keys, viewerId });
  const viewer = { __typename: 'User', id: viewerId ?? '' };
  const own = { __typename: 'Viewer', id: `viewer_${viewer.id}` };
  const close = (cache: Cache, userId: unknown) => forget(cache, { __typename: 'User', id: String(userId) }, ...closed);
  // Counts (first: 0) stay until they have been read again: while one is unknown, what is expected of it cannot be shown.
  const forgetPages = (cache: Cache, ...lists: string[]) => {
    for (const { fieldName, arguments: of } of cache.inspectFields(own)) if (lists.includes(fieldName) && of?.first) cache.invalidate(own, fieldName, of);
  };
  const requestsChanged = later((_, __, cache) => forgetPages(cache, 'requests', 'activity'));
  // One request less waits.
  const answered =
    (change: 'acceptRequest' | 'declineRequest'): OptimisticMutationResolver =>
    (args, cache) => {
      const answer = kith.optimistic[change]!(args, cache);
      const waiting = cache.resolve(own, 'requests', { kind: args.kind, first: 0 } as Variables) as string | null;
      return answer && { ...answer, viewer: { ...answer.viewer, requests: { __typename: 'RequestConnection', ...plus(cache, waiting, 'totalCount', -1) } } };
    };
  const closes = later((_, { userId }, cache) => {
    close(cache, userId);
    if (cache.resolve({ __typename: 'User', id: String(userId) }, 'locked')) forget(cache, own, 'requests');
  });
  const mutesChanged = later((_, __, cache) => {
    forget(cache, own, 'mutedUsers', 'feed', 'activity');
    forget(cache, viewer, 'followSuggestions');
  });
  const followedMany: UpdateResolver = (_, __, cache) => {
    forget(cache, own, 'feed');
    forget(cache, viewer, 'followSuggestions');
  };
  const listOf = (id: unknown) => ({ __typename: 'List', id: String(id) });
  const listsChanged = later((_, __, cache) => [viewer, own].forEach(of => forget(cache, of, 'lists')));
  const comments = (cache: Cache, postId: string, by: number, change: (keys: string[], isFirst: boolean) => string[]) => {
    const post = { __typename: 'Post', id: postId };
    relist(cache, post, 'comments', change);
    const count = cache.resolve(post, 'commentCount');
    if (by && typeof count === 'number') cache.writeFragment(CommentCountFragmentDoc, { ...post, commentCount: count + by });
  };
  return {
    keys: kith.keys,
    optimistic: {
      ...kith.optimistic,
      acceptRequest: answered('acceptRequest'),
      declineRequest: answered('declineRequest'),
      updateList: ({ listId, name, public: isPublic }) => ({ __typename: 'ListPayload', changed: true, list: { ...listOf(listId), name, public: isPublic } }),
      removeFromList: ({ listId }, cache) => ({ __typename: 'ListPayload', changed: true, list: { ...listOf(listId), ...plus(cache, listOf(listId), 'memberCount', -1) }, outcomes: [] }),
      deletePost: (_, cache) => ({ __typename: 'PostPayload', changed: true, viewer: { ...own, user: { ...viewer, ...plus(cache, viewer, 'postCount', -1) } } }),
      deleteComment: () => ({ __typename: 'CommentPayload', changed: true }),
    },
    updates: {
      Mutation: {
        block: later((_, { userId }, cache) => {
          close(cache, userId);
          forget(cache, viewer, 'followings', 'followers', 'friends');
          forget(cache, own, 'requests', 'blockedUsers', 'activity');
        }),
        setFollowMark: later((_, __, cache) => forget(cache, viewer, 'followings')),
        unblock: closes,
        follow: closes,
        unfollow: closes,
        mute: mutesChanged,
        unmute: mutesChanged,
        dismissSuggestion: (result, args, cache, info) => {
          kith.updates.Mutation.dismissSuggestion!(result, args, cache);
          if (!info.optimistic) forget(cache, own, 'dismissedUsers');
        },
        undismissSuggestion: ({ undismissSuggestion }: { undismissSuggestion?: unknown }, { userId }, cache) => {
          if (undismissSuggestion) relist(cache, own, 'dismissedUsers', withoutUser(cache, userId), 'edges');
          forget(cache, viewer, 'followSuggestions');
        },
        acceptRequest: requestsChanged,
        declineRequest: requestsChanged,
        withdrawRequest: requestsChanged,
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
          forget(cache, listOf(listId), 'members');
          forget(cache, own, 'feed', 'lists');
        }),
        removeFromList: ({ removeFromList }: { removeFromList?: unknown }, { listId, userIds }, cache, { optimistic }) => {
          if (removeFromList) for (const id of userIds as string[]) relist(cache, listOf(listId), 'members', without(`User:${id}`));
          if (optimistic) return;
          forget(cache, own, 'feed', 'lists');
        },
      },
      Subscription: {
        // The event has how much is new. Pages are read again while they are shown.
        activityAdded: ({ activityAdded }: ActivityAddedSubscription, _, cache) => {
          if (activityAdded?.edge?.node?.kind === 'FOLLOW') forget(cache, viewer, 'followers');
          forgetPages(cache, 'activity');
        },
        requestChanged: requestsChanged,
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
