// Lays the picture out: friends near one another, by forces (ForceAtlas2), outside the page's own
// thread. It sends positions as they improve, and ends after all of its steps.
import iterate from 'graphology-layout-forceatlas2/iterate.js';
import defaults from 'graphology-layout-forceatlas2/defaults.js';

/** Pairs of indexes in the list of nodes, and where the nodes begin: x and y of each. */
export type LayoutTask = { pairs: Uint32Array; positions: Float32Array; steps: number };
export type LayoutStep = { positions: Float32Array; done: boolean };

// The form of ForceAtlas2's matrices: numbers for each node, and for each edge.
const perNode = 10;
const perEdge = 3;
const [x, y, mass, convergence, size, fixed] = [0, 1, 6, 7, 8, 9];

onmessage = (event: MessageEvent<LayoutTask>) => {
  const { pairs, positions, steps } = event.data;
  const n = positions.length / 2;
  const nodes = new Float32Array(n * perNode);
  for (let i = 0; i < n; i++) {
    const at = i * perNode;
    nodes[at + x] = positions[2 * i]!;
    nodes[at + y] = positions[2 * i + 1]!;
    nodes[at + mass] = nodes[at + convergence] = nodes[at + size] = 1;
  }
  nodes[fixed] = 1;
  const edges = new Float32Array((pairs.length / 2) * perEdge);
  for (let i = 0; i < pairs.length / 2; i++) {
    const [from, to] = [pairs[2 * i]!, pairs[2 * i + 1]!];
    // Everybody is tied to the first person, the centre, but so loosely that circles of friends stay visible.
    edges.set([from * perNode, to * perNode, from === 0 || to === 0 ? 0.1 : 1], i * perEdge);
    nodes[from * perNode + mass]! += 1;
    nodes[to * perNode + mass]! += 1;
  }
  const settings = { ...defaults, barnesHutOptimize: n > 300, strongGravityMode: true, gravity: 0.06, scalingRatio: 12, slowDown: 1 + Math.log(n + 1) };
  let said = performance.now();
  for (let step = 1; step <= steps; step++) {
    iterate(settings, nodes, edges);
    if (step < steps && performance.now() - said < 40) continue;
    said = performance.now();
    const now = new Float32Array(2 * n);
    for (let i = 0; i < n; i++) now.set([nodes[i * perNode + x]!, nodes[i * perNode + y]!], 2 * i);
    postMessage({ positions: now, done: step === steps } satisfies LayoutStep, { transfer: [now.buffer] });
  }
};
