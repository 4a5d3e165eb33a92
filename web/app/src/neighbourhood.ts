// What the picture shows: people, who follows whom among them, and the viewer's relationship to each.
import type { Client } from 'urql';
import { CircleDocument, EdgesAmongDocument, type CircleQuery, type FollowStatus } from './gql';
import { present } from './ui';

/** The viewer's relationship to somebody: what the colours mean. */
export type Relation = 'self' | 'mutual' | 'following' | 'follower' | 'none';

export type Someone = { id: string; handle: string; name: string; avatarUrl: string | null; followerCount: number; relation: Relation };

/** Indexes in people: from follows to; mutual if to also follows from. */
export type Follow = { from: number; to: number; mutual: boolean };

export type Neighbourhood = { people: Someone[]; follows: Follow[]; complete: boolean };

/** As many as the API accepts in one query. */
export const mostPeople = 2_000;

const relations: Record<FollowStatus, Relation> = { MUTUAL: 'mutual', FOLLOWING: 'following', FOLLOWED_BY: 'follower', NONE: 'none' };

export const relationOf = (viewerId: string | undefined, id: string, status: FollowStatus | undefined): Relation =>
  id === viewerId ? 'self' : relations[status ?? 'NONE'];

type Node = NonNullable<NonNullable<NonNullable<NonNullable<CircleQuery['user']>['followings']>['nodes']>[number]>;

const someone = (viewerId: string | undefined, node: Node): Someone => ({
  id: node.id,
  handle: node.handle,
  name: node.name,
  avatarUrl: node.avatarUrl,
  followerCount: node.followerCount,
  relation: relationOf(viewerId, node.id, node.viewerRelationship?.status),
});

/** Reads somebody and the first people whom this person follows, page by page; said gets the number read so far. */
export async function circleOf(client: Client, viewerId: string | undefined, id: string, most: number, said: (people: number) => void) {
  const people = new Map<string, Someone>();
  let after: string | null = null;
  do {
    const result: { data?: CircleQuery; error?: Error } = await client.query(CircleDocument, { id, after }).toPromise();
    if (result.error) throw result.error;
    const user = result.data?.user;
    if (!user) throw new Error('There is no such person.');
    if (!user.followings) throw new Error(`${user.name} does not show whom they follow.`);
    if (!people.size) people.set(user.id, someone(viewerId, user));
    for (const node of present(user.followings.nodes)) if (people.size < most) people.set(node.id, someone(viewerId, node));
    said(people.size);
    after = user.followings.pageInfo.hasNextPage && people.size < most ? user.followings.pageInfo.endCursor : null;
  } while (after);
  return [...people.values()];
}

/** Reads who follows whom among some people, in one query, however many people there are. */
export async function followsAmong(client: Client, people: Someone[]): Promise<Neighbourhood> {
  const { data, error } = await client.query(EdgesAmongDocument, { ids: people.map(one => one.id) }, { requestPolicy: 'network-only' }).toPromise();
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
  return { people, follows, complete: data?.edgesAmong?.complete ?? false };
}
