// A tree that is made of paths: equal methods below one node are one node.

import { fromDepth, type Tree, type Values } from "../flame/tree";
import { keyOf, type Methods } from "./rows";

// Millions of nodes are merged while somebody waits: the nodes are columns of
// numbers. Most have one child, which is told of where they are; only where there are
// more are they found in a hash table.
export class Merging {
  n = 1; // nodes; 0 is the root
  parent: Int32Array;
  sym: Int32Array;
  origin: Int32Array; // the heaviest node that it stands for
  self: Float64Array;
  total: Float64Array;
  count: Float64Array;
  samples: Float64Array;
  private most: Float64Array;
  private key: Int32Array; // by node: what tells it from those beside it
  private only: Int32Array; // by node: its child; 0: none, -1: several
  private slots = new Int32Array(4096); // nodes by parent and key; 0: none
  private used = 0;
  private readonly keys: Int32Array; // by symbol of a method

  // room is how many nodes there will be at most, about.
  constructor(private readonly methods: Methods, room = 1024) {
    this.keys = methods.of.map((_, s) => keyOf(methods, s));
    room = Math.max(room, 16);
    const [a, b, c, d, e] = Array.from({ length: 5 }, () => new Int32Array(room));
    [this.parent, this.sym, this.origin, this.key, this.only] = [a, b, c, d, e];
    a[0] = b[0] = -1;
    const [f, g, h, i, j] = Array.from({ length: 5 }, () => new Float64Array(room));
    [this.self, this.total, this.count, this.samples, this.most] = [f, g, h, i, j];
  }

  private slot(at: number, key: number): number {
    const h = Math.imul(at, 0x9e3779b1) ^ Math.imul(key, 0x85ebca6b);
    return (h ^ (h >>> 15)) & (this.slots.length - 1);
  }

  // child is the node below at for a symbol's method.
  child(at: number, symbol: number): number {
    const k = symbol < this.keys.length ? this.keys[symbol] : keyOf(this.methods, symbol);
    const one = this.only[at];
    if (one === 0) {
      const n = this.push(at, symbol, k);
      this.only[at] = n; // push may have made it longer
      return n;
    }
    if (one > 0) {
      if (this.key[one] === k) return one;
      this.enter(one);
      this.only[at] = -1;
    } else {
      const { slots, parent, key } = this;
      const mask = slots.length - 1;
      let h = this.slot(at, k);
      for (let n = slots[h]; n > 0; n = slots[h]) {
        if (parent[n] === at && key[n] === k) return n;
        h = (h + 1) & mask;
      }
    }
    const n = this.push(at, symbol, k);
    this.enter(n);
    return n;
  }

  private push(at: number, symbol: number, key: number): number {
    const n = this.n++;
    if (n === this.parent.length) this.grow();
    this.parent[n] = at;
    this.sym[n] = symbol;
    this.key[n] = key;
    return n;
  }

  // enter puts a node into the hash table.
  private enter(n: number): void {
    if (2 * ++this.used > this.slots.length) {
      const old = this.slots;
      this.slots = new Int32Array(4 * old.length);
      for (const m of old) if (m > 0) this.place(m);
    }
    this.place(n);
  }

  private place(n: number): void {
    const { slots } = this;
    let h = this.slot(this.parent[n], this.key[n]);
    while (slots[h] > 0) h = (h + 1) & (slots.length - 1);
    slots[h] = n;
  }

  private grow(): void {
    const longer = <T extends Int32Array | Float64Array>(a: T): T => {
      const b = new (a.constructor as { new (n: number): T })(2 * a.length);
      b.set(a);
      return b;
    };
    this.parent = longer(this.parent);
    this.sym = longer(this.sym);
    this.origin = longer(this.origin);
    this.key = longer(this.key);
    this.only = longer(this.only);
    this.self = longer(this.self);
    this.total = longer(this.total);
    this.count = longer(this.count);
    this.samples = longer(this.samples);
    this.most = longer(this.most);
  }

  add(at: number, node: number, self: number, total: number, count: number, samples: number): void {
    this.self[at] += self;
    this.total[at] += total;
    this.count[at] += count;
    this.samples[at] += samples;
    if (total > this.most[at]) {
      this.most[at] = total;
      this.origin[at] = node;
    }
  }

  // end says that something ends there.
  end(at: number, self: number, count: number): void {
    this.self[at] += self;
    this.count[at] += count;
  }
}

// heavierFirst lays a merged tree out as pages draw it.
export function heavierFirst(m: Merging): { tree: Tree; values: Values } {
  const { n, parent } = m;
  // The children of each node, one node's after the other's.
  const first = new Int32Array(n + 1);
  for (let i = 1; i < n; i++) first[parent[i] + 1]++;
  for (let i = 0; i < n; i++) first[i + 1] += first[i];
  const children = new Int32Array(n);
  const next = first.slice();
  for (let i = 1; i < n; i++) children[next[parent[i]]++] = i;
  const heavier = (a: number, b: number): number => m.total[b] - m.total[a] || m.sym[a] - m.sym[b];
  for (let i = 0; i < n; i++) {
    const lo = first[i], hi = first[i + 1];
    if (hi - lo > 24) children.subarray(lo, hi).sort(heavier);
    else for (let j = lo + 1; j < hi; j++) {
      const c = children[j];
      let k = j;
      for (; k > lo && heavier(c, children[k - 1]) < 0; k--) children[k] = children[k - 1];
      children[k] = c;
    }
  }
  const depth = new Int32Array(n), sym = new Int32Array(n), origin = new Int32Array(n);
  const values = { self: new Float64Array(n), total: new Float64Array(n), count: new Float64Array(n), samples: new Float64Array(n) };
  const stack = new Int32Array(n), depths = new Int32Array(n); // what comes next, the last one first
  for (let i = 0, top = 1; top > 0; i++) {
    const at = stack[--top], d = depths[top];
    depth[i] = d;
    sym[i] = m.sym[at];
    origin[i] = m.origin[at];
    values.self[i] = m.self[at];
    values.total[i] = m.total[at];
    values.count[i] = m.count[at];
    values.samples[i] = m.samples[at];
    for (let k = first[at + 1] - 1; k >= first[at]; k--) {
      stack[top] = children[k];
      depths[top++] = d + 1;
    }
  }
  return { tree: fromDepth(depth, sym, origin), values };
}
