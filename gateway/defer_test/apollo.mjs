import { ApolloClient, HttpLink, InMemoryCache, gql } from "@apollo/client";
import { Defer20220824Handler, GraphQL17Alpha9Handler } from "@apollo/client/incremental";

// A job is { url, query }. It is asked by either of the handlers, each by a client of its own. Each result that a component
// would be shown is printed as a line of JSON, and in the end what the cache holds.
const jobs = JSON.parse(process.argv[2]);

async function ask({ url, query }, job, handler, incrementalHandler) {
  const say = (what) => console.log(JSON.stringify({ job, handler, ...what }));
  const client = new ApolloClient({ link: new HttpLink({ uri: url }), cache: new InMemoryCache(), incrementalHandler });
  const options = { query: gql(query), errorPolicy: "all" };
  await new Promise((resolve, reject) => {
    client.watchQuery(options).subscribe({
      next: ({ data, dataState, error, loading }) => {
        say({ data, dataState, errors: error?.errors, loading });
        if (!loading) resolve();
      },
      error: reject,
    });
  });
  say({ data: client.readQuery(options), dataState: "cache" });
  client.stop();
}

for (const [i, job] of jobs.entries()) {
  await Promise.all([ask(job, i, "17", new GraphQL17Alpha9Handler()), ask(job, i, "2022", new Defer20220824Handler())]);
}
