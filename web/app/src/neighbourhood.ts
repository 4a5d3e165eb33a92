// What the network shows: somebody, whom this person follows, some of the followers, and who follows whom among them.
import type { Client } from 'urql';
import { AudienceDocument, CircleDocument, EdgesAmongDocument, type AudienceQuery, type CircleQuery, type NodeFragment } from './gql';
import { present } from './ui';

/** Indexes in people: from follows to; mutual if to also follows from. */
export type Follow = { from: number; to: number; mutual: boolean };

export type Neighbourhood = {
  /** The first is the person whose network it is. */
  people: NodeFragment[];
  follows: Follow[];
  /** Whether all follows among the people are known. */
  complete: boolean;
  /** For each of the people, whether the first one follows this one (1), is followed back (2), or both (3). */
  ties: Uint8Array;
};

export type Circle = {
  people: NodeFragment[];
  /** How many the person follows, and how many follow the person; null if this person does not show them. */
  followings: number;
  followers: number | null;
};

/** As many as the API accepts in one query. */
export const mostPeople = 2_000;

/** So many of the followers are in the picture, those with the most followers of their own. */
const mostFollowers = 200;

type Page = NonNullable<NonNullable<AudienceQuery['user']>['followers']>;

// Changes mend the cache's lists of profiles, not these.
const anew = { requestPolicy: 'network-only' } as const;

/** Reads pages of a list until there are enough people; ask returns null if the list is closed. */
async function pages(ask: (after: string | null) => Promise<Page | null>, most: number, said?: (people: number) => void) {
  const people: NodeFragment[] = [];
  let page = await ask(null);
  const total = page?.totalCount ?? null;
  while (page) {
    people.push(...present(page.nodes));
    said?.(people.length);
    page = page.pageInfo.hasNextPage && people.length < most ? await ask(page.pageInfo.endCursor) : null;
  }
  return { people: people.slice(0, most), total };
}

/** Reads somebody, the first people whom this person follows, and some followers if wanted; said gets the number read so far. */
export async function circleOf(client: Client, id: string, most: number, wanted: boolean, said: (people: number) => void): Promise<Circle> {
  const followers = async (after: string | null) => {
    const { data, error } = await client.query(AudienceDocument, { id, after }, anew).toPromise();
    if (error) throw error;
    return data?.user?.followers ?? null;
  };
  let centre: NodeFragment | undefined;
  const followings = async (after: string | null) => {
    const { data, error }: { data?: CircleQuery; error?: Error } = await client.query(CircleDocument, { id, after }, anew).toPromise();
    if (error) throw error;
    if (!data?.user) throw new Error('This account does not exist.');
    if (!data.user.followings) throw new Error(`You can’t see who ${data.user.name} follows.`);
    centre = data.user;
    return data.user.followings;
  };
  const [circle, audience] = await Promise.all([pages(followings, most - 1, said), wanted ? pages(followers, mostFollowers) : { people: [], total: null }]);
  const people = new Map([centre!, ...circle.people, ...audience.people].map(one => [one.id, one]));
  return { people: [...people.values()].slice(0, most), followings: circle.total!, followers: audience.total };
}

/** Reads who follows whom among some people, in one query, however many people there are. */
export async function followsAmong(client: Client, people: NodeFragment[]): Promise<Neighbourhood> {
  const { data, error } = await client.query(EdgesAmongDocument, { ids: people.map(one => one.id) }, anew).toPromise();
  if (error) throw error;
  const followings = data?.edgesAmong?.followings ?? [];
  const sets = followings.map(list => new Set(list));
  const follows: Follow[] = [];
  followings.forEach((list, from) => {
    for (const to of list) {
      const mutual = sets[to]!.has(from);
      if (!mutual || from < to) follows.push({ from, to, mutual });
    }
  });
  const ties = Uint8Array.from(people, (_, i) => Number(!!sets[0]?.has(i)) + 2 * Number(!!sets[i]?.has(0)));
  return { people, follows, complete: data?.edgesAmong?.complete ?? false, ties };
}
