// What both clients have in common. A job is
//   { url, headers, retries, operations: [{ query, variables, take }] }
// with take the number of answers after which the client stops. Each thing that
// happens is printed as one JSON line.
export const job = JSON.parse(process.argv[2]);

export function say(what, more = {}) {
  console.log(JSON.stringify({ what, ...more }));
}

// run takes the answers of every operation, all at once.
export async function run(client) {
  await Promise.all(
    job.operations.map(async ({ query, variables, take }, operation) => {
      let taken = 0;
      try {
        for await (const answer of client.iterate({ query, variables })) {
          say("next", { operation, answer });
          if (++taken === take) break;
        }
        say("complete", { operation, taken });
      } catch (error) {
        say("error", {
          operation,
          errors: Array.isArray(error) ? error : undefined,
          message: Array.isArray(error) ? undefined : String(error.message ?? error.reason ?? error),
          code: error.code,
        });
      }
    }),
  );
}
