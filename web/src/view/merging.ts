// A tree that is made of paths: equal methods below one node are one node.

import { fromDepth, type Tree, type Values } from "../flame/tree";
import { keyOf, type Methods } from "./rows";

export class Merging {
  readonly parent: number[] = [-1];
  readonly sym: number[] = [-1];
  readonly origin: number[] = [0]; // the heaviest node that it stands for
  readonly self: number[] = [0];
  readonly total: number[] = [0];
  readonly count: number[] = [0];
  readonly samples: number[] = [0];
  private readonly below: (Map<number, number> | null)[] = [null];
  private readonly most: number[] = [0];

  constructor(private readonly methods: Methods) {}

  // child is the node below at for a symbol's method.
  child(at: number, symbol: number): number {
    const k = keyOf(this.methods, symbol);
    const map = (this.below[at] ??= new Map());
    let n = map.get(k);
    if (n === undefined) {
      map.set(k, (n = this.parent.length));
      this.parent.push(at);
      this.sym.push(symbol);
      this.origin.push(0);
      for (const list of [this.self, this.total, this.count, this.samples, this.most]) list.push(0);
      this.below.push(null);
    }
    return n;
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
  const n = m.parent.length;
  const children: number[][] = Array.from({ length: n }, () => []);
  for (let i = 1; i < n; i++) children[m.parent[i]].push(i);
  for (const list of children) if (list.length > 1) list.sort((a, b) => m.total[b] - m.total[a] || m.sym[a] - m.sym[b]);
  const depth = new Int32Array(n), sym = new Int32Array(n), origin = new Int32Array(n);
  const values = { self: new Float64Array(n), total: new Float64Array(n), count: new Float64Array(n), samples: new Float64Array(n) };
  const stack: [number, number][] = [[0, 0]];
  for (let i = 0; stack.length; i++) {
    const [at, d] = stack.pop()!;
    depth[i] = d;
    sym[i] = m.sym[at];
    origin[i] = m.origin[at];
    values.self[i] = m.self[at];
    values.total[i] = m.total[at];
    values.count[i] = m.count[at];
    values.samples[i] = m.samples[at];
    for (let k = children[at].length - 1; k >= 0; k--) stack.push([children[at][k], d + 1]);
  }
  return { tree: fromDepth(depth, sym, origin), values };
}
