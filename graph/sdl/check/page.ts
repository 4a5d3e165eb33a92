// What a front end with gql.tada writes. It compiles only if `edges`, `node` and `handle` are never null.
import { initGraphQLTada, type ResultOf } from "gql.tada";
import type { introspection } from "./schema.d.ts";

const graphql = initGraphQLTada<{ introspection: introspection; scalars: { DateTime: string } }>();
const page = graphql(`query ($id: ID!) { user(by: {id: $id}) { followings(first: 2) { edges { node { handle } } } } }`);

type User = NonNullable<ResultOf<typeof page>["user"]>;
type Followings = NonNullable<User["followings"]>; // null: the list is private
export const handles = (followings: Followings): string[] => followings.edges.map((edge) => edge.node.handle);
