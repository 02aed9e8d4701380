// The tree without the frames by which threads and programs start: the same as
// flame.Tree.FoldStarts does for the viewer, for a page without a server.

import { samplesOf, type Data } from "../data";
import { fromDepth, type Cells, type Tree } from "./tree";

// By symbol: it may be a frame by which a thread starts, its name says that it is one, and it is
// the purpose of a thread if a frame by which threads start calls it.
const START = 1, NAMED = 2, BEGINS = 4;

export interface Folded {
  readonly tree: Tree;
  readonly to: Int32Array; // by node: its place in the folded tree
  readonly from: Int32Array; // by node of the folded tree: the heaviest of the nodes that it was made from
}

// foldStarts returns null if there is nothing to fold. samples are those of each node including
// its subtree; siblings are in the order of samples.
export function foldStarts(tree: Tree, marks: Uint8Array, samples: Float64Array): Folded | null {
  const { n, sym, parent } = tree;
  const start = new Uint8Array(n), leads = new Uint8Array(n), body = new Uint8Array(n);
  for (let i = n - 1; i > 0; i--) {
    const m = marks[sym[i]];
    // Without names, the work of a VM's own threads looks like their start: then only the frames
    // that lead to a start count as one.
    if (m & START && (m & NAMED || leads[i])) start[i] = leads[parent[i]] = 1;
  }
  let any = false;
  for (let i = 1; i < n; i++) {
    const up = parent[i];
    if (start[i] && up > 0 && !start[up]) start[i] = 0;
    if (!start[i] && up > 0 && start[up] && marks[sym[i]] & BEGINS) any = !!(body[i] = 1);
  }
  if (!any) return null;
  const own = samples.slice();
  for (let i = 1; i < n; i++) own[parent[i]] -= samples[i];
  const left = new Float64Array(n); // for a start: samples of stacks that stay as they are
  for (let i = n - 1; i > 0; i--) {
    if (start[i]) left[i] += own[i];
    else if (!body[i]) left[i] = samples[i];
    if (start[parent[i]]) left[parent[i]] += left[i];
  }

  // New nodes, parents before their children: no more than there were.
  const symbol = new Int32Array(n).fill(-1), above = new Int32Array(n), first = new Int32Array(n).fill(-1), last = new Int32Array(n).fill(-1), next = new Int32Array(n).fill(-1);
  const total = new Float64Array(n), from = new Int32Array(n);
  let made = 1;
  const several = new Uint8Array(n); // its children may come from several nodes, or be in another order
  const known = new Map<number, number>(); // children of those, by the numbers of both
  const key = (at: number, s: number): number => at * marks.length + s;
  const mixed = (at: number): void => {
    if (several[at]) return;
    several[at] = 1;
    for (let c = first[at]; c >= 0; c = next[c]) known.set(key(at, symbol[c]), c);
  };
  mixed(0);
  const child = (at: number, s: number): number => {
    if (several[at]) {
      const c = known.get(key(at, s));
      if (c !== undefined) {
        mixed(c);
        return c;
      }
    }
    const c = made++;
    [symbol[c], above[c]] = [s, at];
    if (last[at] < 0) first[at] = c;
    else next[last[at]] = c;
    last[at] = c;
    if (several[at]) known.set(key(at, s), c);
    return c;
  };
  const to = new Int32Array(n);
  for (let i = 1; i < n; i++) {
    if (start[i] && left[i] <= 0) continue; // no sample ended there
    const c = (to[i] = child(body[i] ? 0 : to[parent[i]], sym[i]));
    if (start[i]) mixed(c);
    total[c] += own[i];
    if (!from[c] || samples[i] > samples[from[c]]) from[c] = i;
  }
  total[0] = own[0];
  for (let c = made - 1; c > 0; c--) total[above[c]] += total[c];

  const depth = new Int32Array(made), syms = new Int32Array(made), place = new Int32Array(made), source = new Int32Array(made), down = new Int32Array(made); // down: depth by new node
  const open = [0];
  for (let k = 0; open.length; k++) {
    const c = open.pop()!;
    place[c] = k;
    depth[k] = down[c];
    syms[k] = symbol[c];
    source[k] = from[c];
    const below: number[] = [];
    for (let b = first[c]; b >= 0; b = next[b]) below.push(b);
    if (several[c]) below.sort((a, b) => total[b] - total[a] || a - b);
    for (let b = below.length - 1; b >= 0; b--) {
      down[below[b]] = down[c] + 1;
      open.push(below[b]);
    }
  }
  return { tree: fromDepth(depth, syms), to: to.map((c) => place[c]), from: source };
}

// withoutStarts is the data of a page with starts folded; null if there is nothing to fold.
export function withoutStarts(data: Data, marks: Uint8Array): Data | null {
  const { tree, cells } = data;
  const f = foldStarts(tree, marks, samplesOf(tree, cells));
  if (!f) return null;
  const pick = <T extends Uint8Array | Int32Array>(a: T): T => {
    const out = new (a.constructor as { new (n: number): T })(f.tree.n);
    for (let i = 0; i < out.length; i++) out[i] = a[f.from[i]];
    return out;
  };
  const there = moved(cells, f.to, f.tree.n);
  return {
    ...data, tree: f.tree, cells: there, samples: samplesOf(f.tree, there), line: pick(data.line), lines: pick(data.lines), derived: pick(data.derived), heuristic: pick(data.heuristic),
    stitched: pick(data.stitched), coarse: pick(data.coarse), virtual: pick(data.virtual),
  };
}

// moved returns the cells at the new places of their nodes, in the order of nodes.
function moved(cells: Cells, to: Int32Array, nodes: number): Cells {
  const at = new Int32Array(nodes + 1); // where the cells of a node begin
  for (let i = 0; i < cells.n; i++) at[to[cells.node[i]] + 1]++;
  for (let k = 0; k < nodes; k++) at[k + 1] += at[k];
  const order = new Int32Array(cells.n);
  for (let i = 0; i < cells.n; i++) order[at[to[cells.node[i]]]++] = i;
  const i32 = (of: (i: number) => number): Int32Array => Int32Array.from(order, of);
  const f64 = (of: (i: number) => number): Float64Array => Float64Array.from(order, of);
  return {
    n: cells.n, node: i32((i) => to[cells.node[i]]), thread: i32((i) => cells.thread[i]), event: i32((i) => cells.event[i]),
    count: f64((i) => cells.count[i]), weight: f64((i) => cells.weight[i]),
  };
}
