// What normalised caches have to know about Kith's schema, from the tables of schema.js.
import { keyless, lists, possibleTypes, scalars } from "./schema.js";

const table = (names, value) => Object.fromEntries(names.map((name) => [name, value(name)]));

// eachList has for each type with lists its fields, and for each of these what policy makes of its arguments except those of paging.
const eachList = (policy) =>
  table(Object.keys(lists), (type) => table(Object.keys(lists[type]), (field) => policy(lists[type][field])));

// A list is one entry of the cache, whatever page was asked for; each filter and each order has a list of its own. Objects
// without an id are merged into the object that they were read from.
export function apolloCache(relayStylePagination) {
  const parts = keyless.filter((type) => !/(Connection|Edge|PageInfo|Payload)$/.test(type));
  const typePolicies = table(parts, () => ({ merge: true }));
  for (const [type, fields] of Object.entries(eachList(relayStylePagination))) typePolicies[type] = { fields };
  return { typePolicies, possibleTypes };
}

// Objects without an id belong to the object that they were read from.
export function graphcache(relayPagination) {
  return { keys: table(keyless, () => () => null), resolvers: eachList(() => relayPagination()) };
}

// relay is for relay.config.js.
export const relay = { customScalarTypes: scalars, typescriptExcludeUndefinedFromNullableUnion: true };
