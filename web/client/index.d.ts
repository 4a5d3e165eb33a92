// The types of this package. It has no dependencies: the functions below take what they need of other libraries.

/** Who is signed in, and what they have written. */
export interface Session {
  /** The present token of identity, or null if nobody is signed in. */
  readonly token: string | null;
  /** `Authorization`, and `Kith-Consistency` with the consistency tokens of the last half minute: at most 3,000 characters, or one token. */
  readonly headers: Record<string, string>;
  /**
   * As the global `fetch`, with `headers`. Tokens of writes are kept for half a minute, so that reads see the writes. If the token is refused (401),
   * `renew` is called, and the request is sent once more. Give it to any library that takes a `fetch`.
   */
  readonly fetch: typeof globalThis.fetch;
  /**
   * Replaces a token that was refused; `renew(null)` signs in a person whom the session has no token of yet. Calls at the same time share
   * one call of `signIn`, whose error they get; without `signIn` the session is closed.
   */
  renew(refused: string | null): Promise<void>;
  /** Signs out here. The token stays valid until it ends: `signOutEverywhere` ends all tokens of the user. */
  close(): void;
}

export interface SessionOptions {
  /** The token to begin with: of the last visit, or of `login`. */
  token?: string | null;
  /** Gets a new token, from `login` or from the identity provider by its refresh token; null ends the session. */
  signIn?: () => Promise<string | null>;
  /**
   * Gets a new token for one that is still valid, when half of its time is over, and if that fails, when half of the rest is:
   * `(token) => renewToken(url, token)`. For tokens that Kith has issued alone: leave it out for those of a provider or with a scope.
   */
  extend?: (token: string) => Promise<string | null>;
  /** Is told each new token, for a page that keeps it, and null when the session is closed. */
  changed?: (token: string | null) => void;
}
export function createSession(options?: SessionOptions): Session;

/** The token of a user with a password. The error has the `errors` of the answer. */
export function login(url: string, handle: string, password: string): Promise<string>;
/** A new token for one that is still valid, or null if Kith gives none. */
export function renewToken(url: string, token: string): Promise<string | null>;

/** An operation with the types of its answer and of its variables, as graphql-codegen (`documentMode: "string"`) and others write it. */
export interface TypedDocument<Data, Variables> {
  toString(): string;
  __apiType?: (variables: Variables) => Data;
}
export interface GraphQLError {
  message: string;
  path?: (string | number)[];
  extensions?: { code?: string; reason?: string; argument?: string; retryable?: boolean; retryAfter?: number; [name: string]: unknown };
}
export interface Answer<Data> {
  data?: Data | null;
  errors?: GraphQLError[];
  extensions?: { consistencyToken?: string; stale?: boolean; [name: string]: unknown };
}
/** Sends an operation without a library. Errors of the answer are in it; the promise is rejected if there is no answer. */
export function ask<Data = any, Variables = Record<string, unknown>>(
  url: string,
  session: Pick<Session, "fetch">,
  operation: { query: string | TypedDocument<Data, Variables>; variables?: Variables },
): Promise<Answer<Data>>;

/**
 * Options of graphql-ws. `connected` is called whenever a subscription has begun, at the start and after each reconnect: ask then for
 * what was missed. When a subscription ends with the reason `FELL_BEHIND`, subscribe again.
 */
export function socketOptions(
  url: string,
  session: Session,
  connected?: () => void,
): {
  url: string;
  connectionParams: () => Promise<Record<string, string>>;
  on: { ping: (received: boolean, payload?: Record<string, unknown>) => void; closed: (event: unknown) => void };
  retryAttempts: number;
  retryWait: (retries: number) => Promise<void>;
  shouldRetry: () => boolean;
};
/** The same for graphql-sse, where each subscription has a connection. */
export function streamOptions(
  url: string,
  session: Session,
  connected?: () => void,
): { url: string; fetchFn: typeof globalThis.fetch; on: { connected: () => void }; retryAttempts: number; retryWait: (retries: number) => Promise<void> };

/** Options of Apollo Client's `InMemoryCache`, given its `relayStylePagination`. */
export function apolloCache<Policy>(relayStylePagination: (keyArgs: string[]) => Policy): {
  typePolicies: Record<string, { merge?: boolean; fields?: Record<string, Policy> }>;
  possibleTypes: Record<string, string[]>;
};
/** Options of urql's `cacheExchange` with graphcache, given its `relayPagination`. Keys of types that are not Kith's are yours to add. */
export function graphcache<Resolver>(relayPagination: () => Resolver): {
  keys: Record<string, () => null>;
  resolvers: Record<string, Record<string, Resolver>>;
};
/**
 * Adds to these options the answers that Kith will most likely give to changes between the viewer and others (a follow, a block, a favorite, …),
 * which graphcache shows at once, and what they do to the viewer's lists. `viewerId` is the viewer's; without it, only pages that have asked for
 * `viewer { id user { id } }` show anything at once. If a page has rules of its own for a change, it calls these in its own.
 */
export function optimistic<Options extends object>(
  options: Options & { viewerId?: string },
): Options & {
  keys: Record<string, (data: any) => string | null>;
  optimistic: Record<string, (args: any, cache: any) => any>;
  updates: Record<"Mutation" | "Subscription", Record<string, (result: any, args: any, cache: any, info?: any) => void>>;
};
/** Settings of Relay's compiler. */
export const relay: { customScalarTypes: typeof scalars; typescriptExcludeUndefinedFromNullableUnion: boolean };

/** The types of each interface of the schema. */
export const possibleTypes: Record<string, string[]>;
/** The types of objects without an id. */
export const keyless: string[];
/** The lists of each type, by field, with the arguments that choose another list, not another page. */
export const lists: Record<string, Record<string, string[]>>;
/** How values of the schema's scalars are written: the `scalars` of graphql-codegen. */
export const scalars: { DateTime: "string" };
/** The same as types, for gql.tada. */
export interface Scalars {
  DateTime: string;
}

/** An event of the subscription `changes`, or a line of `kith changes`. */
export interface Change {
  kind?: string | null;
  type?: string;
  subject?: string | null;
  data?: Record<string, string> | null;
}
/** A copy of follows, requests and favorites in memory. */
export interface EdgesCopy {
  /** How many edges there are. */
  readonly size: number;
  /** Takes an event, in the order in which they come; one that is older than what is known of its edge changes nothing. Of digests it returns the users whose edges differ, which are to be read again, or null. */
  take(event: Change): string[] | null;
}
export function edgesCopy(): EdgesCopy;
