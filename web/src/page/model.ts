// What is shown of the data: the tree as it is split, added up over the threads
// and the event that are chosen.

import { began, commandLine } from "./format";
import type { Data, Split } from "../data";
import { shades } from "../flame/colors";
import { layout, type Layout } from "../flame/layout";
import type { Name } from "../flame/label";
import { addUp, split, type Cells, type Tree, type Values } from "../flame/tree";
import type { State } from "./state";

export class Model {
  data!: Data;
  names!: Name[]; // data.names and after them those of processes and threads
  searchable!: string[];
  shade!: Uint8Array;
  symbols = 0; // how many of them are functions
  threadWeight!: Float64Array[]; // by event and thread
  private readonly trees = new Map<Split, { tree: Tree; cells: Cells }>();

  tree!: Tree;
  cells!: Cells;
  values!: Values;
  layout!: Layout;

  constructor(data: Data) {
    this.reset(data);
  }

  // reset replaces everything.
  reset(data: Data): void {
    const h = data.header;
    this.data = data;
    this.trees.clear();
    this.symbols = data.names.length;
    const word = (full: string): Name => ({ full, short: 0, method: 0, end: full.length });
    this.names = [...data.names, ...h.threads.map((_, i) => word(this.threadName(i))), ...h.processes.map((_, i) => word(this.processName(i)))];
    this.searchable = this.names.map((n, i) => {
      const f = data.funcs[i];
      return f && f.module && !n.full.includes(f.module) ? `${n.full} ${f.module}` : n.full;
    });
    this.shade = shades(this.names.map((n) => n.full));
    this.threadWeight = h.events.map(() => new Float64Array(h.threads.length));
    this.weigh();
  }

  // take replaces what is added up; the tree stays.
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

  // first is the event that is shown where none is asked for: the first that has anything.
  get first(): number {
    return Math.max(0, this.threadWeight.findIndex((w) => w.some((v) => v > 0)));
  }

  // show brings tree, values and layout to what the state asks for.
  show(s: State): void {
    const { tree, cells } = this.treeFor(s.split);
    const threads = new Uint8Array(this.data.header.threads.length).fill(1);
    for (const t of s.hidden) threads[t] = 0;
    this.tree = tree;
    this.cells = cells;
    this.values = addUp(tree, cells, s.event, threads, this.values);
    this.layout = layout(tree, this.values.total, this.layout);
    if (s.zoom >= tree.n || this.values.total[s.zoom] <= 0) s.zoom = 0;
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

  private kindsOf: { values: Values | null; at: number; self: Float64Array } = { values: null, at: -1, self: new Float64Array(0) }; // what selfByKind gave last

  // selfByKind adds up what ended in frames of each kind under node at.
  selfByKind(at: number): Float64Array {
    const last = this.kindsOf;
    if (last.values === this.values && last.at === at) return last.self;
    const out = new Float64Array(this.data.header.kinds.length);
    const { tree, values } = this;
    for (let i = at; i < tree.end[at]; i++) {
      const s = tree.sym[i];
      if (values.self[i] > 0) out[s >= 0 && s < this.symbols ? this.data.kind[s] : out.length - 1] += values.self[i];
    }
    this.kindsOf = { values: this.values, at, self: out };
    return out;
  }
}
