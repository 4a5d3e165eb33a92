// Serves bff.mjs in front of Kith until its input ends: node main.mjs URL SCHEMA [TOKENS [SECONDS-OF-A-SESSION]], where SCHEMA is a file that
// `kith schema` has written, and a POST to TOKENS answers a token with the scope act-as, as the token endpoint of an identity provider does.
// Without TOKENS, KITH_TOKEN is such a token. Prints the address.
import { readFile } from "node:fs/promises";
import { createBff } from "./bff.mjs";

const [kith, schema, tokens, seconds] = process.argv.slice(2);
if (!schema) {
  console.error("arguments are missing: node main.mjs URL SCHEMA [TOKENS [SECONDS-OF-A-SESSION]]");
  process.exit(2);
}
const provided = async () => (await (await fetch(tokens, { method: "POST", body: new URLSearchParams({ grant_type: "client_credentials" }) })).json()).access_token;
const signIn = async () => (tokens ? provided() : process.env.KITH_TOKEN);

const server = await createBff(kith, await readFile(schema, "utf8"), signIn, Number(seconds) || undefined);
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
process.stdin.on("end", () => process.exit()).resume();
