// Method list, call tree and callers, out of the tree in typed arrays. Rows are
// made level by level, when they are opened.

import type { Tree, Values } from "../flame/tree";

// Methods says which symbol is of which method.
export interface Methods {
  readonly n: number;
  readonly of: Int32Array; // by symbol: the method, -1 for what stands for missing frames
  readonly symbol: Int32Array; // by method: one of its symbols
}

export function methodsOf(of: Int32Array): Methods {
  let n = 0;
  for (const m of of) if (m >= n) n = m + 1;
  const symbol = new Int32Array(n).fill(-1);
  of.forEach((m, s) => {
    if (m >= 0 && symbol[m] < 0) symbol[m] = s;
  });
  return { n, of, symbol };
}

// Row is a line of a tree of methods.
export interface Row {
  readonly symbol: number; // one of those it stands for
  readonly method: number; // -1: what stands for missing frames, a thread or a process
  readonly level: number; // from 0
  readonly parent: Row | null;
  readonly self: number;
  readonly total: number;
  readonly samples: number; // total
  readonly before: number; // total before, where two are compared
  readonly at: Int32Array; // nodes of the tree
  readonly weight?: Float64Array; // callers: how much of each counts
  readonly count?: Float64Array;
  readonly was?: Float64Array; // callers: how much of each counted before
  open: boolean;
  children: Row[] | null; // null: not made yet
}

// Forest makes the rows of a tree.
export interface Forest {
  roots(): Row[];
  children(r: Row): Row[];
  leaf(r: Row): boolean; // nothing below
}

const heavier = (a: Row, b: Row): number => b.total - a.total || b.before - a.before || b.samples - a.samples || a.symbol - b.symbol;

// keyOf tells the rows below one row apart.
export function keyOf(methods: Methods, symbol: number): number {
  const m = symbol < methods.of.length ? methods.of[symbol] : -1;
  return m >= 0 ? m : -2 - symbol;
}

// Calls is the call tree: what differs only in kinds of code is one row.
export class Calls implements Forest {
  constructor(private readonly tree: Tree, private readonly v: Values, private readonly methods: Methods, private readonly base: Values | null = null) {}

  private empty(i: number): boolean {
    return this.v.samples[i] === 0 && !(this.base && this.base.samples[i] > 0);
  }

  roots(): Row[] {
    return this.below(Int32Array.of(0), null);
  }

  children(r: Row): Row[] {
    return (r.children ??= this.below(r.at, r));
  }

  leaf(r: Row): boolean {
    const { tree } = this;
    for (const i of r.at) for (let c = i + 1; c < tree.end[i]; c = tree.end[c]) if (!this.empty(c)) return false;
    return true;
  }

  private below(at: Int32Array, parent: Row | null): Row[] {
    const { tree, v, methods } = this;
    const groups = new Map<number, number[]>();
    for (const i of at) {
      for (let c = i + 1; c < tree.end[i]; c = tree.end[c]) {
        if (this.empty(c)) continue;
        const k = keyOf(methods, tree.sym[c]);
        const g = groups.get(k);
        if (g) g.push(c);
        else groups.set(k, [c]);
      }
    }
    const out: Row[] = [];
    for (const [k, nodes] of groups) {
      let self = 0, total = 0, samples = 0, before = 0;
      for (const i of nodes) {
        self += v.self[i];
        total += v.total[i];
        samples += v.samples[i];
        if (this.base) before += this.base.total[i];
      }
      out.push({ before, symbol: tree.sym[nodes[0]], method: k >= 0 ? k : -1, level: parent ? parent.level + 1 : 0, parent, self, total, samples, at: Int32Array.from(nodes), open: false, children: null });
    }
    return out.sort(heavier);
  }
}

// Callers is who called a method, from the inside out; or, without a method, who
// called each one in which samples ended. A stack counts once, for the innermost
// frame of the method.
export class Callers implements Forest {
  constructor(private readonly tree: Tree, private readonly v: Values, private readonly methods: Methods, private readonly method = -1, private readonly base: Values | null = null) {}

  roots(): Row[] {
    const { tree, v, base, methods, method } = this;
    let start = v.self, count = v.count, was = base?.self, wasCount = base?.count;
    if (method >= 0) {
      const near = new Int32Array(tree.n); // the innermost frame of the method on the way to a node
      const begin = (start = new Float64Array(tree.n)), number = (count = new Float64Array(tree.n));
      const before = base ? (was = new Float64Array(tree.n)) : null;
      for (let i = 1; i < tree.n; i++) {
        const s = tree.sym[i];
        const own = s < methods.of.length && methods.of[s] === method;
        const to = (near[i] = own ? i : near[tree.parent[i]]);
        if (to === 0) continue;
        begin[to] += v.self[i];
        number[to] += v.count[i];
        if (before) before[to] += base!.self[i];
      }
      wasCount = was;
    }
    const used = (i: number): boolean => count[i] > 0 || (wasCount !== undefined && wasCount[i] > 0);
    let n = 0;
    for (let i = 1; i < tree.n; i++) if (used(i)) n++;
    const at = new Int32Array(n), weight = new Float64Array(n), samples = new Float64Array(n), before = new Float64Array(n);
    n = 0;
    for (let i = 1; i < tree.n; i++) {
      if (!used(i)) continue;
      at[n] = i;
      weight[n] = start[i];
      samples[n] = count[i];
      if (was) before[n] = was[i];
      n++;
    }
    return this.group(at, weight, samples, before, null);
  }

  children(r: Row): Row[] {
    if (r.children) return r.children;
    const { parent } = this.tree;
    let n = 0;
    for (const i of r.at) if (parent[i] > 0) n++;
    const at = new Int32Array(n), weight = new Float64Array(n), count = new Float64Array(n), was = new Float64Array(n);
    n = 0;
    for (let k = 0; k < r.at.length; k++) {
      const p = parent[r.at[k]];
      if (p <= 0) continue;
      at[n] = p;
      weight[n] = r.weight![k];
      count[n] = r.count![k];
      was[n++] = r.was![k];
    }
    return (r.children = this.group(at, weight, count, was, r));
  }

  leaf(r: Row): boolean {
    return r.at.every((i) => this.tree.parent[i] <= 0);
  }

  // group makes a row of each method. What rows hold are parts of the same columns:
  // all ends of a large recording are grouped at once.
  private group(at: Int32Array, weight: Float64Array, count: Float64Array, was: Float64Array, parent: Row | null): Row[] {
    const { tree, methods } = this;
    const groupOf = new Int32Array(at.length);
    const known = new Map<number, number>();
    const bySymbol = new Int32Array(at.length > methods.of.length ? methods.of.length : 0); // its group, from 1 on
    const first: number[] = []; // by group: where its part begins
    for (let j = 0; j < at.length; j++) {
      const s = tree.sym[at[j]];
      let g = s < bySymbol.length ? bySymbol[s] - 1 : -1;
      if (g < 0) {
        const k = keyOf(methods, s);
        g = known.get(k) ?? -1;
        if (g < 0) {
          known.set(k, (g = first.length));
          first.push(0);
        }
        if (s < bySymbol.length) bySymbol[s] = g + 1;
      }
      groupOf[j] = g;
      first[g]++;
    }
    let sum = 0;
    for (let g = 0; g < first.length; g++) [first[g], sum] = [sum, sum + first[g]];
    const next = Int32Array.from(first);
    const groups = first.length;
    const node = new Int32Array(at.length), part = new Float64Array(at.length), samples = new Float64Array(at.length), before = new Float64Array(at.length);
    const all = new Float64Array(groups), number = new Float64Array(groups), old = new Float64Array(groups), ends = new Float64Array(groups);
    for (let j = 0; j < at.length; j++) {
      const g = groupOf[j], to = next[g]++;
      node[to] = at[j];
      all[g] += part[to] = weight[j];
      number[g] += samples[to] = count[j];
      old[g] += before[to] = was[j];
      if (tree.parent[at[j]] <= 0) ends[g] += weight[j];
    }
    const out: Row[] = [];
    for (const [k, g] of known) {
      const lo = first[g], hi = next[g];
      out.push({
        symbol: tree.sym[node[lo]], method: k >= 0 ? k : -1, level: parent ? parent.level + 1 : 0, parent, self: ends[g], total: all[g], samples: number[g], before: old[g],
        at: node.subarray(lo, hi), weight: part.subarray(lo, hi), count: samples.subarray(lo, hi), was: before.subarray(lo, hi), open: false, children: null,
      });
    }
    return out.sort(heavier);
  }
}

// flatten gives the rows that can be seen: those under open ones.
export function flatten(roots: readonly Row[]): Row[] {
  const out: Row[] = [];
  const stack = [...roots].reverse();
  while (stack.length) {
    const r = stack.pop()!;
    out.push(r);
    if (r.open && r.children) for (let i = r.children.length - 1; i >= 0; i--) stack.push(r.children[i]);
  }
  return out;
}

// unfold opens a row and goes on below as long as there is only one way, or one
// with nearly everything.
export function unfold(f: Forest, r: Row, most = 200): void {
  let at: Row | undefined = r;
  for (let i = 0; at && i < most; i++) {
    if (f.leaf(at)) return;
    at.open = true;
    const below: Row[] = f.children(at);
    at = below.length && below[0].total >= 0.9 * at.total ? below[0] : undefined;
  }
}
