// A tree that is made of paths: equal methods below one node are one node.

import type { Tree, Values } from "../flame/tree";
import { keyOf, type Methods } from "./rows";

export interface Half { readonly tree: Tree; readonly total: Float64Array }

const FEW = 24; // as many are sorted where they lie

// Merging walks a tree, down to what nodes call or up to their callers, in groups:
// nodes of one method at one place of the merged tree are one of its nodes. It is made in
// its final order, the heavier first, and each node is looked at once, since
// millions are merged while somebody waits. What groups are still to be done lie one
// after the other in columns, the next one last.
export class Merging {
  private n = 0;
  private out: Columns;

  private node = new Int32Array(1024); // of the groups
  private weight = new Float64Array(1024); // upwards: what comes this way
  private top = 0;
  private groups: number[] = []; // where each begins, and its depth

  private readonly keys: Int32Array; // by symbol

  // room is about how many nodes there will be at most. The columns of old are used
  // again if they are long enough: it is not valid any more. Fresh memory costs as much as all the rest.
  constructor(private readonly from: Tree, private readonly v: Values, private readonly methods: Methods, private readonly up: boolean, room = 1024, old?: Half) {
    this.keys = methods.of.map((_, s) => keyOf(methods, s));
    room = Math.max(room, 16);
    const ints = (a?: Int32Array): Int32Array => (a && a.buffer.byteLength >= 4 * room ? new Int32Array(a.buffer) : new Int32Array(room));
    const t = old?.tree;
    this.out = {
      depth: ints(t?.depth), sym: ints(t?.sym), origin: ints(t?.origin), parent: ints(t?.parent), end: ints(t?.end),
      total: old && old.total.buffer.byteLength >= 8 * room ? new Float64Array(old.total.buffer) : new Float64Array(room),
    };
  }

  // merge gives the tree whose root stands for all of the nodes.
  merge(nodes: readonly number[]): Half {
    const { v, up } = this;
    for (const i of nodes) this.push(i, v.total[i]);
    this.groups.push(0, 0);
    while (this.groups.length) {
      const depth = this.groups.pop()!, lo = this.groups.pop()!;
      if (up) this.callers(lo, depth);
      else this.callees(lo, depth);
    }
    const { n, out } = this;
    const { depth, parent, end } = out;
    const last: number[] = []; // by depth
    for (let i = 0; i < n; i++) {
      const d = depth[i];
      parent[i] = d > 0 ? last[d - 1] : -1;
      last[d] = i;
      end[i] = i + 1;
    }
    for (let i = n - 1; i > 0; i--) if (end[i] > end[parent[i]]) end[parent[i]] = end[i];
    const of = <T extends Int32Array | Float64Array>(a: T): T => a.subarray(0, n) as T;
    return { tree: { n, sym: of(out.sym), depth: of(depth), parent: of(parent), end: of(end), origin: of(out.origin) }, total: of(out.total) };
  }

  private push(i: number, weight: number): void {
    const k = this.top++;
    if (k === this.node.length) {
      this.node = longer(this.node);
      if (this.up) this.weight = longer(this.weight);
    }
    this.node[k] = i;
    if (this.up) this.weight[k] = weight;
  }

  // emit adds a node to the merged tree.
  private emit(depth: number, origin: number, total: number): void {
    const n = this.n++;
    let { out } = this;
    if (n >= out.depth.length || n >= out.total.length) {
      this.out = out = {
        depth: longer(out.depth), sym: longer(out.sym), origin: longer(out.origin), parent: longer(out.parent), end: longer(out.end), total: longer(out.total),
      };
    }
    out.depth[n] = depth;
    out.sym[n] = depth > 0 ? this.from.sym[origin] : -1;
    out.origin[n] = origin;
    out.total[n] = total;
  }

  // callees takes the last group, gives its node, and leaves the groups of its children.
  private callees(lo: number, depth: number): void {
    const { v, from } = this;
    const { end } = from;
    const hi = this.top;
    let total = 0, most = -1, origin = 0; // the heaviest node that it stands for
    for (let k = lo; k < hi; k++) {
      const i = this.node[k];
      const t = v.total[i];
      total += t;
      if (t > most) {
        most = t;
        origin = i;
      }
    }
    this.emit(depth, origin, total);
    if (hi - lo === 1) { // as most are
      this.top = lo;
      for (let c = origin + 1, e = end[origin]; c < e; c = end[c]) if (v.samples[c] > 0) this.push(c, 0);
    } else {
      const children: number[] = [];
      for (let k = lo; k < hi; k++) {
        const i = this.node[k];
        for (let c = i + 1; c < end[i]; c = end[c]) if (v.samples[c] > 0) children.push(c);
      }
      this.top = lo;
      for (const c of children) this.push(c, 0);
    }
    this.divide(lo, depth + 1);
  }

  // callers does the same upwards. Nodes with one parent are one from there on.
  private callers(lo: number, depth: number): void {
    const { from } = this;
    const hi = this.top;
    let total = 0, most = -1, origin = 0;
    const parents = new Map<number, number>(); // their place among those below
    const weight: number[] = [];
    for (let k = lo; k < hi; k++) {
      const i = this.node[k], w = this.weight[k];
      total += w;
      if (w > most) {
        most = w;
        origin = i;
      }
      const p = from.parent[i];
      if (p <= 0) continue;
      const at = parents.get(p);
      if (at === undefined) {
        parents.set(p, weight.length);
        weight.push(w);
      } else weight[at] += w;
    }
    this.emit(depth, origin, total);
    this.top = lo;
    let at = 0;
    for (const p of parents.keys()) this.push(p, weight[at++]);
    this.divide(lo, depth + 1);
  }

  private key(i: number): number {
    const s = this.from.sym[i];
    return s < this.keys.length ? this.keys[s] : keyOf(this.methods, s);
  }

  private heft(k: number): number {
    return this.up ? this.weight[k] : this.v.total[this.node[k]];
  }

  // divide makes groups of what lies from lo on, the heaviest last.
  private divide(lo: number, depth: number): void {
    const { node, keyAt, orderOf, first, sum } = this;
    const n = this.top - lo;
    if (n === 0) return;
    if (n === 1) {
      this.groups.push(lo, depth);
      return;
    }
    if (n > FEW) return this.divideMany(lo, depth);
    for (let k = 0; k < n; k++) { // by key
      const key = this.key(node[lo + k]);
      let at = k;
      for (; at > 0 && keyAt[at - 1] > key; at--) {
        keyAt[at] = keyAt[at - 1];
        orderOf[at] = orderOf[at - 1];
      }
      keyAt[at] = key;
      orderOf[at] = k;
    }
    let groups = 0;
    for (let k = 0; k < n; k++) {
      if (k === 0 || keyAt[k] !== keyAt[k - 1]) {
        first[groups] = k;
        sum[groups++] = 0;
      }
      sum[groups - 1] += this.heft(lo + orderOf[k]);
    }
    first[groups] = n;
    if (groups === 1) {
      this.groups.push(lo, depth);
      return;
    }
    this.save(lo, n);
    let to = lo;
    for (let done = 0; done < groups; done++) { // the lightest of those that are left, of the same the one with the highest key
      let best = -1;
      for (let g = 0; g < groups; g++) if (sum[g] >= 0 && (best < 0 || sum[g] <= sum[best])) best = g;
      sum[best] = -1;
      this.groups.push(to, depth);
      for (let k = first[best]; k < first[best + 1]; k++) this.restore(to++, orderOf[k]);
    }
  }

  private readonly keyAt = new Int32Array(FEW);
  private readonly orderOf = new Int32Array(FEW);
  private readonly first = new Int32Array(FEW + 1);
  private readonly sum = new Float64Array(FEW);
  private was = new Int32Array(FEW);
  private weightWas = new Float64Array(FEW);

  private save(lo: number, n: number): void {
    while (this.was.length < n) {
      this.was = longer(this.was);
      this.weightWas = longer(this.weightWas);
    }
    for (let k = 0; k < n; k++) this.was[k] = this.node[lo + k];
    if (this.up) for (let k = 0; k < n; k++) this.weightWas[k] = this.weight[lo + k];
  }

  private restore(to: number, k: number): void {
    this.node[to] = this.was[k];
    if (this.up) this.weight[to] = this.weightWas[k];
  }

  private divideMany(lo: number, depth: number): void {
    const n = this.top - lo;
    const known = new Map<number, { key: number; total: number; places: number[] }>();
    for (let k = 0; k < n; k++) {
      const key = this.key(this.node[lo + k]);
      let g = known.get(key);
      if (!g) known.set(key, (g = { key, total: 0, places: [] }));
      g.total += this.heft(lo + k);
      g.places.push(k);
    }
    this.save(lo, n);
    let to = lo;
    for (const g of [...known.values()].sort((a, b) => a.total - b.total || b.key - a.key)) {
      this.groups.push(to, depth);
      for (const k of g.places) this.restore(to++, k);
    }
  }
}

interface Columns { readonly depth: Int32Array; readonly sym: Int32Array; readonly origin: Int32Array; readonly parent: Int32Array; readonly end: Int32Array; readonly total: Float64Array }

function longer<T extends Int32Array | Float64Array>(a: T): T {
  const b = new (a.constructor as { new (n: number): T })(2 * a.length);
  b.set(a);
  return b;
}
