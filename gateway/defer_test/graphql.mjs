import { readFileSync } from "node:fs";
import { buildSchema, experimentalExecuteIncrementally, parse, validate } from "graphql";

// Has graphql-js answer queries in parts. Its input is { schema, cases: [{ query, data }] }, where data is the whole answer; its
// output the messages of each.
const { schema: text, cases } = JSON.parse(readFileSync(0, "utf8"));
const schema = buildSchema(text);

const answers = [];
for (const { query, data } of cases) {
  const document = parse(query);
  const errors = validate(schema, document);
  if (errors.length > 0) throw errors[0];
  const result = await experimentalExecuteIncrementally({ schema, document, rootValue: data });
  const messages = [result.initialResult ?? result];
  for await (const message of result.subsequentResults ?? []) messages.push(message);
  answers.push(messages);
}
console.log(JSON.stringify(answers));
