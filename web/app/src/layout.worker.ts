// Finds communities (Louvain) and lays the network out (ForceAtlas2), outside the page's own thread. It
// sends positions as they improve, and ends after all of its steps. The same network looks the same each time.
import { UndirectedGraph } from 'graphology';
import louvain from 'graphology-communities-louvain';
import defaults from 'graphology-layout-forceatlas2/defaults.js';
import iterate from 'graphology-layout-forceatlas2/iterate.js';

/** Pairs of indexes in the list of people, how much each counts, and where people are already: x and y of each, or NaN. */
export type LayoutTask = { pairs: Uint32Array; weights: Uint8Array; positions: Float32Array; steps: number };

/** communities has a number for each person, the largest community first. */
export type LayoutStep = { positions: Float32Array; communities: Uint16Array; done: boolean };

/** The community of each person. The first, with whom everybody is connected, has no part in it. */
function communitiesOf(n: number, pairs: Uint32Array, weights: Uint8Array): Uint16Array {
  const graph = new UndirectedGraph();
  for (let i = 0; i < n; i++) graph.addNode(i);
  weights.forEach((weight, i) => {
    const [from, to] = [pairs[2 * i]!, pairs[2 * i + 1]!];
    if (from && to) graph.addEdge(from, to, { weight });
  });
  let seed = 1;
  const found = louvain(graph, { rng: () => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647 });
  const sizes = new Map<number, number>();
  for (const one of Object.values(found)) sizes.set(one, (sizes.get(one) ?? 0) + 1);
  const bySize = [...sizes.keys()].sort((a, b) => sizes.get(b)! - sizes.get(a)! || a - b);
  return Uint16Array.from({ length: n }, (_, i) => bySize.indexOf(found[i]!));
}

// The form of ForceAtlas2's matrices: numbers for each node, and for each edge.
const perNode = 10;
const perEdge = 3;
const [x, y, mass, convergence, size, fixed] = [0, 1, 6, 7, 8, 9];
const golden = 2.399963; // an angle by which points on a spiral lie evenly

/** Gives every node a size of which a fifth of the picture is full: while nodes are laid out with their sizes, they do not lie on one another. */
function makeRoom(nodes: Float32Array, n: number) {
  let far = 0;
  for (let i = 0; i < n; i++) far = Math.max(far, Math.hypot(nodes[i * perNode + x]!, nodes[i * perNode + y]!));
  const each = far * Math.min(0.05, Math.sqrt(0.2 / n));
  for (let i = 0; i < n; i++) nodes[i * perNode + size] = each;
}

onmessage = ({ data: { pairs, weights, positions, steps } }: MessageEvent<LayoutTask>) => {
  const n = positions.length / 2;
  const communities = communitiesOf(n, pairs, weights);
  const nodes = new Float32Array(n * perNode);
  const placed: number[] = [];
  for (let i = 0; i < n; i++) {
    const at = i * perNode;
    const community = communities[i]!;
    const nth = (placed[community] = (placed[community] ?? 0) + 1);
    // Communities begin apart from one another, each as a spiral of its members.
    const far = i && 14 * Math.sqrt(n) * Math.min(1, community / 6 + 0.4);
    const near = i && 6 * Math.sqrt(nth);
    nodes[at + x] = Number.isNaN(positions[2 * i]) ? far * Math.cos(community * golden) + near * Math.cos(nth * golden) : positions[2 * i]!;
    nodes[at + y] = Number.isNaN(positions[2 * i]) ? far * Math.sin(community * golden) + near * Math.sin(nth * golden) : positions[2 * i + 1]!;
    nodes[at + mass] = nodes[at + convergence] = 1;
  }
  nodes[fixed] = 1;
  const edges = new Float32Array(weights.length * perEdge);
  weights.forEach((weight, i) => {
    const [from, to] = [pairs[2 * i]!, pairs[2 * i + 1]!];
    // Follows within a community hold it together; the first person, with whom all are connected, holds nobody.
    const alone = placed[communities[from || to]!] === 1;
    const pull = from === 0 || to === 0 ? Number(alone) : communities[from] === communities[to] ? weight : 0.1;
    edges.set([from * perNode, to * perNode, pull], i * perEdge);
    nodes[from * perNode + mass]! += pull;
    nodes[to * perNode + mass]! += pull;
  });
  const settings = { ...defaults, barnesHutOptimize: n > 300, barnesHutTheta: 1.2, strongGravityMode: true, gravity: 0.06, scalingRatio: 12, slowDown: 1 + Math.log(n + 1) };
  let said = performance.now();
  for (let step = 1; step <= steps; step++) {
    if (step === Math.round(steps * 0.75)) makeRoom(nodes, n);
    iterate({ ...settings, adjustSizes: step >= steps * 0.75 }, nodes, edges);
    if (step < steps && performance.now() - said < 40) continue;
    said = performance.now();
    const now = new Float32Array(2 * n);
    for (let i = 0; i < n; i++) now.set([nodes[i * perNode + x]!, nodes[i * perNode + y]!], 2 * i);
    postMessage({ positions: now, communities, done: step === steps } satisfies LayoutStep, { transfer: [now.buffer] });
  }
};
