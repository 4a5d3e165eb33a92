// Asks Kith random queries, and has graphql-js answer them from what Kith answers to the simplest queries for the same values.
// What is collected, coerced, skipped, merged, put in order and left out as null is then graphql-js's doing, and both answers have
// to be the same. What graphql-js takes for invalid is refused. A subscription is compared by its first event. Reads {url, events, sdl, viewer, watched, queries, subscriptions, seed}, where events are
// addresses that answer a subscription with its first event, and watched is a user whose relationship with the viewer changes all the time, and prints {counts, differences}.
import { readFileSync } from "node:fs";
import * as g from "graphql";
import { draw } from "./draw.mjs";

const { url, events, sdl, viewer, watched, queries, subscriptions, seed } = JSON.parse(readFileSync(0, "utf8"));
const schema = g.buildSchema(sdl);

/** post sends a request, whose variables are JSON already. */
async function post(query, variables, to = url) {
  const response = await fetch(to, {
    method: "POST",
    headers: { "content-type": "application/json", "x-test-viewer": viewer },
    body: `{"query": ${JSON.stringify(query)}, "variables": ${variables}}`,
  });
  return response.json();
}

const isNode = (type) => g.isAbstractType(type) || type.name === "Viewer" || type.getInterfaces().some((i) => i.name === "Node");

/** whole selects everything of a type, up to objects that have an id. */
function whole(type) {
  type = g.getNamedType(type);
  if (g.isLeafType(type)) return "";
  if (type.name === "Viewer") return "{ __typename id }"; // not a node
  if (isNode(type)) return "{ __typename ... on Node { id } }";
  const fields = Object.values(type.getFields()).filter((f) => !f.args.some(g.isRequiredArgument));
  return `{ __typename ${fields.map((f) => f.name + whole(f.type)).join(" ")} }`;
}

const known = new Map(); // values that have been asked for

/** valueOf asks for one field: of the object with the id, or of the query. Errors stand where they belong in the value. */
function valueOf(parent, field, args, id) {
  const given = field.args.filter((a) => args[a.name] !== undefined);
  const call = field.name + (given.length ? `(${given.map((a) => `${a.name}: $${a.name}`).join(" ")})` : "") + whole(field.type);
  const declared = given.map((a) => `$${a.name}: ${a.type}`);
  const isViewer = parent === "Viewer";
  const query = isViewer
    ? `query${declared.length ? `(${declared.join(" ")})` : ""} { viewer { ${call} } }`
    : id
    ? `query(${["$_id: ID!", ...declared].join(" ")}) { node(id: $_id) { ... on ${parent} { ${call} } } }`
    : `${parent === "Subscription" ? "subscription" : "query"}${declared.length ? `(${declared.join(" ")})` : ""} { ${call} }`;
  const variables = JSON.stringify({ _id: id, ...args });
  if (!known.has(query + variables)) known.set(query + variables, post(query, variables, parent === "Subscription" ? events[0] : url));
  return known.get(query + variables).then(({ data, errors }) => {
    if (!data) throw new Error(errors[0].message);
    const below = { data };
    for (const { path, message } of errors ?? []) {
      const at = path.slice(0, -1).reduce((v, step) => v?.[step], data);
      if (at) at[path.at(-1)] = new g.GraphQLError(message);
    }
    if (isViewer) return below.data.viewer?.[field.name];
    return id ? below.data.node?.[field.name] : below.data[field.name];
  });
}

function resolve(source, args, _, info) {
  const { fieldName, parentType } = info;
  if (source === undefined) return valueOf(parentType.name, parentType.getFields()[fieldName], args);
  if (fieldName === "id" || !isNode(parentType)) return source[fieldName];
  return valueOf(parentType.name, parentType.getFields()[fieldName], args, source.id);
}

/**
 * paths are where the errors of an answer left null, once each: a field may have an error for each argument that is refused. An error of a field that must not be null empties what it is in, and whether
 * errors of other fields in there are reported is free (section 6.4.4): there, the emptied place counts.
 */
function paths({ data, errors }) {
  const places = (errors ?? []).map(({ path = [] }) => {
    const emptied = path.findIndex((_, n) => path.slice(0, n).reduce((v, step) => v?.[step], data) === null);
    return JSON.stringify(emptied < 0 ? path : { emptied: path.slice(0, emptied) });
  });
  return [...new Set(places)].sort().join(" ");
}

/** difference says how two answers differ; undefined if they do not. */
function difference(want, got) {
  if ((got.errors ?? []).some((e) => e.extensions.code.startsWith("INTERNAL"))) return "a fault of the server";
  const told = (got.errors ?? []).map(({ path, message, extensions }) => JSON.stringify([path, message, extensions.argument]));
  if (new Set(told).size < told.length) return "an error twice";
  if (JSON.stringify(want.data ?? null) !== JSON.stringify(got.data ?? null)) return "data";
  if (!want.data) return want.errors && got.errors ? undefined : "errors";
  if (got.extensions?.errorsOmitted === undefined && paths(want) !== paths(got)) return "paths";
}

const counts = { compared: 0, invalid: 0, refused: 0, withErrors: 0, cursors: 0 };
const differences = [];
const random = draw(schema, seed, watched);

/** compare compares so many operations of a kind, each at all addresses. */
async function compare(kind, count, addresses) {
  for (const most = counts.compared - counts.refused + count; counts.compared - counts.refused < most && differences.length < 10; ) {
    const { text, variables, notes } = random.operation(kind);
    const document = g.parse(text);
    const invalid = g.validate(schema, document);
    if (invalid.length) {
      counts.invalid++;
      const got = await post(text, variables);
      if (got.data !== undefined || !got.errors?.every((e) => e.extensions.code === "BAD_USER_INPUT"))
        differences.push({ how: "an invalid query is answered", text, variables, want: JSON.stringify(invalid), got: JSON.stringify(got) });
      continue;
    }
    const [want, ...answers] = await Promise.all([ // at once, because events are waited for
      g.execute({ schema, document, variableValues: JSON.parse(variables), fieldResolver: resolve, typeResolver: (v) => v.__typename }),
      ...addresses.map((address) => post(text, variables, address)),
    ]);
    counts.compared++;
    counts[kind] = (counts[kind] ?? 0) + 1;
    for (const note of notes) counts[note] = (counts[note] ?? 0) + 1;
    if (!want.data) counts.refused++;
    else if (want.errors) counts.withErrors++;
    for (const got of answers) {
      const how = difference(want, got);
      if (how) differences.push({ how, text, variables, want: JSON.stringify(want), got: JSON.stringify(got) });
      for (const [cursor] of JSON.stringify(got.data ?? null).matchAll(/(?<=Cursor":")[^"]+/g)) {
        random.cursor(cursor);
        counts.cursors++;
      }
    }
  }
}

await compare("query", queries, [url]);
await compare("subscription", subscriptions, events);
console.log(JSON.stringify({ counts, differences }));
