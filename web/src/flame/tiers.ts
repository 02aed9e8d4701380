// One frame for each function: a tree in which frames that differ only in their kind of code
// (interpreted, C1, C2, inlined) are one. A runtime compiles a method again and again, so that
// otherwise a method would have a tower for each tier it ran in.

import { fromDepth, type Tree, type Values } from "./tree";

export interface Merged {
  readonly tree: Tree; // sym is the symbol of a member of the dominant kind: see settle
  readonly to: Int32Array; // by node of the tree as recorded: its place in this one
  readonly first: Int32Array; // by node, and one more: where its members begin
  readonly members: Int32Array; // nodes of the tree as recorded, ascending for each node
}

// mergeTiers returns null if no two frames are of one function. key is by symbol, the same for
// symbols of one function; samples are those of each node including its subtree, and determine
// the order of siblings.
export function mergeTiers(tree: Tree, key: Int32Array, samples: ArrayLike<number>): Merged | null {
  const { n, sym, parent } = tree;
  // Nodes are numbered in the order in which they are first met; a parent is met before its
  // children.
  const above = new Int32Array(n), keys = new Int32Array(n).fill(-1), total = new Float64Array(n);
  const to = new Int32Array(n);
  let slots = 64;
  while (slots < 2 * n) slots *= 2;
  const table = new Int32Array(slots); // the nodes, hashed by parent and key; 0: free
  const mask = slots - 1;
  let made = 1;
  total[0] = samples[0];
  for (let i = 1; i < n; i++) {
    const up = to[parent[i]], k = key[sym[i]];
    let h = Math.imul(up, 0x9e3779b1) ^ Math.imul(k, 0x85ebca6b);
    h = (h ^ (h >>> 15)) & mask;
    let c = table[h];
    while (c && (above[c] !== up || keys[c] !== k)) c = table[(h = (h + 1) & mask)];
    if (!c) {
      table[h] = c = made++;
      above[c] = up;
      keys[c] = k;
    }
    to[i] = c;
    total[c] += samples[i];
  }
  if (made === n) return null;

  // The order in which each node is followed by its subtree, the heaviest child first.
  const size = new Int32Array(made).fill(1), begin = new Int32Array(made + 1), down = new Int32Array(made);
  for (let c = made - 1; c > 0; c--) {
    size[above[c]] += size[c];
    begin[above[c] + 1]++;
  }
  for (let c = 0; c < made; c++) begin[c + 1] += begin[c];
  const children = new Int32Array(made);
  const fill = begin.slice(0, made);
  for (let c = 1; c < made; c++) children[fill[above[c]]++] = c;
  const place = new Int32Array(made), depth = new Int32Array(made);
  for (let c = 0; c < made; c++) {
    const list = children.subarray(begin[c], begin[c + 1]);
    for (let k = 1; k < list.length; k++) {
      if (total[list[k]] <= total[list[k - 1]]) continue;
      list.sort((a, b) => total[b] - total[a] || a - b);
      break;
    }
    let at = place[c] + 1;
    for (const b of list) {
      place[b] = at;
      at += size[b];
      depth[at - size[b]] = down[b] = down[c] + 1;
    }
  }
  for (let i = 0; i < n; i++) to[i] = place[to[i]];

  const first = new Int32Array(made + 1), members = new Int32Array(n);
  for (let i = 0; i < n; i++) first[to[i] + 1]++;
  for (let m = 0; m < made; m++) first[m + 1] += first[m];
  const next = first.slice(0, made);
  for (let i = 0; i < n; i++) members[next[to[i]]++] = i;
  const syms = new Int32Array(made), origin = new Int32Array(made);
  for (let m = 0; m < made; m++) {
    let best = members[first[m]];
    for (let k = first[m] + 1; k < first[m + 1]; k++) if (samples[members[k]] > samples[best]) best = members[k];
    syms[m] = sym[best];
    origin[m] = tree.origin[best];
  }
  return { tree: fromDepth(depth, syms, origin), to, first, members };
}

// gather adds up the values of the members of each node. It reuses the arrays of old if they have
// the same length: old is not valid afterwards.
export function gather(m: Merged, v: Values, old?: Values): Values {
  const { n } = m.tree;
  const again = old && old.self.length === n;
  const sum = (name: keyof Values): Float64Array => {
    const out = again ? old[name].fill(0) : new Float64Array(n);
    const from = v[name], { to } = m;
    for (let i = 0; i < to.length; i++) out[to[i]] += from[i];
    return out;
  };
  return { self: sum("self"), total: sum("total"), count: sum("count"), samples: sum("samples") };
}

// settle gives each node a symbol of the kind that has most of its total. total is by node of
// fine, the tree as recorded; kind is by symbol.
export function settle(m: Merged, fine: Tree, total: Float64Array, kind: Uint8Array): void {
  const { first, members, tree: { n, sym } } = m;
  const by = new Float64Array(256);
  for (let at = 1; at < n; at++) {
    const from = first[at], end = first[at + 1];
    if (end - from < 2) continue;
    for (let k = from; k < end; k++) by[kind[fine.sym[members[k]]]] += total[members[k]];
    let best = -1, most = 0, heaviest = 0;
    for (let k = from; k < end; k++) {
      const i = members[k], s = fine.sym[i], of = by[kind[s]];
      if (of > most || (of === most && of > 0 && total[i] > heaviest)) [best, most, heaviest] = [s, of, total[i]];
    }
    if (best >= 0) sym[at] = best;
    for (let k = from; k < end; k++) by[kind[fine.sym[members[k]]]] = 0;
  }
}
