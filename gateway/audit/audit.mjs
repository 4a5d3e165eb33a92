// Prints the result of each audit as one JSON list: {id, name, status, reason}.
import { auditServer } from "graphql-http";

const results = await auditServer({ url: process.argv[2] });
console.log(
  JSON.stringify(
    results.map(({ id, name, status, reason }) => ({ id, name, status, reason })),
  ),
);
