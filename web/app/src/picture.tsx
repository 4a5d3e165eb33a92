// The network of somebody: whom this person follows, some of the followers, the communities among them, and a drawing of all.
import { useCallback, useEffect, useMemo, useRef, useState, type ReactNode } from 'react';
import { useClient, useQuery, type CombinedError } from 'urql';
import { Drawing, mostCommunities } from './drawing';
import { CardDocument, type NodeFragment } from './gql';
import { circleOf, followsAmong, mostPeople, type Circle, type Neighbourhood } from './neighbourhood';
import { Face, FollowButton } from './people';
import { Link, navigate } from './router';
import { useSession } from './session';
import { Empty, Failure, PageTitle, sentence, short, tell } from './ui';

export default function Picture({ centre }: { centre?: string }) {
  const session = useSession();
  const id = centre ?? session!.userId;
  return <Around key={id} id={id} />;
}

type Shown = Neighbourhood & { circle: Circle };

function Around({ id }: { id: string }) {
  const client = useClient();
  const isOwn = useSession()?.userId === id;
  const [shown, setShown] = useState<Shown>();
  const [communities, setCommunities] = useState<Uint16Array>();
  const [progress, setProgress] = useState('');
  const [problem, setProblem] = useState<{ text: string; retry?: () => void }>();
  const [chosen, setChosen] = useState<string | null>(isOwn ? null : id);
  const [community, setCommunity] = useState<number | null>(null);
  const [mutual, setMutual] = useState(false);
  const [followers, setFollowers] = useState(true);

  const turn = useRef(Promise.resolve());
  const newest = useRef<Shown>(undefined);
  /** Shows somebody's circle, or adds the people whom somebody follows to those who are shown: one after another, so that nobody is lost. */
  const load = (more?: string) => {
    setProblem(undefined);
    turn.current = turn.current.then(() => read(more));
  };
  const read = async (more?: string) => {
    const before = more ? newest.current : undefined;
    try {
      const found = await circleOf(client, more ?? id, more ? 101 : mostPeople, !more, n => setProgress(`Loading ${n} people …`));
      const people = new Map([...(before?.people ?? []), ...found.people].map(one => [one.id, one]));
      if (people.size > mostPeople) tell(`There is room for ${mostPeople.toLocaleString('en')} people. Some of those whom this person follows are left out.`, 'bad');
      setProgress(`Loading who follows whom …`);
      const next = await followsAmong(client, [...people.values()].slice(0, mostPeople));
      setShown((newest.current = { ...next, circle: before?.circle ?? found }));
    } catch (failure) {
      // What is closed or gone stays so, however often one tries.
      const passing = 'graphQLErrors' in (failure as object);
      setProblem(passing ? { text: sentence(failure as CombinedError), retry: () => load(more) } : { text: String((failure as Error).message) });
    }
    setProgress('');
  };
  useEffect(() => load(), []);

  const shows = useCallback((i: number) => i === 0 || !shown || (mutual ? shown.ties[i] === 3 : followers || shown.ties[i] !== 2), [shown, mutual, followers]);
  const choose = useCallback((one: string | null) => {
    setChosen(one);
    setCommunity(null);
  }, []);
  const centre = shown?.people[0];
  const nobody = shown?.people.length === 1;
  return (
    <div className="picture">
      <PageTitle title={isOwn ? 'Your network' : centre ? `${centre.name}’s network` : 'Network'}>
        {!isOwn && (
          <Link to="/picture" className="button">
            Back to your network
          </Link>
        )}
      </PageTitle>
      {problem && (shown || problem.retry ? <Failure {...problem} /> : <Empty icon="people" title={problem.text} />)}
      {problem && !shown ? null : nobody ? (
        <Empty icon="people" title={isOwn ? 'Your network is empty so far.' : `${centre!.name}’s network is empty so far.`}>
          {isOwn && (
            <>
              <Link to="/start">Find people to follow</Link>, and you’ll see how they are connected.
            </>
          )}
        </Empty>
      ) : (
        <>
          <div className="picture-tools">
            <Toggle on={mutual} set={setMutual} text="Only friends" />
            <Toggle on={followers && !mutual} set={setFollowers} text="Followers" disabled={mutual} />
            <span className="quiet" role="status">
              {progress || (shown && <Told shown={shown} shows={shows} mutual={mutual} followers={followers} />)}
            </span>
          </div>
          <Legend shown={shown} communities={communities} shows={shows} community={community} set={setCommunity} />
          <p className="quiet key">Bigger faces have more followers. Dots have no room for a face: zoom in to see them.</p>
          <div className="stage">
            <Drawing shown={shown} communities={communities} looks={{ shows, mutual, chosen, community }} choose={choose} found={setCommunities} />
            <Side shown={shown} communities={communities} community={community} shows={shows} chosen={chosen} choose={choose} expand={load} />
          </div>
        </>
      )}
    </div>
  );
}

function Toggle({ on, set, text, disabled }: { on: boolean; set: (on: boolean) => void; text: string; disabled?: boolean }) {
  return (
    <label className="toggle">
      <input type="checkbox" checked={on} disabled={disabled} onChange={() => set(!on)} />
      {text}
    </label>
  );
}

/** How much of the network is shown. */
function Told({ shown, shows, mutual, followers }: { shown: Shown; shows: (i: number) => boolean; mutual: boolean; followers: boolean }): ReactNode {
  const { people, follows, ties, circle, complete } = shown;
  const number = (n: number) => n.toLocaleString('en');
  const drawn = people.filter((_, i) => shows(i)).length;
  const lines = follows.filter(follow => shows(follow.from) && shows(follow.to) && (follow.mutual || !mutual));
  const parts = [`${number(drawn)} people`];
  if (mutual) parts.push(`${number(lines.length)} friendships`);
  else parts.push(`${number(lines.reduce((sum, follow) => sum + (follow.mutual ? 2 : 1), 0))}${complete ? '' : '+'} follows`);
  const followed = ties.reduce((sum, tie) => sum + (tie & 1), 0);
  if (followed < circle.followings && !mutual) parts.push(`${number(followed)} of ${number(circle.followings)} followed`);
  const following = ties.filter(tie => tie & 2).length;
  if (followers && !mutual) parts.push(circle.followers === null ? 'followers are private' : `${number(following)}${following < circle.followers ? ` of ${number(circle.followers)}` : ''} followers`);
  return parts.join(' · ');
}

type LegendProps = { shown?: Shown; communities?: Uint16Array; shows: (i: number) => boolean; community: number | null; set: (community: number | null) => void };

/** The communities that have a colour, each by its best-known member. */
function Legend({ shown, communities, shows, community, set }: LegendProps) {
  const members = useMemo(() => {
    const lists: NodeFragment[][] = Array.from({ length: communities ? mostCommunities : 0 }, () => []);
    shown?.people.forEach((one, i) => i && shows(i) && lists[communities?.[i] ?? mostCommunities]?.push(one));
    return lists.map(list => list.sort((a, b) => b.followerCount - a.followerCount));
  }, [shown, communities, shows]);
  return (
    <div className="legend" role="group" aria-label="Communities">
      {members.map(
        ([best, ...others], i) =>
          best &&
          others.length > 1 && (
            <button key={i} type="button" aria-pressed={community === i} onClick={() => set(community === i ? null : i)} title={[best, ...others.slice(0, 6)].map(one => one.name).join(', ')}>
              <span className={`dot c${i}`} />
              <span className="legend-name">{best.name}</span> +{others.length}
            </button>
          ),
      )}
    </div>
  );
}

type SideProps = { shown?: Shown; communities?: Uint16Array; community: number | null; shows: (i: number) => boolean; chosen: string | null; choose: (id: string | null) => void; expand: (id: string) => void };

const mostListed = 60;

/** The person who is chosen, and the people to whom one can go next. */
function Side({ shown, communities, community, shows, chosen, choose, expand }: SideProps) {
  const session = useSession();
  const side = useRef<HTMLElement>(null);
  // What has been pressed may go. The focus stays beside it.
  const go = (id: string | null) => {
    choose(id);
    side.current!.focus({ preventScroll: true });
  };
  const [{ data }] = useQuery({ query: CardDocument, variables: { id: chosen ?? '' }, pause: !chosen });
  const person = chosen && community === null && data?.user?.id === chosen ? data.user : null;
  const near = useMemo(() => {
    if (!shown) return [];
    const at = community === null ? shown.people.findIndex(one => one.id === chosen) : -1;
    const degrees = new Map<number, number>();
    for (const { from, to } of shown.follows) {
      if (at >= 0 && from !== at && to !== at) continue;
      degrees.set(from, (degrees.get(from) ?? 0) + 1);
      degrees.set(to, (degrees.get(to) ?? 0) + 1);
    }
    degrees.delete(at < 0 ? 0 : at);
    const byFame = (a: number, b: number) => (at < 0 ? degrees.get(b)! - degrees.get(a)! : shown.people[b]!.followerCount - shown.people[a]!.followerCount);
    return [...degrees.keys()].filter(i => shows(i) && (community === null || communities?.[i] === community)).sort(byFame);
  }, [shown, communities, community, shows, chosen]);
  return (
    <section ref={side} tabIndex={-1} className="card chosen" aria-label="People in this network">
      {person ? (
        <>
          <Link to={`/u/${person.handle}`} className="who">
            <Face of={person} size={56} />
            <span>
              <b>{person.name}</b>
              <br />
              <small className="quiet">
                {short(person.followerCount)} followers · {short(person.followingCount)} following
              </small>
            </span>
          </Link>
          {person.bio && <small>{person.bio}</small>}
          <div className="bar">
            <FollowButton person={person} />
            {shown && person.id !== shown.people[0]!.id && (
              <>
                <button type="button" className="button" onClick={() => navigate(person.id === session?.userId ? '/picture' : `/picture/${person.id}`)}>
                  Open network
                </button>
                <button type="button" className="button" onClick={() => expand(person.id)}>
                  Add who they follow
                </button>
              </>
            )}
            <button type="button" className="button plain" onClick={() => go(null)}>
              Show everyone
            </button>
          </div>
          <h2>Connected with</h2>
        </>
      ) : (
        <>
          <h2>{community === null ? 'Most connected' : 'In this community'}</h2>
          <small className="quiet">Choose a person here or in the drawing.</small>
        </>
      )}
      <div className="near">
        <ul>
          {near.slice(0, mostListed).map(i => (
            <li key={i}>
              <button type="button" onClick={() => go(shown!.people[i]!.id)} data-node={shown!.people[i]!.handle}>
                <span className={`dot c${Math.min(communities?.[i] ?? mostCommunities, mostCommunities)}`} />
                <span>{shown!.people[i]!.name}</span>
              </button>
            </li>
          ))}
        </ul>
      </div>
      {near.length > mostListed && <small className="quiet">and {near.length - mostListed} more</small>}
    </section>
  );
}
