// The positions of the frames: horizontally in the unit of the values, vertically in rows by
// depth. Nothing here knows a page or a pixel.

import type { Tree } from "./tree";

export interface Layout {
  readonly x: Float64Array; // left edge of each node
  readonly total: Float64Array; // width of each node
  readonly rowStart: Int32Array; // row d holds rowNodes[rowStart[d]] up to rowNodes[rowStart[d+1]]
  readonly rowNodes: Int32Array; // nodes wider than nothing, row by row, left to right
  readonly right: Float64Array; // right edge of each of rowNodes: kept together for searching
  readonly rows: number;
  bySymbol?: Int32Array; // number of rowNodes of each symbol, once there was a search
  rowSym?: (Int32Array | undefined)[]; // by row: the symbols of its nodes, once a search counted the row
  before?: Int32Array; // the counts of a search
}

// layout lays the frames out. It reuses the arrays of old if they are long enough: old is not
// valid afterwards.
export function layout(tree: Tree, total: Float64Array, old?: Layout): Layout {
  const { n, depth } = tree;
  const x = old && old.x.buffer.byteLength >= 8 * n ? new Float64Array(old.x.buffer, 0, n) : new Float64Array(n);
  // By depth: where the next node begins. A node's children begin where the node does.
  let deepest = 0;
  for (let i = 0; i < n; i++) if (depth[i] > deepest) deepest = depth[i];
  const next = new Float64Array(deepest + 2);
  const inRow = new Int32Array(deepest + 1);
  for (let i = 0; i < n; i++) {
    const d = depth[i];
    const at = next[d];
    const t = total[i];
    x[i] = at;
    next[d + 1] = at;
    if (t > 0) {
      next[d] = at + t;
      inRow[d]++;
    }
  }
  let rows = 0;
  for (let d = 0; d <= deepest; d++) if (inRow[d]) rows = d + 1;
  const rowStart = new Int32Array(rows + 1);
  for (let d = 0; d < rows; d++) rowStart[d + 1] = rowStart[d] + inRow[d];
  const wide = rows ? rowStart[rows] : 0;
  const rowNodes = old && old.rowNodes.buffer.byteLength >= 4 * wide ? new Int32Array(old.rowNodes.buffer, 0, wide) : new Int32Array(wide);
  const right = old && old.right.buffer.byteLength >= 8 * wide ? new Float64Array(old.right.buffer, 0, wide) : new Float64Array(wide);
  const fill = rowStart.slice();
  for (let i = 0; i < n; i++) {
    const t = total[i];
    if (t <= 0) continue;
    const k = fill[depth[i]]++;
    rowNodes[k] = i;
    right[k] = x[i] + t;
  }
  const before = old?.before && old.before.length >= wide + rows ? old.before : undefined;
  return { x, total, rowStart, rowNodes, right, rows, before };
}

// firstAfter returns the index into rowNodes, from lo up to hi, of the first node whose right
// edge lies to the right of at; hi if there is none. It is usually near lo.
export function firstAfter(l: Layout, lo: number, hi: number, at: number): number {
  const { right } = l;
  for (let step = 1; lo < hi; step *= 2) {
    const probe = Math.min(hi - 1, lo + step - 1);
    if (right[probe] > at) {
      hi = probe;
      break;
    }
    lo = probe + 1;
  }
  while (lo < hi) {
    const mid = (lo + hi) >>> 1;
    if (right[mid] > at) hi = mid;
    else lo = mid + 1;
  }
  return lo;
}

// nodeAt returns the node at a row and a position, or -1.
export function nodeAt(l: Layout, row: number, at: number): number {
  if (row < 0 || row >= l.rows) return -1;
  const k = firstAfter(l, l.rowStart[row], l.rowStart[row + 1], at);
  if (k >= l.rowStart[row + 1]) return -1;
  const i = l.rowNodes[k];
  return l.x[i] <= at ? i : -1;
}

// neighbour returns the node next to i in its row, dir -1 or 1, or -1.
export function neighbour(l: Layout, tree: Tree, i: number, dir: -1 | 1): number {
  const row = tree.depth[i];
  const k = firstAfter(l, l.rowStart[row], l.rowStart[row + 1], l.x[i]) + dir;
  return k >= l.rowStart[row] && k < l.rowStart[row + 1] ? l.rowNodes[k] : -1;
}

// heaviestChild returns the widest child of i, or -1.
export function heaviestChild(l: Layout, tree: Tree, i: number): number {
  let best = -1;
  for (let c = i + 1; c < tree.end[i]; c = tree.end[c]) {
    if (l.total[c] > 0 && (best < 0 || l.total[c] > l.total[best])) best = c;
  }
  return best;
}

// deepestCovering returns the deepest node that spans all of [x0, x1].
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
