// Compiles page.ts by the schema: node tada.mjs [--nullable]. gql.tada knows nothing of @semanticNonNull, so graphql-sock
// makes non-null what has it, or with --nullable leaves it as servers without the directive have it. Prints what is wrong.
import { execFileSync } from "node:child_process";

const convert = process.argv.includes("--nullable") ? "semantic-to-nullable" : "semantic-to-strict";
for (const [program, ...args] of [
  [convert, "-i", "schema.graphql", "-o", "strict.graphql"],
  ["gql.tada", "generate-output"],
  ["tsc", "-p", "."],
]) {
  try {
    execFileSync(`node_modules/.bin/${program}`, args, { stdio: ["ignore", "pipe", "pipe"] });
  } catch (failed) {
    console.log(`${program}: ${failed.stdout}${failed.stderr}`);
    process.exit(1);
  }
}
