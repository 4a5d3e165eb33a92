// The client of Kith's API: a cache that keeps each object once, by its id; changes that are shown at
// once; consistency tokens, by which reads see earlier writes; subscriptions on one WebSocket.
import { cacheExchange } from '@urql/exchange-graphcache';
import { createClient as createSocket } from 'graphql-ws';
import { Client, fetchExchange, makeOperation, mapExchange, subscriptionExchange, type Exchange, type Operation, type OperationResult } from 'urql';
import { filter, fromPromise, map, merge, mergeMap, pipe, share, tap } from 'wonka';
import { cacheOptions } from './cache';
import { StandingDocument, type RelationshipChangesSubscription } from './gql';
import { endpoint, freshToken, refused, tokenOf } from './session';
import { notice } from './ui';

/** Makes the client of one user, or of somebody who is not signed in. */
export function makeClient(userId: string | undefined) {
  return new Client({
    url: endpoint,
    preferGetMethod: false,
    fetch: fetchAs(userId, recentTokens()),
    exchanges: [mapExchange({ onError: notice }), apart, again, unblock, cacheExchange(cacheOptions(userId)), inTurn, fetchExchange, ...(userId ? [socketExchange(userId)] : [])],
  });
}

// Consistency tokens. A read with the tokens of earlier writes waits until it can see these writes, on
// any gateway. Tokens are dropped after half a minute.
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

function fetchAs(userId: string | undefined, recent: Tokens): typeof fetch {
  return async (input, init) => {
    const send = (token: string | undefined) => {
      const headers = new Headers(init?.headers);
      if (token) headers.set('Authorization', `Bearer ${token}`);
      const consistency = recent.header();
      if (consistency) headers.set('Kith-Consistency', consistency);
      return fetch(input, { ...init, headers });
    };
    const token = await freshToken(userId);
    let response = await send(token);
    const newer = token && response.status === 401 && refused(token);
    if (newer && newer === tokenOf(userId)) response = await send(newer);
    const written = response.headers.get('Kith-Consistency');
    if (written) recent.add(written);
    return response;
  };
}

/**
 * apart gives each change a key of its own. By the library's keys, a change that is sent again before it has ended is the first one again, and
 * the cache shows its outcome below those of the changes that came between.
 */
const apart: Exchange = ({ forward }) => {
  const sent = new Map<number, Operation>();
  let last = 0;
  return operations =>
    pipe(
      operations,
      map(op => {
        if (op.kind !== 'mutation') return op;
        sent.set(--last, op); // the library's keys are not negative
        return makeOperation('mutation', { ...op, key: last }, op.context);
      }),
      forward,
      map(result => {
        const operation = sent.get(result.operation.key);
        return operation && sent.delete(result.operation.key) ? { ...result, operation } : result;
      }),
    );
};

/** The event of the window after which the page may show old data. */
const reconnected = 'kith-reconnected';

/**
 * again reads all that the page shows when events may have been missed. The cache is not bypassed: while a change whose outcome is shown
 * already is under way, an answer may be older than it.
 */
const again: Exchange = ({ client, forward }) => {
  const shown = new Map<number, Operation>();
  addEventListener(reconnected, () => {
    for (const op of shown.values()) client.reexecuteOperation(makeOperation('query', op, { ...op.context, requestPolicy: 'cache-and-network' }));
  });
  return operations =>
    pipe(
      operations,
      tap(op => {
        if (op.kind === 'query') shown.set(op.key, op);
        else if (op.kind === 'teardown') shown.delete(op.key);
      }),
      forward,
    );
};

/**
 * unblock sends queries that the cache holds back. While a change is under way and its expected outcome
 * is shown already, the cache does not query the objects that it changes. It queries them when the change
 * has ended, unless a query has no answer at all yet: the client takes that query for one under way.
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
 * inTurn sends the changes between the viewer and one user, or one post, one after another, in the order of the clicks.
 * Meanwhile it holds back live events between the two: they are outcomes of a change before the last one, and
 * the button would jump. When all changes have been made, it reads the present state.
 */
const inTurn: Exchange = ({ client, forward }) => {
  const last = new Map<string, Promise<void>>();
  const done = new Map<number, () => void>();
  const waiting = new Map<string, number>();
  const missed = new Set<string>();

  const other = ({ variables }: Operation): string | undefined => variables?.userId ?? variables?.postId;
  const turn = (op: Operation): Promise<Operation> => {
    const id = other(op)!;
    const before = last.get(id) ?? Promise.resolve();
    last.set(id, before.then(() => new Promise(resolve => done.set(op.key, resolve))));
    waiting.set(id, (waiting.get(id) ?? 0) + 1);
    return before.then(() => op);
  };
  const ended = (op: Operation) => {
    if (!done.has(op.key)) return;
    done.get(op.key)!();
    done.delete(op.key);
    const id = other(op)!;
    const rest = waiting.get(id)! - 1;
    waiting.set(id, rest);
    if (rest === 0 && missed.delete(id)) void client.query(StandingDocument, { id }, { requestPolicy: 'network-only' }).toPromise();
  };
  const waits = (op: Operation) => op.kind === 'mutation' && !!other(op);
  return operations => {
    const shared = share(operations);
    const now = pipe(shared, filter(op => !waits(op)));
    const later = pipe(shared, filter(waits), mergeMap(op => fromPromise(turn(op))));
    return pipe(
      forward(merge([now, later])),
      filter(({ data }: OperationResult<Partial<RelationshipChangesSubscription>>) => {
        const user = data?.relationshipChanged?.relationship?.id.split('_')[2] ?? '';
        if (!waiting.get(user)) return true;
        missed.add(user);
        return false;
      }),
      tap(result => ended(result.operation)),
    );
  };
};

// The library's own waits double without an end. This one ends at half a minute, and spreads clients that were cut off together.
const retryWait = (retries: number) => new Promise<void>(go => setTimeout(go, Math.min(4_000 * 2 ** retries, 30_000) * (0.5 + Math.random() / 2)));

function socketExchange(userId: string): Exchange {
  const url = new URL(endpoint, location.href);
  url.protocol = url.protocol.replace('http', 'ws');
  let isBehind = false; // since a connection was lost, or a subscription
  let reading = 0;
  const socket = createSocket({
    url: url.href,
    connectionParams: async () => ({ Authorization: `Bearer ${await freshToken(userId)}`, begun: 'ping' }),
    lazyCloseTimeout: 5_000,
    retryAttempts: Infinity,
    retryWait,
    shouldRetry: () => true,
    on: {
      // A ping tells that a subscription has begun. Events that came before were missed, and reads have failed.
      ping: received => {
        if (!received || !isBehind) return;
        clearTimeout(reading);
        reading = window.setTimeout(() => dispatchEvent(new Event(reconnected)), 100); // others begin at about the same time
      },
      closed: event => {
        isBehind = true;
        // The token has ended. A read shows whether the session has ended, too.
        if ((event as CloseEvent).code === 4403) dispatchEvent(new Event(reconnected));
      },
    },
  });
  return subscriptionExchange({
    forwardSubscription: ({ query = '', variables }) => ({
      subscribe: sink => {
        let end: () => void;
        let isOver = false;
        let failures = 0;
        // A subscription begins again if too much has changed at once, and, after a wait, if what it reads at its beginning cannot be read.
        const again = async (wait: boolean) => {
          if (wait) await retryWait(failures++);
          if (isOver) return;
          isBehind = true;
          begin();
        };
        const begin = () => {
          let mayPass = false; // an answer that is only an error, behind which the subscription is complete
          end = socket.subscribe(
            { query, variables },
            {
              next: answer => {
                mayPass = !answer.data && !!answer.errors?.[0]?.extensions?.retryable;
                if (!mayPass) sink.next(answer as Parameters<typeof sink.next>[0]);
              },
              complete: () => (mayPass ? void again(true) : sink.complete()),
              error: problem => {
                const { reason, retryable } = (Array.isArray(problem) && problem[0]?.extensions) || {};
                if (retryable) void again(reason !== 'FELL_BEHIND');
                else sink.error(problem);
              },
            },
          );
        };
        begin();
        return {
          unsubscribe: () => {
            isOver = true;
            end();
          },
        };
      },
    }),
  });
}
