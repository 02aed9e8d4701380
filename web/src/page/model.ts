// The part of the data that is shown: the tree as it is split, added up over the chosen threads
// and event, with one frame for each function.

import { began, commandLine } from "./format";
import type { Data, Split } from "../data";
import { colorsOf, shades } from "../flame/colors";
import { layout, type Layout } from "../flame/layout";
import type { Name } from "../flame/label";
import { gather, mergeTiers, settle, type Merged } from "../flame/tiers";
import { addUp, fromDepth, split, type Cells, type Tree, type Values } from "../flame/tree";
import type { State } from "./state";

export class Model {
  data!: Data;
  names!: Name[]; // data.names and after them those of processes and threads
  searchable!: string[];
  shade!: Uint8Array;
  colors!: Uint8Array; // by kind
  symbolColor!: Uint8Array; // by symbol
  symbols = 0; // how many of them are functions
  threadWeight!: Float64Array[]; // by event and thread
  private readonly trees = new Map<Split, { tree: Tree; cells: Cells }>();

  tree!: Tree;
  values!: Values;
  layout!: Layout;
  guessed!: Uint8Array; // by node of the tree: the share that is a guess, 0 to 255
  // The tree as recorded has a node for each kind of code that a function ran in. merged says
  // which of its nodes make up each node of tree; null: the two are the same.
  protected merged: Merged | null = null;
  protected recorded!: Tree;
  protected weights!: Values; // by node of recorded
  private merging = new WeakMap<Tree, Merged | null>();
  private anyGuess = false;
  private keys: Int32Array = new Int32Array(0); // by symbol: the function it belongs to

  constructor(data: Data) {
    this.reset(data);
  }

  // clear leaves nothing to draw, until cells are taken.
  clear(): void {
    this.tree = fromDepth(Int32Array.of(0), Int32Array.of(-1));
    this.values = { self: new Float64Array(1), total: new Float64Array(1), count: new Float64Array(1), samples: new Float64Array(1) };
    this.layout = layout(this.tree, this.values.total);
  }

  // reset replaces everything.
  reset(data: Data): void {
    const h = data.header;
    this.data = data;
    this.trees.clear();
    this.merging = new WeakMap();
    this.symbols = data.names.length;
    const word = (full: string): Name => ({ full, short: 0, method: 0, end: full.length });
    this.names = [...data.names, ...h.threads.map((_, i) => word(this.threadName(i))), ...h.processes.map((_, i) => word(this.processName(i)))];
    this.searchable = this.names.map((n, i) => {
      const f = data.funcs[i];
      return f && f.module && !n.full.includes(f.module) ? `${n.full} ${f.module}` : n.full;
    });
    this.colors = colorsOf(h.kinds);
    this.symbolColor = data.kind.map((k) => this.colors[k] ?? 0);
    this.keys = this.functions();
    this.anyGuess = data.heuristic.some((v) => v > 0);
    this.shade = shades(this.names.map((n) => n.full));
    this.threadWeight = h.events.map(() => new Float64Array(h.threads.length));
    this.weigh();
  }

  // take replaces the cells that are added up; the tree stays.
  take(cells: Cells): void {
    this.data.cells = cells;
    this.trees.clear();
    this.weigh();
  }

  private weigh(): void {
    for (const w of this.threadWeight) w.fill(0);
    const c = this.data.cells;
    for (let i = 0; i < c.n; i++) this.threadWeight[c.event[i]][c.thread[i]] += c.weight[i];
  }

  threadName(t: number): string {
    const { name, os, tid, pid, since } = this.data.header.threads[t];
    const many = this.data.header.processes.length > 1;
    return `${name || os || "thread"} · ${many ? `${pid}/` : ""}${tid}${began(since)}`;
  }

  processName(p: number): string {
    const { command, runtime, pid } = this.data.header.processes[p];
    return `${commandLine(command) || "process"} · ${pid}${runtime ? ` · ${runtime}` : ""}`;
  }

  // first is the event that is shown by default: the first that has any samples.
  get first(): number {
    return Math.max(0, this.threadWeight.findIndex((w) => w.some((v) => v > 0)));
  }

  // functions gives each symbol a number that the symbols of one function share, which are those
  // of the same name and module, as in reports. Placeholders for missing frames and roots of
  // groups have numbers of their own.
  private functions(): Int32Array {
    const { funcs, kind, header } = this.data;
    const known = new Map<string, number>();
    return Int32Array.from(this.names, (n, s) => {
      const f = funcs[s];
      if (!f || header.kinds[kind[s]] === "no stack") return s;
      const name = `${f.module}\0${n.full}`;
      const first = known.get(name);
      if (first === undefined) known.set(name, s);
      return first ?? s;
    });
  }

  // hasTiers reports whether any function may have several frames that can be one.
  get hasTiers(): boolean {
    return this.keys.some((k, s) => k !== s);
  }

  // functionOf returns the number of a symbol's function.
  functionOf(symbol: number): number {
    return this.keys[symbol] ?? symbol;
  }

  // show updates tree, values and layout to the state.
  show(s: State): void {
    const { tree, cells } = this.treeFor(s.split);
    const threads = new Uint8Array(this.data.header.threads.length).fill(1);
    for (const t of s.hidden) threads[t] = 0;
    this.weights = addUp(tree, cells, s.event, threads, this.weights);
    this.lay(tree, s.tiers, (merged) => (merged ? gather(merged, this.weights, this.merged ? this.values : undefined) : this.weights));
    if (s.zoom >= this.tree.n || this.values.total[s.zoom] <= 0) s.zoom = 0;
  }

  // lay takes a tree as recorded, whose weights are known, and makes the tree that is shown from it.
  protected lay(tree: Tree, byTier: boolean, valuesOf: (merged: Merged | null) => Values): void {
    const merged = byTier ? null : this.mergedOf(tree);
    this.values = valuesOf(merged);
    [this.recorded, this.merged, this.tree] = [tree, merged, merged?.tree ?? tree];
    if (merged) settle(merged, tree, this.weights.total, this.data.kind);
    this.layout = layout(this.tree, this.values.total, this.layout);
    this.guessed = this.guesses();
  }

  private mergedOf(tree: Tree): Merged | null {
    let m = this.merging.get(tree);
    if (m === undefined) this.merging.set(tree, (m = mergeTiers(tree, this.keys, tree === this.data.tree ? this.data.samples : this.weights.samples)));
    return m;
  }

  // wholeTree is the tree of all threads together, whatever is shown.
  wholeTree(byTier: boolean): Tree {
    return (byTier ? null : this.mergedOf(this.data.tree))?.tree ?? this.data.tree;
  }

  // nodeOf is the node of that tree for a node as recorded.
  nodeOf(recorded: number, byTier: boolean): number {
    return (byTier ? null : this.mergedOf(this.data.tree))?.to[recorded] ?? recorded;
  }

  // sum adds up other cells by node of that tree.
  sum(cells: Cells, event: number, byTier: boolean): Values {
    const v = addUp(this.data.tree, cells, event, new Uint8Array(this.data.header.threads.length).fill(1));
    const merged = byTier ? null : this.mergedOf(this.data.tree);
    return merged ? gather(merged, v) : v;
  }

  private guesses(): Uint8Array {
    const { heuristic } = this.data;
    const out = new Uint8Array(this.tree.n);
    if (this.anyGuess) for (let i = 0; i < out.length; i++) out[i] = this.part(i, heuristic);
    return out;
  }

  // each calls f for the nodes as recorded that a node is made of.
  private each(node: number, f: (recorded: number) => void): void {
    const { merged: m } = this;
    if (!m) return f(node);
    for (let k = m.first[node]; k < m.first[node + 1]; k++) f(m.members[k]);
  }

  // alone says that another tree takes the place of the one that is shown, in which nothing is
  // merged here.
  alone(): void {
    this.merged = null;
  }

  // part is a share of a node, 0 to 255; by has that share for each node as recorded, with all
  // threads together. It is 0 only if nothing shown has it, and 255 only if everything has.
  part(node: number, by: Uint8Array): number {
    const { merged: m } = this;
    if (!m) {
      const o = this.tree.origin[node];
      return o >= 0 ? by[o] : 0;
    }
    const { recorded: { origin }, weights: { samples } } = this;
    const from = m.first[node], end = m.first[node + 1];
    if (end - from === 1) {
      const o = origin[m.members[from]];
      return o >= 0 ? by[o] : 0;
    }
    let all = 0, has = 0, every = true;
    for (let k = from; k < end; k++) {
      const i: number = m.members[k], o = origin[i], n = samples[i];
      if (o < 0 || n <= 0) continue;
      all += n;
      has += n * by[o];
      every &&= by[o] === 255;
    }
    return has <= 0 ? 0 : every ? 255 : Math.max(1, Math.min(254, Math.round(has / all)));
  }

  // kindsIn is the part of a node's total in each kind of code, the largest first.
  kindsIn(node: number): { kind: number; total: number }[] {
    const { kind } = this.data;
    const by = new Map<number, number>();
    if (!this.merged) {
      if (this.values.total[node] > 0) by.set(kind[this.tree.sym[node]], this.values.total[node]);
    } else this.each(node, (i) => {
      const k = kind[this.recorded.sym[i]], n = this.weights.total[i];
      if (n > 0) by.set(k, (by.get(k) ?? 0) + n);
    });
    return [...by].map(([kind, total]) => ({ kind, total })).sort((a, b) => b.total - a.total || a.kind - b.kind);
  }

  // symbolsIn are the different symbols of the nodes that make up a node.
  symbolsIn(node: number): number[] {
    if (!this.merged) return [this.tree.sym[node]];
    const out = new Set<number>();
    this.each(node, (i) => this.weights.samples[i] > 0 && out.add(this.recorded.sym[i]));
    return [...out];
  }

  // severalLines reports whether part of a node was at another line than most of origin's node.
  severalLines(node: number): boolean {
    const { line, lines } = this.data;
    const o = this.tree.origin[node];
    let several = lines[o] > 1;
    if (this.merged) this.each(node, (i) => {
      const other = this.recorded.origin[i];
      several ||= this.weights.samples[i] > 0 && other >= 0 && line[other] > 0 && (line[other] !== line[o] || lines[other] > 1);
    });
    return several;
  }

  private treeFor(how: Split): { tree: Tree; cells: Cells } {
    let t = this.trees.get(how);
    if (!t) {
      t = how === "none" ? { tree: this.data.tree, cells: this.data.cells } : this.splitBy(how);
      this.trees.set(how, t);
    }
    return t;
  }

  private splitBy(how: "process" | "thread"): { tree: Tree; cells: Cells } {
    const { threads, processes } = this.data.header;
    let groupOf = Int32Array.from(threads, (_, i) => i);
    let groups = threads.length;
    let first = this.symbols;
    if (how === "process") {
      const byPID = new Map(processes.map((p, i) => [p.pid, i]));
      if (!threads.every((t) => byPID.has(t.pid))) {
        // A file of another tool, without processes: they are not known.
        return { tree: this.data.tree, cells: this.data.cells };
      }
      groupOf = Int32Array.from(threads, (t) => byPID.get(t.pid)!);
      groups = processes.length;
      first += threads.length;
    }
    const weight = new Float64Array(groups);
    this.threadWeight[this.first]?.forEach((w, t) => (weight[groupOf[t]] += w));
    const order = Array.from({ length: groups }, (_, g) => g).sort((a, b) => weight[b] - weight[a] || a - b);
    return split(this.data.tree, this.data.cells, groupOf, order, first);
  }

  rootName(): string {
    return `all · ${commandLine(this.data.header.title)}`;
  }

  nameOf(i: number): string {
    const s = this.tree.sym[i];
    return s < 0 ? this.rootName() : this.names[s].full;
  }

  private kindsOf: { values: Values | null; at: number; self: Float64Array } = { values: null, at: -1, self: new Float64Array(0) }; // the last result of selfByKind

  // selfByKind adds up the self of the frames of each kind under node at.
  selfByKind(at: number): Float64Array {
    const last = this.kindsOf;
    if (last.values === this.values && last.at === at) return last.self;
    const out = new Float64Array(this.data.header.kinds.length);
    const { recorded: { sym, n }, weights: { self }, merged: m } = this;
    const add = (i: number): void => {
      const s = sym[i];
      if (self[i] > 0) out[s >= 0 && s < this.symbols ? this.data.kind[s] : out.length - 1] += self[i];
    };
    if (at === 0) for (let i = 0; i < n; i++) add(i);
    else for (let k = m ? m.first[at] : at, end = m ? m.first[this.tree.end[at]] : this.tree.end[at]; k < end; k++) add(m ? m.members[k] : k);
    this.kindsOf = { values: this.values, at, self: out };
    return out;
  }
}
