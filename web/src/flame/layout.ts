// Where the frames lie: horizontally in the unit of the values, vertically in
// rows by depth. Nothing here knows a page or a pixel.

import type { Tree } from "./tree";

export interface Layout {
  readonly x: Float64Array; // left edge of each node
  readonly total: Float64Array; // width of each node
  readonly rowStart: Int32Array; // row d holds rowNodes[rowStart[d]] up to rowNodes[rowStart[d+1]]
  readonly rowNodes: Int32Array; // nodes wider than nothing, row by row, left to right
  readonly rows: number;
}

export function layout(tree: Tree, total: Float64Array): Layout {
  const { n, depth, parent } = tree;
  const x = new Float64Array(n);
  const next = new Float64Array(n); // where the node's next child begins
  let rows = 0;
  for (let i = 0; i < n; i++) {
    if (i > 0) {
      const p = parent[i];
      x[i] = next[p];
      next[p] += total[i];
    }
    next[i] = x[i];
    if (total[i] > 0 && depth[i] >= rows) rows = depth[i] + 1;
  }
  const rowStart = new Int32Array(rows + 1);
  for (let i = 0; i < n; i++) if (total[i] > 0) rowStart[depth[i] + 1]++;
  for (let d = 0; d < rows; d++) rowStart[d + 1] += rowStart[d];
  const rowNodes = new Int32Array(rows ? rowStart[rows] : 0);
  const fill = rowStart.slice();
  for (let i = 0; i < n; i++) if (total[i] > 0) rowNodes[fill[depth[i]]++] = i;
  return { x, total, rowStart, rowNodes, rows };
}

// firstAfter gives the index into rowNodes, from lo up to hi, of the first node
// whose right edge lies right of at; hi if there is none.
export function firstAfter(l: Layout, lo: number, hi: number, at: number): number {
  const { x, total, rowNodes } = l;
  while (lo < hi) {
    const mid = (lo + hi) >>> 1;
    const i = rowNodes[mid];
    if (x[i] + total[i] > at) hi = mid;
    else lo = mid + 1;
  }
  return lo;
}

// nodeAt gives the node at a row and a position, or -1.
export function nodeAt(l: Layout, row: number, at: number): number {
  if (row < 0 || row >= l.rows) return -1;
  const k = firstAfter(l, l.rowStart[row], l.rowStart[row + 1], at);
  if (k >= l.rowStart[row + 1]) return -1;
  const i = l.rowNodes[k];
  return l.x[i] <= at ? i : -1;
}

// neighbour gives the node beside i in its row, dir -1 or 1, or -1.
export function neighbour(l: Layout, tree: Tree, i: number, dir: -1 | 1): number {
  const row = tree.depth[i];
  const k = firstAfter(l, l.rowStart[row], l.rowStart[row + 1], l.x[i]) + dir;
  return k >= l.rowStart[row] && k < l.rowStart[row + 1] ? l.rowNodes[k] : -1;
}

// heaviestChild gives the widest child of i, or -1.
export function heaviestChild(l: Layout, tree: Tree, i: number): number {
  let best = -1;
  for (let c = i + 1; c < tree.end[i]; c = tree.end[c]) {
    if (l.total[c] > 0 && (best < 0 || l.total[c] > l.total[best])) best = c;
  }
  return best;
}

// deepestCovering gives the deepest node that spans all of [x0, x1].
export function deepestCovering(l: Layout, tree: Tree, x0: number, x1: number): number {
  const slack = 1e-9 * (l.total[0] || 1);
  let at = 0;
  for (;;) {
    let c = at + 1;
    while (c < tree.end[at] && !(l.total[c] > 0 && l.x[c] <= x0 + slack && l.x[c] + l.total[c] >= x1 - slack)) c = tree.end[c];
    if (c >= tree.end[at]) return at;
    at = c;
  }
}
