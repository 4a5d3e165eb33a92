// The client of Kith's API: a cache that keeps each object once, by its id; follows that show at
// once; tokens of consistency, by which reads see earlier writes; subscriptions on one WebSocket.
import { cacheExchange, type Cache, type CacheExchangeOpts, type Entity, type Variables } from '@urql/exchange-graphcache';
import { createClient as createSocket } from 'graphql-ws';
import { Client, fetchExchange, makeOperation, mapExchange, subscriptionExchange, type CombinedError, type Exchange, type Operation, type OperationResult } from 'urql';
import { filter, fromPromise, merge, mergeMap, pipe, share, tap } from 'wonka';
import { CardDocument, type RelationshipChangesSubscription } from './gql';
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
      unblock,
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

/**
 * unblock sends queries that the cache holds back. While a change is under way whose outcome is shown
 * already, the cache asks nothing about the objects that it changes, and asks when it has ended: unless
 * the query has no answer at all yet, which the client takes for one that is under way.
 */
const unblock: Exchange = ({ client, forward }) => {
  const changes = new Set<number>();
  const held = new Map<number, Operation>();
  return operations =>
    pipe(
      operations,
      tap(op => {
        if (op.kind === 'mutation') changes.add(op.key);
        else if (op.kind === 'teardown') held.delete(op.key);
        else if (op.kind === 'query' && changes.size > 0) held.set(op.key, op);
      }),
      forward,
      tap(({ operation }) => {
        held.delete(operation.key);
        if (!changes.delete(operation.key) || changes.size > 0) return;
        for (const op of held.values()) client.reexecuteOperation(makeOperation('query', op, { ...op.context, requestPolicy: 'network-only' }));
        held.clear();
      }),
    );
};

/**
 * inTurn sends the changes between the viewer and one user one after another, in the order of the clicks.
 * Meanwhile it keeps back what happens live between the two: that is the outcome of a change before the last one, and
 * the button would jump. When all have been made, it reads how things stand.
 */
const inTurn: Exchange = ({ client, forward }) => {
  const last = new Map<string, Promise<void>>();
  const done = new Map<number, () => void>();
  const waiting = new Map<string, number>();
  const missed = new Set<string>();

  const userOf = (op: Operation) => String((op.variables as { userId: string }).userId);
  const turn = (op: Operation): Promise<Operation> => {
    const user = userOf(op);
    const before = last.get(user) ?? Promise.resolve();
    last.set(user, before.then(() => new Promise(resolve => done.set(op.key, resolve))));
    waiting.set(user, (waiting.get(user) ?? 0) + 1);
    return before.then(() => op);
  };
  const ended = (op: Operation) => {
    if (!done.has(op.key)) return;
    done.get(op.key)!();
    done.delete(op.key);
    const user = userOf(op);
    const rest = waiting.get(user)! - 1;
    waiting.set(user, rest);
    if (rest === 0 && missed.delete(user)) void client.query(CardDocument, { id: user }, { requestPolicy: 'network-only' }).toPromise();
  };
  const waits = (op: Operation) => op.kind === 'mutation' && 'userId' in (op.variables as object);
  return operations => {
    const shared = share(operations);
    const now = pipe(shared, filter(op => !waits(op)));
    const later = pipe(shared, filter(waits), mergeMap(op => fromPromise(turn(op))));
    return pipe(
      forward(merge([now, later])),
      filter(({ data }: OperationResult<Partial<RelationshipChangesSubscription>>) => {
        const user = data?.relationshipChanged?.id.split('_')[2] ?? '';
        if (!waiting.get(user)) return true;
        missed.add(user);
        return false;
      }),
      tap(result => ended(result.operation)),
    );
  };
};

/** The event of the window after which what is shown may be old. */
export const reconnected = 'kith-reconnected';

function socketExchange(session: Session): Exchange {
  const url = new URL(endpoint, location.href);
  url.protocol = url.protocol.replace('http', 'ws');
  let wasConnected = false;
  const socket = createSocket({
    url: url.href,
    connectionParams: { Authorization: `Bearer ${session.token}` },
    lazyCloseTimeout: 5_000,
    retryAttempts: Infinity,
    shouldRetry: () => true,
    on: {
      // What happened meanwhile was missed.
      connected: () => {
        if (wasConnected) dispatchEvent(new Event(reconnected));
        wasConnected = true;
      },
    },
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
