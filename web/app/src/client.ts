// The client of Kith's API: a cache that keeps each object once, by its id; follows that show at
// once; tokens of consistency, by which reads see earlier writes; subscriptions on one WebSocket.
import { cacheExchange, type Cache, type CacheExchangeOpts, type Entity, type Variables } from '@urql/exchange-graphcache';
import { createClient as createSocket } from 'graphql-ws';
import { Client, fetchExchange, mapExchange, subscriptionExchange, type CombinedError, type Exchange, type Operation } from 'urql';
import { filter, fromPromise, map, merge, mergeMap, pipe, share, tap } from 'wonka';
import { endpoint, type Session } from './session';

/** Makes the client of one session. ended is called when the gateway does not take its token any more. */
export function makeClient(session: Session | null, ended: () => void) {
  return new Client({
    url: endpoint,
    preferGetMethod: false,
    fetch: fetchWith(session, recentTokens()),
    exchanges: [
      mapExchange({
        onResult: ({ error }) => {
          if (session && (error?.response as Response | undefined)?.status === 401) ended();
        },
      }),
      cacheExchange(cacheOptions(session?.userId)),
      inTurn,
      fetchExchange,
      ...(session ? [socketExchange(session)] : []),
    ],
  });
}

// Tokens of consistency. A read with the tokens of earlier writes waits until it can see them, on
// whichever gateway it arrives. After half a minute nobody waits for them any more.
const tokenLife = 30_000;
const tokensLength = 3_000;

type Tokens = { add: (token: string) => void; header: () => string };

function recentTokens(): Tokens {
  let kept: { token: string; at: number }[] = [];
  const fresh = () => kept.filter(one => Date.now() - one.at < tokenLife);
  const spell = (some: typeof kept) => some.map(one => one.token).join(',');
  return {
    add: token => {
      kept = [...fresh(), { token, at: Date.now() }];
      while (kept.length > 1 && spell(kept).length > tokensLength) kept.shift();
    },
    header: () => spell((kept = fresh())),
  };
}

function fetchWith(session: Session | null, tokens: Tokens): typeof fetch {
  return async (input, init) => {
    const headers = new Headers(init?.headers);
    if (session) headers.set('Authorization', `Bearer ${session.token}`);
    const recent = tokens.header();
    if (recent) headers.set('Kith-Consistency', recent);
    const response = await fetch(input, { ...init, headers });
    const written = response.headers.get('Kith-Consistency');
    if (written) tokens.add(written);
    return response;
  };
}

/** inTurn sends the changes between the viewer and one user one after another, in the order of the clicks. */
const inTurn: Exchange = ({ forward }) => {
  const last = new Map<string, Promise<void>>();
  const done = new Map<number, () => void>();

  const turn = (op: Operation): Promise<Operation> => {
    const of = String((op.variables as { userId: string }).userId);
    const before = last.get(of) ?? Promise.resolve();
    last.set(of, before.then(() => new Promise(resolve => done.set(op.key, resolve))));
    return before.then(() => op);
  };
  const waits = (op: Operation) => op.kind === 'mutation' && 'userId' in (op.variables as object);
  return operations => {
    const shared = share(operations);
    const now = pipe(shared, filter(op => !waits(op)));
    const later = pipe(shared, filter(waits), mergeMap(op => fromPromise(turn(op))));
    return pipe(
      forward(merge([now, later])),
      tap(result => {
        done.get(result.operation.key)?.();
        done.delete(result.operation.key);
      }),
      map(result => result),
    );
  };
};

function socketExchange(session: Session): Exchange {
  const url = new URL(endpoint, location.href);
  url.protocol = url.protocol.replace('http', 'ws');
  const socket = createSocket({
    url: url.href,
    connectionParams: { Authorization: `Bearer ${session.token}` },
    lazyCloseTimeout: 5_000,
    retryAttempts: Infinity,
    shouldRetry: () => true,
  });
  return subscriptionExchange({
    forwardSubscription: ({ query = '', variables }) => ({
      subscribe: sink => ({ unsubscribe: socket.subscribe({ query, variables }, sink) }),
    }),
  });
}

// Types that have no id belong to the object that they were read with.
const parts = [
  'UserConnection', 'UserEdge', 'PageInfo', 'ListVisibility', 'SuggestionConnection', 'SuggestionEdge', 'SuggestionExclusions',
  'FriendRequestConnection', 'FriendRequestEdge', 'UserSearchConnection', 'UserSearchEdge', 'PostConnection', 'PostEdge',
  'FeedConnection', 'NewerPosts', 'Media', 'EdgesAmong', 'FollowOutcome', 'FollowError',
];

/** forget lets the cache read some fields of an object anew. Pages that show them ask at once. */
function forget(cache: Cache, entity: Entity, ...names: string[]) {
  for (const field of cache.inspectFields(entity)) {
    if (names.includes(field.fieldName)) cache.invalidate(entity, field.fieldName, field.arguments as Variables);
  }
}

function cacheOptions(viewerId: string | undefined): Partial<CacheExchangeOpts> {
  const viewer = viewerId ? { __typename: 'User', id: viewerId } : null;
  const forgetOwn = (cache: Cache, ...names: string[]) => viewer && forget(cache, viewer, ...names);
  const requestsChanged = (_: unknown, __: unknown, cache: Cache) => forgetOwn(cache, 'friendRequests');
  return {
    keys: Object.fromEntries(parts.map(name => [name, () => null])),
    optimistic: {
      follow: ({ userId }, cache) => followed(cache, viewerId, String(userId), true),
      unfollow: ({ userId }, cache) => followed(cache, viewerId, String(userId), false),
      favorite: ({ postId }, cache) => favorited(cache, String(postId), true),
      unfavorite: ({ postId }, cache) => favorited(cache, String(postId), false),
      setFollowMark: ({ userId, ...mark }, cache) => {
        const rel = relationOf(viewerId, String(userId));
        return {
          __typename: 'RelationshipPayload',
          changed: true,
          relationship: { special: cache.resolve(rel, 'special') ?? null, remark: cache.resolve(rel, 'remark') ?? null, ...defined(mark), ...rel },
        };
      },
    },
    updates: {
      Mutation: {
        block: (_, { userId }, cache) => {
          forget(cache, { __typename: 'User', id: String(userId) }, 'followings', 'followers', 'friends', 'followersYouKnow', 'posts');
          forgetOwn(cache, 'followings', 'followers', 'friends', 'friendRequests', 'blockedUsers');
        },
        unblock: (_, { userId }, cache) => {
          forget(cache, { __typename: 'User', id: String(userId) }, 'followings', 'followers', 'friends', 'followersYouKnow', 'posts');
        },
        acceptFriend: requestsChanged,
        declineFriend: requestsChanged,
        cancelFriendRequest: requestsChanged,
        requestFriend: requestsChanged,
        publishPost: (_, __, cache) => forgetOwn(cache, 'posts'),
        deletePost: (_, { id }, cache) => cache.invalidate({ __typename: 'Post', id: String(id) }),
        followMany: (_, __, cache) => forgetOwn(cache, 'feed', 'followSuggestions'),
      },
      Subscription: {
        newFollowers: (_, __, cache) => forgetOwn(cache, 'followers', 'followerCount', 'friendCount'),
        friendRequestChanged: requestsChanged,
      },
    },
  };
}

const relationOf = (from: string | undefined, to: string) => ({ __typename: 'Relationship', id: `rel_${from}_${to}` });

const defined = (some: Record<string, unknown>) => Object.fromEntries(Object.entries(some).filter(([, value]) => value !== undefined && value !== null));

/** followed is the answer that `follow` or `unfollow` will most likely have. */
function followed(cache: Cache, viewerId: string | undefined, userId: string, following: boolean) {
  const rel = relationOf(viewerId, userId);
  const was = cache.resolve(rel, 'following') === true;
  const followedBy = cache.resolve(rel, 'followedBy') === true;
  const by = following === was ? 0 : following ? 1 : -1;
  const counts = (id: string, name: string) => {
    const user = { __typename: 'User', id };
    const plus = (field: string, n: number) => {
      const value = cache.resolve(user, field);
      return { [field]: typeof value === 'number' ? Math.max(0, value + n) : (value ?? null) };
    };
    return { ...user, ...plus('followingCount', 0), ...plus('followerCount', 0), ...plus('friendCount', followedBy ? by : 0), ...plus(name, by) };
  };
  return {
    __typename: 'FollowPayload',
    changed: true,
    viewer: counts(viewerId ?? '', 'followingCount'),
    user: counts(userId, 'followerCount'),
    relationship: { ...rel, following, followedBy, status: following ? (followedBy ? 'MUTUAL' : 'FOLLOWING') : followedBy ? 'FOLLOWED_BY' : 'NONE' },
    consistencyToken: '',
  };
}

function favorited(cache: Cache, id: string, viewerHasFavorited: boolean) {
  const post = { __typename: 'Post', id };
  const count = Number(cache.resolve(post, 'favoriteCount') ?? 0);
  return {
    __typename: 'FavoritePayload',
    changed: true,
    post: { ...post, viewerHasFavorited, favoriteCount: Math.max(0, count + (viewerHasFavorited ? 1 : -1)) },
  };
}

/** A sentence for people about what went wrong. */
export function sentence(error: CombinedError | undefined): string {
  if (!error) return '';
  const first = error.graphQLErrors[0];
  if (first) return first.message.charAt(0).toUpperCase() + first.message.slice(1) + '.';
  return 'The gateway cannot be reached.';
}
