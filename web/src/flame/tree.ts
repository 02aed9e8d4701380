// The call tree in typed arrays, and adding it up.
//
// Nodes are in preorder: a node's subtree are the nodes from its own index up to
// `end[i]`. Node 0 is the root. Nothing here knows a page.

export interface Tree {
  readonly n: number;
  readonly sym: Int32Array; // index of the node's name and kind; -1 for the root
  readonly depth: Int32Array;
  readonly parent: Int32Array; // -1 for the root
  readonly end: Int32Array; // one past the last node of the subtree
  readonly origin: Int32Array; // the node of the unsplit tree it stands for; -1 for the roots of groups
}

// Cells hold the samples that ended in one node, in one thread, for one event.
export interface Cells {
  readonly n: number;
  readonly node: Int32Array; // ascending
  readonly thread: Int32Array;
  readonly event: Int32Array;
  readonly count: Float64Array; // samples
  readonly weight: Float64Array; // in the event's unit
}

export interface Values {
  readonly self: Float64Array;
  readonly total: Float64Array;
  readonly count: Float64Array; // self, in samples
  readonly samples: Float64Array; // total, in samples
}

// fromDepth completes a tree from its depths and symbols, in preorder.
export function fromDepth(depth: Int32Array, sym: Int32Array, origin?: Int32Array): Tree {
  const n = depth.length;
  const parent = new Int32Array(n);
  const end = new Int32Array(n);
  const open: number[] = [];
  for (let i = 0; i < n; i++) {
    const d = depth[i];
    if (d > open.length || (d === 0) !== (i === 0)) throw new Error(`node ${i} has no parent at depth ${d - 1}`);
    while (open.length > d) end[open.pop()!] = i;
    parent[i] = d === 0 ? -1 : open[d - 1];
    open.push(i);
  }
  while (open.length) end[open.pop()!] = n;
  if (!origin) {
    origin = new Int32Array(n);
    for (let i = 0; i < n; i++) origin[i] = i;
  }
  return { n, sym, depth, parent, end, origin };
}

// addUp adds up, for each node, the samples that ended in it and under it, for one event and the
// threads for which threads[t] is not 0. It reuses the arrays of old if they have the same
// length: old is not valid afterwards.
export function addUp(tree: Tree, cells: Cells, event: number, threads: Uint8Array, old?: Values): Values {
  const { n, depth } = tree;
  const again = old && old.self.length === n;
  const self = again ? old.self.fill(0) : new Float64Array(n);
  const count = again ? old.count.fill(0) : new Float64Array(n);
  for (let i = 0; i < cells.n; i++) {
    if (cells.event[i] !== event || !threads[cells.thread[i]]) continue;
    self[cells.node[i]] += cells.weight[i];
    count[cells.node[i]] += cells.count[i];
  }
  const total = again ? old.total : new Float64Array(n);
  const samples = again ? old.samples : new Float64Array(n);
  // From the last node to the first: a node's subtree has been met by then, and its sum waits at
  // the node's depth. Millions of nodes are added up on each movement of the mouse, and their
  // parents are far apart in memory.
  let deepest = 0;
  for (let i = 0; i < n; i++) if (depth[i] > deepest) deepest = depth[i];
  const weights = new Float64Array(deepest + 2), counts = new Float64Array(deepest + 2);
  for (let i = n - 1; i >= 0; i--) {
    const d = depth[i];
    const w = self[i] + weights[d + 1];
    const c = count[i] + counts[d + 1];
    weights[d + 1] = counts[d + 1] = 0;
    weights[d] += w;
    counts[d] += c;
    total[i] = w;
    samples[i] = c;
  }
  return { self, total, count, samples };
}

// split returns a tree in which every group of threads has its own root, and the cells in it.
// Group g's root has symbol firstSymbol+g; order says which group comes first.
export function split(
  tree: Tree, cells: Cells, groupOf: Int32Array, order: ArrayLike<number>, firstSymbol: number,
): { tree: Tree; cells: Cells } {
  const groups = order.length;
  const first = new Int32Array(groups + 1);
  for (let i = 0; i < cells.n; i++) first[groupOf[cells.thread[i]] + 1]++;
  for (let g = 0; g < groups; g++) first[g + 1] += first[g];
  const byGroup = new Int32Array(cells.n);
  const next = first.slice();
  for (let i = 0; i < cells.n; i++) byGroup[next[groupOf[cells.thread[i]]]++] = i;

  let depth = new Int32Array(1024);
  let sym = new Int32Array(1024);
  let origin = new Int32Array(1024);
  let n = 0;
  const push = (d: number, s: number, o: number): void => {
    if (n === depth.length) [depth, sym, origin] = [depth, sym, origin].map((a) => {
      const b = new Int32Array(2 * n);
      b.set(a);
      return b;
    });
    depth[n] = d;
    sym[n] = s;
    origin[n++] = o;
  };
  push(0, -1, 0);
  const node = new Int32Array(cells.n);
  const thread = new Int32Array(cells.n);
  const event = new Int32Array(cells.n);
  const count = new Float64Array(cells.n);
  const weight = new Float64Array(cells.n);
  let c = 0;
  let path: number[] = [];
  for (let k = 0; k < groups; k++) {
    const g = order[k];
    if (first[g] === first[g + 1]) continue;
    const root = n;
    push(1, firstSymbol + g, -1);
    let last = 0; // node of the unsplit tree that was added last
    for (let j = first[g]; j < first[g + 1]; j++) {
      const i = byGroup[j];
      const at = cells.node[i];
      // Cells come in preorder, so only the nodes between the last node's ancestors and this one are
      // new.
      path = [];
      let a = at;
      while (a > 0 && !(a <= last && last < tree.end[a])) {
        path.push(a);
        a = tree.parent[a];
      }
      for (let p = path.length - 1; p >= 0; p--) push(tree.depth[path[p]] + 1, tree.sym[path[p]], path[p]);
      last = at;
      node[c] = at === 0 ? root : n - 1;
      thread[c] = cells.thread[i];
      event[c] = cells.event[i];
      count[c] = cells.count[i];
      weight[c++] = cells.weight[i];
    }
  }
  return {
    tree: fromDepth(depth.slice(0, n), sym.slice(0, n), origin.slice(0, n)),
    cells: { n: c, node, thread, event, count, weight },
  };
}
