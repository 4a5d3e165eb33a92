// Draws queries over a schema: aliases, fields asked for twice, fragments, also spread again, directives, and arguments as literals, as block strings and as
// variables that are right, lenient, null, wrong or missing. Some queries are not valid.
import * as g from "graphql";

/** generator gives numbers from 0 to 1, the same for the same seed (mulberry32). */
function generator(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const ids = ["1", "2", "3", "5", "7", "8", "99", "rel_1_2", "rel_3_1", "post_2_2", "post_1_1", "cmt_2_1005", "x", ""];
const handles = ["u1", "U2", "u", "  u3 ", "nobody", "no handle!", "ü"];
const representations = [
  '{"__typename": "User", "id": "2"}', '{"__typename": "User", "id": 3}', '{"__typename": "User", "id": "99"}', '{"__typename": "User", "handle": "U1"}',
  '{"__typename": "User", "handle": "u2", "id": "7", "more": [1, {"a": null}]}', '{"__typename": "Post", "id": "post_2_2"}', '{"__typename": "Comment", "id": "cmt_2_1005"}',
  '{"__typename": "Relationship", "id": "rel_3_1"}', '{"__typename": "User", "id": "rel_3_1"}', '{"__typename": "Nothing", "id": "1"}', '{"__typename": "User"}', '"x"',
];
const skipped = new Set(["_service", "reconcileStatus", "__typename"]);

export function draw(schema, seed, watched) {
  const random = generator(seed);
  const chance = (percent) => random() * 100 < percent;
  const one = (list) => list[Math.floor(random() * list.length)];
  const cursors = ["", "x"];
  const watching = [`["${watched}"]`, watched, `[99, ${watched}, "1"]`];
  let variables, fragments, notes, fresh;
  let spread = {}; // fragments that are whole, by their types

  const note = (what) => notes.add(what);
  const texts = (name) => (name === "handle" || name === "handles" || name === "prefix" ? handles : cursors);

  /** json is a value of a type as JSON, now and then a wrong one. */
  function json(type, name) {
    if (g.getNullableType(type).name === "_Any") return (note("entities"), one(representations));
    if (chance(1.5)) return (note("wrong"), one(['{"a": 1}', "[[1]]", "true", "2.5", '"2"', "7", "3000000000", "null"]));
    if (g.isNonNullType(type)) return json(type.ofType, name);
    if (chance(8)) return (note("null"), "null");
    if (g.isListType(type)) {
      if (chance(20)) return (note("single"), json(type.ofType, name));
      return `[${Array.from({ length: Math.floor(random() * 4) }, () => json(type.ofType, name)).join(", ")}]`;
    }
    if (g.isEnumType(type)) return chance(3) ? (note("wrong"), '"nothing"') : JSON.stringify(one(type.getValues()).name);
    if (g.isInputObjectType(type)) return `{${object(type, json).map(([name, value]) => `"${name}": ${value}`).join(", ")}}`;
    switch (type.name) {
      case "Int":
        return chance(15) ? (note("lenient"), one(["2.0", "1e0", "2e-0", "0.3e1", "-1", "101", "3.0", chance(30) ? '"2"' : "1"])) : one(["0", "1", "2", "3"]);
      case "ID":
        return chance(25) ? (note("lenient"), one(["1", "2", "3.0", "5e0", "-7"])) : JSON.stringify(one(ids));
      case "Boolean":
        return chance(2) ? (note("lenient"), one(['"true"', "1", "0"])) : one(["true", "false"]);
    }
    return JSON.stringify(one(texts(name)));
  }

  function object(type, value) {
    const fields = Object.values(type.getFields());
    const given = type.isOneOf ? [one(fields)] : fields.filter((f) => g.isRequiredInputField(f) || chance(50));
    if (value === json && chance(5)) given.push(one(fields));
    strict += type.isOneOf ? 1 : 0;
    const values = given.map((f) => [f.name, deep(() => value(type.isOneOf ? new g.GraphQLNonNull(g.getNullableType(f.type)) : f.type, f.name))]);
    strict -= type.isOneOf ? 1 : 0;
    return values;
  }

  let depth = 0;
  let constant = 0; // more: no variables
  let strict = 0; // more: within @oneOf, where variables must not be nullable
  function deep(of) {
    depth++;
    const value = depth > 6 ? "1" : of(); // filters nest
    depth--;
    return value;
  }

  /** literal is a value of a type as it is written in a query, or a variable. */
  function literal(type, name, hasDefault) {
    if (!constant && chance(35)) return variable(type, name, hasDefault);
    if (g.isNonNullType(type)) return plain(type.ofType, name);
    return chance(8) ? "null" : plain(type, name);
  }

  function plain(type, name) {
    if (type.name === "_Any") return (note("entities"), one(representations).replace(/"(\w+)":/g, "$1:"));
    if (g.isListType(type)) {
      if (chance(20)) return (note("single"), plain(g.getNullableType(type.ofType), name));
      return `[${Array.from({ length: Math.floor(random() * 4) }, () => literal(type.ofType, name)).join(", ")}]`;
    }
    if (g.isEnumType(type)) return chance(2) ? wrong() : one(type.getValues()).name;
    if (g.isInputObjectType(type)) return `{${object(type, literal).map(([name, value]) => `${name}: ${value}`).join(", ")}}`;
    switch (type.name) {
      case "Int":
        return chance(2) ? wrong() : one(["0", "1", "2", "3", "100", "101", "-1"]);
      case "ID":
        return chance(2) ? wrong() : chance(30) ? one(["1", "2", "3", "0", "-1"]) : quoted(one(ids));
      case "Boolean":
        return chance(2) ? wrong() : one(["true", "false"]);
    }
    return quoted(one(texts(name)));
  }

  /** wrong is a literal that few types take. */
  const wrong = () => one(["{}", "[]", "[[1]]", "{id: 1}", "nothing", "1.5", '"1"', "true"]);

  /** quoted is a text, as a block string or with escapes now and then. */
  function quoted(text) {
    if (chance(25)) return (note("block"), `"""${one(["", " ", "\n", "\r\n  "])}${text}${one(["", "\n", "\n  y\n    z", "\r    y\n\n  z  \n "])}"""`);
    if (chance(10)) return '"' + one(["\\u0075", "\\u{75}", "\\ud83d\\ude00", "\\n"]) + text + '"';
    return JSON.stringify(text);
  }

  /** variable makes a variable that fits a place, with a default where a place that takes no null gets one that may be null. */
  function variable(type, name, hasDefault) {
    const v = `v${fresh++}`;
    let declared = type;
    let byDefault = "";
    if (strict) declared = new g.GraphQLNonNull(g.getNullableType(type));
    else if (g.isNonNullType(type)) {
      if (hasDefault && chance(40)) declared = type.ofType;
      else if (chance(50)) [declared, byDefault] = [type.ofType, ` = ${fixed(type.ofType, name)}`];
    } else if (chance(30)) declared = new g.GraphQLNonNull(type);
    else if (chance(30)) byDefault = ` = ${fixed(type, name)}`;
    let value = chance(g.isNonNullType(declared) && !byDefault ? 2 : 15) ? undefined : json(declared, name);
    if (byDefault && g.isNonNullType(type) && chance(40)) (note("null with a default"), (value = "null"));
    variables.push([v, `$${v}: ${declared}${byDefault}`, value]);
    return `$${v}`;
  }

  /** fixed is a literal without variables. */
  function fixed(type, name) {
    constant++;
    const text = plain(g.getNullableType(type), name);
    constant--;
    return text;
  }

  const directives = () => (chance(15) ? ` @${one(["skip", "include"])}(if: ${literal(new g.GraphQLNonNull(g.GraphQLBoolean), "if")})` : "");

  function selection(type, level) {
    type = g.getNamedType(type);
    const parts = [];
    for (let n = 1 + Math.floor(random() * 3); n > 0; n--) parts.push(part(type, level));
    return `{ ${parts.join(" ")} }`;
  }

  function part(type, level) {
    if (chance(10)) return `__typename${directives()}`;
    if (g.isAbstractType(type)) {
      const concrete = one(schema.getPossibleTypes(type));
      return `... on ${concrete.name}${directives()} ${selection(concrete, level)}`;
    }
    if (chance(12)) return `...${chance(50) ? ` on ${type.name}` : ""}${directives()} ${selection(type, level)}`;
    if (spread[type.name] && chance(20)) return (note("again"), `...${one(spread[type.name])}${directives()}`);
    if (chance(10)) {
      const name = `F${fresh++}`;
      fragments.push(`fragment ${name} on ${type.name} ${selection(type, level)}`);
      (spread[type.name] ??= []).push(name);
      return `...${name}${directives()}`;
    }
    return field(type, level);
  }

  function field(type, level) {
    const all = Object.values(type.getFields()).filter((f) => !skipped.has(f.name) && (level < 5 || g.isLeafType(g.getNamedType(f.type))));
    if (!all.length) return "__typename";
    const f = one(all);
    const args = type.getFields().id || type === schema.getQueryType() ? f.args.filter((a) => g.isRequiredArgument(a) || chance(40)) : [];
    const given = args.map((a) => `${a.name}: ${literal(a.type, a.name, a.defaultValue !== undefined)}`);
    const alias = chance(5) ? "same: " : given.length || chance(20) ? `f${fresh++}: ` : "";
    const call = `${alias}${f.name}${given.length ? `(${given.join(", ")})` : ""}${directives()}`;
    if (g.isLeafType(g.getNamedType(f.type))) return call;
    const below = `${call} ${selection(f.type, level + 1)}`;
    return chance(10) ? (note("merged"), `${below} ${call} ${selection(f.type, level + 1)}`) : below;
  }

  function subscription() {
    const f = one(Object.values(schema.getSubscriptionType().getFields()));
    const args = f.args.filter(g.isRequiredArgument).map((a) => (note("watched"), `${a.name}: ${one(watching)}`));
    const call = `${chance(20) ? `f${fresh++}: ` : ""}${f.name}${args.length ? `(${args})` : ""} ${selection(f.type, 1)}`;
    if (!chance(10)) return `{ ${call} }`;
    fragments.push(`fragment Root on Subscription { ${call} }`);
    return "{ ...Root }";
  }

  return {
    cursor: (text) => cursors.length < 200 && cursors.push(text),
    /** operation draws a query, or a subscription: one with users watches the one about whom there are events. */
    operation(kind) {
      [variables, fragments, notes, fresh, spread] = [[], [], new Set(), 0, {}];
      const body = kind === "query" ? selection(schema.getQueryType(), 0) : subscription();
      const declared = variables.map(([, text]) => text).join(", ");
      const given = variables.filter(([, , value]) => value !== undefined).map(([name, , value]) => `"${name}": ${value}`);
      const text = `${kind}${declared ? `(${declared})` : ""} ${body} ${fragments.join(" ")}`;
      return { text, variables: `{${given.join(", ")}}`, notes };
    },
  };
}
