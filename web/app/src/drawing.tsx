// The drawing of a network: dots and follows by sigma.js, with the faces and names of the best-known people over them.
import Graph from 'graphology';
import { useEffect, useMemo, useRef, useState, type RefObject } from 'react';
import Sigma from 'sigma';
import { createEdgeArrowProgram, createEdgeDoubleArrowProgram, EdgeLineProgram } from 'sigma/rendering';
import type { NodeFragment } from './gql';
import type { LayoutStep, LayoutTask } from './layout.worker';
import type { Neighbourhood } from './neighbourhood';
import { faceOf } from './people';
import { navigate } from './router';

/** So many communities have a colour of their own; members of smaller ones are grey. */
export const mostCommunities = 8;

type Looks = {
  /** Whether to show the person at an index. */
  shows: (i: number) => boolean;
  mutual: boolean;
  /** Whom to show with this person's follows alone, or of which community. */
  chosen: string | null;
  community: number | null;
};

type DrawingProps = { shown?: Neighbourhood; communities?: Uint16Array; looks: Looks; choose: (id: string | null) => void; found: (communities: Uint16Array) => void };

/** Everything that the drawing shows is also in the list beside it, for those who do not see it or use no mouse. */
export function Drawing({ shown, communities, looks, choose, found }: DrawingProps) {
  const container = useRef<HTMLDivElement>(null);
  const people = useRef<HTMLDivElement>(null);
  const graph = useMemo(() => new Graph({ type: 'directed', multi: false }), []);
  const sigma = useRef<Sigma>(null);
  const [failed, setFailed] = useState('');
  // By followers, but the best-known of each community, after whom the legend names it, come before all others.
  const byFame = useMemo(() => {
    const order = [...(shown?.people.keys() ?? [])].sort((a, b) => shown!.people[b]!.followerCount - shown!.people[a]!.followerCount);
    const best = new Map(order.filter(looks.shows).toReversed().map(i => [communities?.[i], i]));
    return order.sort((a, b) => Number(best.get(communities?.[b]) === b) - Number(best.get(communities?.[a]) === a)).map(i => shown!.people[i]!);
  }, [shown, communities, looks.shows]);
  // The centre is connected with nearly everybody, so choosing it dims nobody.
  const now = { shown, byFame, communities, looks: looks.chosen === shown?.people[0]?.id ? { ...looks, chosen: null } : looks };
  const state = useRef<State>(now);
  state.current = now;

  useSigma(container, people, sigma, graph, state, choose, setFailed);
  const laid = useLayout(graph, shown, found, setFailed);
  const { chosen, community, mutual, shows } = now.looks;
  useEffect(() => {
    sigma.current?.refresh();
    const at = chosen !== null && sigma.current?.getNodeDisplayData(chosen);
    const camera = sigma.current?.getCamera();
    if (at && camera && camera.ratio < 0.9) void camera.animate({ x: at.x, y: at.y }, { duration: isCalm() ? 0 : 350 });
  }, [chosen, community, mutual, shows, communities]);

  return (
    <div className="canvas" role="img" aria-label="Drawing of who follows whom. The list beside it has the same people." data-nodes={shown?.people.length ?? 0} data-laid={laid}>
      <div className="stage-lines" ref={container} />
      <div className="stage-people" ref={people} aria-hidden="true" />
      {failed && <p className="pad quiet">{failed} The list shows the same people.</p>}
    </div>
  );
}

type State = { shown?: Neighbourhood; byFame: NodeFragment[]; communities?: Uint16Array; looks: Looks };

const isCalm = () => matchMedia('(prefers-reduced-motion: reduce)').matches;

/** The colours that the style sheet gives the legend, in the present scheme. */
function coloursOf(container: HTMLElement) {
  const rgb = (name: string) => {
    const probe = document.createElement('i');
    probe.className = `dot ${name}`;
    container.append(probe);
    const colour = getComputedStyle(probe).backgroundColor.match(/\d+/g)!.map(Number);
    probe.remove();
    return colour;
  };
  const card = rgb('card');
  // Sigma's lines add up where they are transparent, so fainter colours are mixed with the background instead.
  const mixed = (colour: number[], share: number) => `rgb(${colour.map((part, i) => Math.round(part * share + card[i]! * (1 - share))).join()})`;
  const communities = Array.from({ length: mostCommunities + 1 }, (_, i) => rgb(`c${i}`));
  return {
    nodes: communities.map(colour => mixed(colour, 1)),
    lines: communities.map(colour => mixed(colour, 0.42)),
    self: mixed(rgb('self'), 1),
    between: mixed(rgb('edge'), 0.55),
    spoke: mixed(rgb('edge'), 0.3),
    lit: mixed(rgb('self'), 0.8),
    faint: mixed(rgb('edge'), 0.5),
  };
}

const heads = { lengthToThicknessRatio: 4.5, widenessToThicknessRatio: 3.2 };

function useSigma(container: RefObject<HTMLDivElement | null>, people: RefObject<HTMLDivElement | null>, sigma: RefObject<Sigma | null>, graph: Graph, state: RefObject<State>, choose: DrawingProps['choose'], setFailed: (why: string) => void) {
  useEffect(() => {
    let colour = coloursOf(container.current!);
    const communityOf = (i: number) => Math.min(state.current.communities?.[i] ?? mostCommunities, mostCommunities);
    const faces = new Map<string, HTMLElement>();
    let drawing: Sigma;
    try {
      drawing = new Sigma(graph, container.current!, {
        hideEdgesOnMove: true,
        renderLabels: false,
        zIndex: true,
        stagePadding: 36,
        minCameraRatio: 0.03,
        maxCameraRatio: 3,
        defaultEdgeType: 'line',
        edgeProgramClasses: { line: EdgeLineProgram, arrow: createEdgeArrowProgram(heads), arrows: createEdgeDoubleArrowProgram(heads) },
        defaultDrawNodeHover: () => {},
        nodeReducer: (id, { i, ...data }) => {
          const { shows, chosen, community } = state.current.looks;
          const dim = i > 0 && (community !== null ? communityOf(i) !== community : chosen !== null && id !== chosen && !graph.areNeighbors(id, chosen));
          return { ...data, size: faces.has(id) ? data.size : Math.min(data.size, dotSize), color: dim ? colour.faint : i ? colour.nodes[communityOf(i)] : colour.self, hidden: !state.current.communities || !shows(i), zIndex: dim ? 0 : id === chosen ? 2 : 1 };
        },
        edgeReducer: (_, { from, to, mutual, few }) => {
          const { mutual: onlyMutual, chosen, community } = state.current.looks;
          const ids = state.current.shown!.people;
          const inside = communityOf(from) === communityOf(to) && communityOf(from) < mostCommunities ? communityOf(from) : null;
          const lit = chosen !== null && (ids[from]?.id === chosen || ids[to]?.id === chosen);
          const spoke = from === 0 || to === 0;
          const hidden = (onlyMutual && !mutual) || (chosen !== null && !lit) || (community !== null && inside !== community);
          return {
            hidden,
            type: lit || few ? (mutual ? 'arrows' : 'arrow') : 'line',
            size: lit ? 1.8 : mutual && !spoke ? 1.1 : 0.7,
            color: lit ? colour.lit : spoke || (!few && inside === null) ? colour.spoke : inside !== null ? colour.lines[inside] : colour.between,
            zIndex: lit ? 3 : spoke ? 0 : inside === null ? 1 : 2,
          };
        },
      });
    } catch {
      return setFailed('This browser can’t draw the network, because it has no WebGL.');
    }
    sigma.current = drawing;
    let hovered: string | null = null;
    drawing.on('afterRender', () => showPeople(drawing, people.current!, faces, hovered, state.current));
    const hover = (id: string | null) => {
      hovered = id;
      drawing.scheduleRender(); // Sigma itself draws only the dots again, without an event
    };
    drawing.on('enterNode', ({ node }) => hover(node));
    drawing.on('leaveNode', () => hover(null));
    drawing.on('clickNode', ({ node }) => choose(node));
    drawing.on('clickStage', () => choose(null));
    drawing.on('doubleClickNode', ({ node, preventSigmaDefault }) => {
      preventSigmaDefault();
      navigate(`/picture/${node}`);
    });
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    const repaint = () => {
      colour = coloursOf(container.current!);
      drawing.refresh();
    };
    scheme.addEventListener('change', repaint);
    return () => {
      scheme.removeEventListener('change', repaint);
      drawing.kill();
      sigma.current = null;
    };
  }, [graph]);
}

const mostFaces = 120;
const namedFirst = mostCommunities + 1;
const dotSize = 4; // of whoever has no face
const nameHeight = 16; // pixels
const pen = document.createElement('canvas').getContext('2d')!;

/** The width of a name, in pixels. */
function widthOf(name: string) {
  pen.font = '600 12px system-ui, sans-serif';
  return pen.measureText(name).width + 6;
}

type Box = { left: number; top: number; right: number; bottom: number };

/**
 * Puts faces where they have room, the best-known first, and names where they cover no face: the closer one looks, the more there
 * are. The first, after whom communities are named, get their names before others get faces. Whoever has no face is a small dot.
 */
function showPeople(sigma: Sigma, layer: HTMLElement, faces: Map<string, HTMLElement>, hovered: string | null, { shown, byFame, looks }: State) {
  const { width, height } = sigma.getDimensions();
  const taken: Box[] = [];
  const take = (box: Box) => {
    const free = box.left >= 0 && box.top >= 0 && box.right <= width && box.bottom <= height && taken.every(other => box.right <= other.left || box.left >= other.right || box.bottom <= other.top || box.top >= other.bottom);
    if (free) taken.push(box);
    return free;
  };
  const had = new Set(faces.keys());
  const placed = new Set<string>();
  const names: (() => void)[] = [];
  const first = (shown?.people ?? []).filter((one, i) => i === 0 || one.id === hovered || one.id === looks.chosen);
  for (const one of [...first, ...byFame]) {
    const data = placed.size < mostFaces && !placed.has(one.id) && sigma.getNodeDisplayData(one.id);
    if (!data || data.hidden || data.zIndex === 0) continue;
    const at = sigma.framedGraphToViewport(data);
    const radius = Math.max(10, sigma.scaleSize(sigma.getGraph().getNodeAttribute(one.id, 'size')));
    if (!take({ left: at.x - radius, top: at.y - radius, right: at.x + radius, bottom: at.y + radius })) continue;
    const element = faces.get(one.id) ?? layer.appendChild(faceElement(one));
    faces.set(one.id, element);
    element.className = 'node-face';
    element.style.cssText = `--ring: ${data.color}; --size: ${2 * radius}px; transform: translate(${at.x}px, ${at.y}px)`;
    const half = widthOf(one.name) / 2;
    placed.add(one.id);
    const name = () => {
      const below = [radius, -radius - nameHeight].find(y => take({ left: at.x - half, top: at.y + y, right: at.x + half, bottom: at.y + y + nameHeight }));
      if (below === undefined) return;
      element.classList.add('named');
      element.style.setProperty('--name', `${below}px`);
    };
    if (placed.size <= namedFirst) name();
    else names.push(name);
  }
  for (const name of names) name();
  for (const [id, element] of faces) {
    if (placed.has(id)) continue;
    element.remove();
    faces.delete(id);
  }
  const changed = [...new Set([...had, ...placed])].filter(id => had.has(id) !== placed.has(id) && sigma.getGraph().hasNode(id));
  if (changed.length > 0) sigma.refresh({ partialGraph: { nodes: changed }, skipIndexation: true, schedule: true });
}

function faceElement(one: NodeFragment) {
  const element = document.createElement('div');
  const image = element.appendChild(new Image());
  image.src = faceOf(one);
  image.alt = '';
  element.appendChild(document.createElement('span')).textContent = one.name;
  return element;
}

// With more follows than this, only those of a chosen person have heads, and all are drawn only when everybody has a place.
const manyFollows = 4_000;

/** Puts people and follows into the graph, and lets the worker find communities and places; reports whether it has done so. */
function useLayout(graph: Graph, shown: Neighbourhood | undefined, found: DrawingProps['found'], setFailed: (why: string) => void) {
  const [laid, setLaid] = useState(false);
  useEffect(() => {
    if (!shown) return;
    setLaid(false);
    const { people, follows } = shown;
    const few = follows.length <= manyFollows;
    const positions = new Float32Array(2 * people.length).fill(NaN);
    // Many people are drawn smaller, and so are all on a narrow screen.
    const scale = Math.min(1, 0.3 + Math.sqrt(60 / people.length)) * Math.min(1, Math.max(0.65, innerWidth / 900));
    const best = Math.max(...people.map(one => one.followerCount), 1);
    people.forEach((one, i) => {
      // People who have a place already stay there. Without one they are all at zero, with the centre, and never part.
      const at = graph.hasNode(one.id) ? (graph.getNodeAttributes(one.id) as { x: number; y: number }) : null;
      if (at?.x || at?.y) positions.set([at.x, at.y], 2 * i);
      graph.mergeNode(one.id, { x: at?.x ?? 0, y: at?.y ?? 0, i, size: i ? scale * (4 + 12 * Math.sqrt(one.followerCount / best)) : 18 * Math.max(scale, 0.7) });
    });
    graph.clearEdges();
    const draw = () => follows.forEach(follow => graph.addEdge(people[follow.from]!.id, people[follow.to]!.id, { ...follow, few }));

    let newest: LayoutStep | undefined;
    let frame = 0;
    const show = () => {
      frame = 0;
      const { positions, communities, done } = newest!;
      found(communities);
      graph.updateEachNodeAttributes((_, { i, ...rest }) => ({ ...rest, i, x: positions[2 * i]!, y: positions[2 * i + 1]! }), { attributes: ['x', 'y'] });
      if (graph.size === 0 && (few || done)) draw();
      if (done) setLaid(true);
    };
    const worker = new Worker(new URL('./layout.worker.ts', import.meta.url), { type: 'module' });
    worker.onerror = () => setFailed('The network couldn’t be drawn. Load this page again.'); // a new version may have replaced the worker's file
    worker.onmessage = ({ data }: MessageEvent<LayoutStep>) => {
      newest = data;
      if (data.done) worker.terminate();
      if (!frame && (data.done || !isCalm())) frame = requestAnimationFrame(show);
    };
    const pairs = Uint32Array.from(follows.flatMap(({ from, to }) => [from, to]));
    const weights = Uint8Array.from(follows, ({ mutual }) => (mutual ? 2 : 1));
    worker.postMessage({ pairs, weights, positions, steps: Math.max(100, Math.min(400, Math.round(150_000 / people.length))) } satisfies LayoutTask);
    return () => {
      worker.terminate();
      cancelAnimationFrame(frame);
    };
  }, [graph, shown]);
  return laid;
}
