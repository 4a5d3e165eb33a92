// A picture of a neighbourhood: somebody, whom this person follows, and how they follow one another.
import Graph from 'graphology';
import { useEffect, useMemo, useRef, useState, type RefObject } from 'react';
import Sigma from 'sigma';
import type { Settings } from 'sigma/settings';
import { useClient, useQuery, type CombinedError } from 'urql';
import { CardDocument } from './gql';
import type { LayoutStep, LayoutTask } from './layout.worker';
import { circleOf, followsAmong, mostPeople, relationOf, type Neighbourhood, type Relation, type Someone } from './neighbourhood';
import { Face, FollowButton } from './people';
import { Link, navigate } from './router';
import { useSession } from './session';
import { Failure, PageTitle, sentence, short } from './ui';

const legend: [Relation, string][] = [
  ['self', 'You'],
  ['mutual', 'Friends'],
  ['following', 'You follow'],
  ['follower', 'Follows you'],
  ['none', 'Neither'],
];

type Filter = { relations: ReadonlySet<Relation>; mutual: boolean };

export default function Picture({ centre }: { centre?: string }) {
  const session = useSession();
  const id = centre ?? session!.userId;
  return <Around key={id} id={id} />;
}

function Around({ id }: { id: string }) {
  const session = useSession();
  const client = useClient();
  const [shown, setShown] = useState<Neighbourhood>();
  const [progress, setProgress] = useState('');
  const [problem, setProblem] = useState('');
  const [chosen, setChosen] = useState<string | null>(id === session?.userId ? null : id);
  const [filter, setFilter] = useState<Filter>({ relations: new Set(legend.map(([relation]) => relation)), mutual: false });
  const viewerId = session?.userId;

  /** Shows somebody's circle, together with the people who are shown already. */
  const load = async (of: string, before: Someone[], most: number) => {
    setProblem('');
    try {
      const found = await circleOf(client, viewerId, of, most, n => setProgress(`Looking at ${n} people`));
      const people = new Map(before.map(one => [one.id, one]));
      for (const one of found) if (people.size < mostPeople) people.set(one.id, one);
      setProgress(`Looking at who follows whom among ${people.size}`);
      setShown(await followsAmong(client, [...people.values()]));
    } catch (failure) {
      setProblem('graphQLErrors' in (failure as object) ? sentence(failure as CombinedError) : String((failure as Error).message));
    }
    setProgress('');
  };
  useEffect(() => void load(id, [], mostPeople), []);

  const centre = shown?.people[0];
  const toggle = (relation: Relation) => {
    const relations = new Set(filter.relations);
    if (!relations.delete(relation)) relations.add(relation);
    setFilter({ ...filter, relations });
  };
  return (
    <div className="picture">
      <PageTitle title={!centre || centre.relation === 'self' ? 'Your picture' : `Around ${centre.name}`}>
        {id !== viewerId && (
          <Link to="/picture" className="button">
            Back to you
          </Link>
        )}
      </PageTitle>
      {problem && <Failure text={problem} retry={() => load(id, shown?.people ?? [], mostPeople)} />}
      <div className="picture-tools">
        {legend.map(([relation, name]) => (
          <label key={relation} className="legend">
            <input type="checkbox" checked={filter.relations.has(relation)} onChange={() => toggle(relation)} />
            <span className={`dot ${relation}`} />
            {name}
          </label>
        ))}
        <label className="legend">
          <input type="checkbox" checked={filter.mutual} onChange={() => setFilter({ ...filter, mutual: !filter.mutual })} />
          Only mutual follows
        </label>
        <span className="quiet" role="status">
          {progress || (shown && `${shown.people.length} people, ${shown.follows.reduce((sum, follow) => sum + (follow.mutual ? 2 : 1), 0)} follows${shown.complete ? '' : ' or more'}`)}
        </span>
      </div>
      <div className="stage">
        <Canvas shown={shown} filter={filter} chosen={chosen} choose={setChosen} />
        <Chosen shown={shown} chosen={chosen} choose={setChosen} expand={of => load(of, shown?.people ?? [], 101)} />
      </div>
    </div>
  );
}

type CanvasProps = { shown?: Neighbourhood; filter: Filter; chosen: string | null; choose: (id: string | null) => void };

/** The drawing itself. Everything it shows is also in the list beside it, for those who do not see it or use no mouse. */
function Canvas({ shown, filter, chosen, choose }: CanvasProps) {
  const container = useRef<HTMLDivElement>(null);
  const graph = useMemo(() => new Graph({ type: 'directed', multi: false }), []);
  const sigma = useRef<Sigma>(null);
  const [failed, setFailed] = useState(false);
  // The centre is connected with nearly everybody, so choosing it dims nobody.
  const focus = chosen === shown?.people[0]?.id ? null : chosen;
  const looks = useRef<Looks>({ filter, focus });
  looks.current = { filter, focus };

  useSigma(container, sigma, graph, looks, choose, setFailed);
  const laid = useLayout(graph, shown);

  useEffect(() => {
    sigma.current?.refresh({ skipIndexation: true });
    if (focus && graph.hasNode(focus)) void sigma.current?.getCamera().animate(placeOf(sigma.current, focus), { duration: isCalm() ? 0 : 350 });
  }, [filter, focus]);

  // A follow from the card beside it changes the colour here.
  const [{ data }] = useQuery({ query: CardDocument, variables: { id: chosen ?? '' }, pause: !chosen });
  const viewerId = useSession()?.userId;
  const standing = data?.user?.viewerRelationship?.status;
  useEffect(() => {
    if (chosen && data?.user?.id === chosen && standing && graph.hasNode(chosen)) graph.setNodeAttribute(chosen, 'relation', relationOf(viewerId, chosen, standing));
  }, [chosen, standing]);

  return (
    <div className="canvas" ref={container} role="img" aria-label="Picture of who follows whom. The list beside it has the same people." data-nodes={shown?.people.length ?? 0} data-laid={laid} data-colours={new Set(shown?.people.map(one => one.relation)).size}>
      {failed && <p className="pad quiet">This browser cannot draw the picture (it needs WebGL). The list has the same people.</p>}
    </div>
  );
}

const isCalm = () => matchMedia('(prefers-reduced-motion: reduce)').matches;

function placeOf(sigma: Sigma, id: string) {
  const at = sigma.getNodeDisplayData(id);
  const ratio = Math.min(sigma.getCamera().ratio, 0.6);
  return at ? { x: at.x, y: at.y, ratio } : {};
}

/** The colours that the style sheet gives the legend, in the present scheme. */
function colours(container: HTMLElement) {
  const of = (name: string) => {
    const probe = document.createElement('i');
    probe.className = `dot ${name}`;
    container.append(probe);
    const colour = getComputedStyle(probe).backgroundColor;
    probe.remove();
    return colour;
  };
  return { self: of('self'), mutual: of('mutual'), following: of('following'), follower: of('follower'), none: of('none'), edge: of('edge'), faint: of('faint'), text: of('text'), card: of('card') };
}

type Looks = { filter: Filter; focus: string | null };

function useSigma(container: RefObject<HTMLDivElement | null>, sigma: RefObject<Sigma | null>, graph: Graph, looks: RefObject<Looks>, choose: CanvasProps['choose'], setFailed: (failed: boolean) => void) {
  useEffect(() => {
    let colour = colours(container.current!);
    const focusOf = () => (looks.current.focus !== null && graph.hasNode(looks.current.focus) ? looks.current.focus : null);
    const settings: Partial<Settings> = {
      hideEdgesOnMove: true,
      zIndex: true,
      labelDensity: 0.6,
      labelRenderedSizeThreshold: 8,
      labelFont: 'system-ui, sans-serif',
      labelColor: { color: colour.text },
      minCameraRatio: 0.03,
      maxCameraRatio: 3,
      nodeReducer: (id, data) => {
        const { filter } = looks.current;
        const focus = focusOf();
        const relation = data.relation as Relation;
        const dim = focus !== null && id !== focus && !graph.areNeighbors(id, focus);
        return {
          ...data,
          color: dim ? colour.faint : colour[relation],
          label: dim ? null : data.label,
          hidden: !filter.relations.has(relation),
          highlighted: id === focus,
          zIndex: id === focus ? 2 : dim ? 0 : 1,
        };
      },
      edgeReducer: (edge, data) => {
        const focus = focusOf();
        const lit = focus !== null && graph.hasExtremity(edge, focus);
        return { ...data, color: lit ? colour.mutual : colour.edge, hidden: (looks.current.filter.mutual && !data.mutual) || (focus !== null && !lit), zIndex: lit ? 1 : 0 };
      },
      defaultDrawNodeHover: (context, data, options) => {
        context.font = `600 ${options.labelSize}px ${options.labelFont}`;
        const label = String(data.label ?? '');
        const width = context.measureText(label).width + data.size + 14;
        context.fillStyle = colour.card;
        context.beginPath();
        context.roundRect(data.x - data.size - 4, data.y - data.size - 4, width + data.size + 6, 2 * data.size + 8, data.size + 4);
        context.fill();
        context.fillStyle = colour.text;
        context.fillText(label, data.x + data.size + 5, data.y + options.labelSize / 3);
      },
    };
    let drawing: Sigma;
    try {
      drawing = new Sigma(graph, container.current!, settings);
    } catch {
      return setFailed(true);
    }
    sigma.current = drawing;
    drawing.on('clickNode', ({ node }) => choose(node));
    drawing.on('clickStage', () => choose(null));
    drawing.on('doubleClickNode', ({ node, preventSigmaDefault }) => {
      preventSigmaDefault();
      navigate(`/picture/${node}`);
    });
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    const repaint = () => {
      colour = colours(container.current!);
      drawing.setSetting('labelColor', { color: colour.text });
    };
    scheme.addEventListener('change', repaint);
    return () => {
      scheme.removeEventListener('change', repaint);
      drawing.kill();
      sigma.current = null;
    };
  }, [graph]);
}

// More lines than this are drawn only when everybody has a place: until then they would cost most of each frame.
const linesWhileMoving = 4_000;

/** Puts people and follows into the graph, and lets the worker find their places; reports whether it has done so. */
function useLayout(graph: Graph, shown: Neighbourhood | undefined) {
  const [laid, setLaid] = useState(false);
  useEffect(() => {
    if (!shown) return;
    setLaid(false);
    const { people, follows } = shown;
    const begin = new Float32Array(2 * people.length);
    const scale = Math.min(1, 0.25 + Math.sqrt(150 / people.length)); // many people are drawn smaller
    people.forEach((one, i) => {
      // People who are shown already stay where they are; the others begin on a spiral, so that a picture is the same each time.
      const [angle, radius] = [i * 2.399963, 10 * Math.sqrt(i)];
      const at = graph.hasNode(one.id) ? (graph.getNodeAttributes(one.id) as { x: number; y: number }) : { x: radius * Math.cos(angle), y: radius * Math.sin(angle) };
      begin.set([at.x, at.y], 2 * i);
      graph.mergeNode(one.id, { x: at.x, y: at.y, label: one.name, size: scale * (4 + 2.2 * Math.log10(1 + one.followerCount)) + (i === 0 ? 5 : 0), relation: one.relation });
    });
    graph.clearEdges();
    const draw = () => follows.forEach(({ from, to, mutual }) => graph.addEdge(people[from]!.id, people[to]!.id, { mutual, size: mutual ? 1.2 : 0.6 }));
    const late = follows.length > linesWhileMoving;
    if (!late) draw();

    const places = new Map(people.map((one, i) => [one.id, i]));
    let newest: LayoutStep | undefined;
    let frame = 0;
    const show = () => {
      frame = 0;
      const { positions, done } = newest!;
      graph.updateEachNodeAttributes((id, attributes) => {
        const i = places.get(id);
        return i === undefined ? attributes : { ...attributes, x: positions[2 * i]!, y: positions[2 * i + 1]! };
      }, { attributes: ['x', 'y'] });
      if (done && late) draw();
      if (done) setLaid(true);
    };
    const worker = new Worker(new URL('./layout.worker.ts', import.meta.url), { type: 'module' });
    worker.onmessage = ({ data }: MessageEvent<LayoutStep>) => {
      newest = data;
      if (data.done) worker.terminate();
      if (!frame && (data.done || !isCalm())) frame = requestAnimationFrame(show);
    };
    const pairs = Uint32Array.from(follows.flatMap(({ from, to }) => [from, to]));
    const weights = Uint8Array.from(follows, ({ mutual }) => (mutual ? 2 : 1));
    worker.postMessage({ pairs, weights, positions: begin, steps: people.length > 800 ? 260 : 400 } satisfies LayoutTask);
    return () => {
      worker.terminate();
      cancelAnimationFrame(frame);
    };
  }, [graph, shown]);
  return laid;
}

type ChosenProps = { shown?: Neighbourhood; chosen: string | null; choose: (id: string | null) => void; expand: (id: string) => void };

const mostListed = 60;

/** The person who is chosen, and the people to whom one can go next. */
function Chosen({ shown, chosen, choose, expand }: ChosenProps) {
  const session = useSession();
  const [{ data }] = useQuery({ query: CardDocument, variables: { id: chosen ?? '' }, pause: !chosen });
  const person = chosen && data?.user?.id === chosen ? data.user : null;
  const near = useMemo(() => {
    if (!shown) return [];
    const at = shown.people.findIndex(one => one.id === chosen);
    const degrees = new Map<number, number>();
    for (const { from, to } of shown.follows) {
      if (at >= 0 && from !== at && to !== at) continue;
      degrees.set(from, (degrees.get(from) ?? 0) + 1);
      degrees.set(to, (degrees.get(to) ?? 0) + 1);
    }
    degrees.delete(at);
    const byFame = (a: number, b: number) => (at < 0 ? degrees.get(b)! - degrees.get(a)! : shown.people[b]!.followerCount - shown.people[a]!.followerCount);
    return [...degrees.keys()].sort(byFame).map(i => shown.people[i]!);
  }, [shown, chosen]);
  return (
    <section className="card chosen" aria-label="Person chosen">
      {person ? (
        <>
          <Link to={`/u/${person.handle}`} className="who">
            <Face of={person} size={56} />
            <span>
              <b>{person.name}</b>
              <br />
              <small className="quiet">
                {short(person.followerCount)} followers, follows {short(person.followingCount)}
              </small>
            </span>
          </Link>
          {person.bio && <small>{person.bio}</small>}
          <div className="bar">
            <FollowButton person={person} />
            {person.id !== shown?.people[0]?.id && (
              <>
                <button type="button" className="button" onClick={() => navigate(person.id === session?.userId ? '/picture' : `/picture/${person.id}`)}>
                  Walk here
                </button>
                <button type="button" className="button" onClick={() => expand(person.id)}>
                  Expand
                </button>
              </>
            )}
            <button type="button" className="button plain" onClick={() => choose(null)}>
              Everybody
            </button>
          </div>
          <h2>Connected with</h2>
        </>
      ) : (
        <>
          <h2>Best connected</h2>
          <small className="quiet">Choose somebody here or in the picture. A double click walks there.</small>
        </>
      )}
      <ul>
        {near.slice(0, mostListed).map(one => (
          <li key={one.id}>
            <button type="button" onClick={() => choose(one.id)} data-node={one.handle}>
              <span className={`dot ${one.relation}`} />
              {one.name}
            </button>
          </li>
        ))}
      </ul>
      {near.length > mostListed && <small className="quiet">and {near.length - mostListed} more</small>}
    </section>
  );
}
