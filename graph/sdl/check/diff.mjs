// Prints what clients of the last release could notice to be broken: node diff.mjs RELEASED NOW. Changes that accepted.json has a
// reason for are left out, and reasons for changes that there are none of are printed as well.
import { readFileSync } from "node:fs";
import { CriticalityLevel, diff } from "@graphql-inspector/core";
import { buildSchema } from "graphql";

const [released, now] = process.argv.slice(2).map((file) => buildSchema(readFileSync(file, "utf8")));
const accepted = JSON.parse(readFileSync(new URL("accepted.json", import.meta.url), "utf8"));

const found = new Set();
for (const change of await diff(released, now)) {
  if (change.criticality.level !== CriticalityLevel.Breaking) continue;
  const name = `${change.type} ${change.path}`;
  found.add(name);
  if (!accepted[name]) console.log(`${name}: ${change.message}`);
}
for (const name of Object.keys(accepted)) {
  if (!found.has(name)) console.log(`${name}: accepted, and there is no such change`);
}
