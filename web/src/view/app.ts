// What all tabs share: the recording, the state, and what the filters chose.

import { named, type Data, type Header, type Quality } from "../data";
import { compile } from "../flame/search";
import { addUp, fromDepth, type Cells, type Values } from "../flame/tree";
import { Model } from "../page/model";
import { Calls, Callers, methodsOf, sums, type Methods, type Sums } from "./rows";
import { filters, initial, read, write, type Limits, type State, type Tab } from "./state";
import { ask, type Message } from "./wire";

export interface ViewHeader extends Header {
  readonly name: string;
  readonly timed: boolean;
  readonly end: number; // ns
  readonly states: readonly string[];
  readonly threadKinds: readonly string[];
  readonly kernelCPU: readonly number[];
  readonly sums: readonly Count[]; // by event
  readonly pair: boolean; // two that are compared
}

export interface Count { readonly samples: number; readonly weight: number }

export interface StateRow extends Count { readonly state: string; readonly syscall: string }

export interface Chosen {
  readonly all: Count;
  readonly chosen: Count;
  readonly quality: Quality;
  readonly states: readonly StateRow[];
  readonly threadCount: Float64Array;
  readonly threadWeight: Float64Array;
  readonly before: { readonly all: Count; readonly chosen: Count } | null; // of two that are compared
}

interface CountsHead { all: Count; chosen: Count; quality: Quality; states: StateRow[] }

// What changed, so that not everything is drawn anew.
export type Change = "counts" | "look";

export class App {
  model!: Model;
  header!: ViewHeader;
  methods!: Methods;
  searchable: string[] = []; // by method
  state: State = initial();
  chosen!: Chosen;
  generation = 0; // of the counts
  busy = false;
  after!: Values; // by node of the unsplit tree, unless threads have roots of their own
  before: Values | null = null;
  private cells: { after: Cells; before: Cells } | null = null;
  private sumsAt = -1;
  private sumsNow!: Sums;
  private sumsBefore: Sums | null = null;
  private running: AbortController | null = null;
  private saved = "";
  hasStates = false; // threads were seen in other states than running
  onError: (message: string) => void = () => {};
  onChange: (c: Change) => void = () => {};
  onKey: (e: KeyboardEvent) => void = () => {};
  onLoad: () => void = () => {}; // another recording is there, and what is chosen of it

  constructor(readonly names: readonly string[]) {}

  private tell(c: Change): void {
    this.onChange(c);
  }

  get limits(): Limits {
    const h = this.header;
    return { threads: h.threads.length, events: h.events.length, kinds: h.kinds.length, states: h.states, end: h.end };
  }

  get unit(): string {
    return this.header.events[this.state.event]?.unit ?? "count";
  }

  path(question: string, query: URLSearchParams): string {
    const q = query.toString();
    return `${this.state.recording}/${question}${q ? `?${q}` : ""}`;
  }

  async load(n: number, hash: string): Promise<void> {
    const m = await ask<ViewHeader>(`${n}/tree`);
    const h = m.head;
    const kind = m.u8("kind");
    const { funcs, names } = named(h, m.u32("func"), kind);
    const none = new Int32Array(0);
    const cells: Cells = { n: 0, node: none, thread: none, event: none, count: new Float64Array(0), weight: new Float64Array(0) };
    const data: Data = {
      header: h, funcs, names, kind, tree: fromDepth(new Int32Array(m.u32("depth")), m.i32("sym")), line: m.i32("line"), lines: new Int32Array(m.u32("lines")),
      derived: m.u8("derived"), heuristic: m.u8("heuristic"), stitched: m.u8("stitched"), coarse: m.u8("coarse"), virtual: m.u8("virtual"), cells,
    };
    this.header = h;
    this.model = new Model(data);
    this.methods = methodsOf(m.i32("method"));
    this.searchable = Array.from(this.methods.symbol, (s) => this.model.searchable[s]);
    this.state = read(hash, this.limits);
    if (h.pair) this.state.split = "none";
    this.state.recording = n;
    this.saved = hash.replace(/^#/, "");
    document.title = `${h.pair ? h.name : h.title} · candid`;
    this.onChange = () => {};
    await this.refilter();
    if (!this.generation) return;
    this.onLoad();
  }

  // set changes the state; what chooses samples is asked for anew.
  set(change: Partial<State>): void {
    const before = this.asked();
    const side = this.state.before;
    Object.assign(this.state, change);
    if (this.header.pair) this.state.split = "none";
    if (this.state.before !== side && this.cells) {
      this.take();
      this.generation++;
    }
    this.save();
    if (this.asked() !== before) void this.refilter();
    else this.tell("look");
  }

  private asked(): string {
    return `${filters(this.state)}&${this.state.split}`;
  }

  // filters without some of them.
  query(without: readonly string[] = []): URLSearchParams {
    const q = filters(this.state);
    for (const w of without) q.delete(w);
    return q;
  }

  async refilter(): Promise<void> {
    this.running?.abort();
    const mine = (this.running = new AbortController());
    this.busy = true;
    const split = this.state.split !== "none";
    const q = this.query();
    if (split) q.set("split", "1");
    const side = (which: string): Promise<Message<CountsHead>> => {
      const p = new URLSearchParams(q);
      if (which) p.set("side", which);
      return ask<CountsHead>(this.path("counts", p), mine.signal);
    };
    try {
      const { pair } = this.header;
      const [m, first] = await Promise.all([side(pair ? "after" : ""), pair ? side("before") : null]);
      if (this.running !== mine) return;
      const cellsOf = (c: Message<CountsHead>): Cells => {
        const node = new Int32Array(c.u32("node"));
        const n = node.length;
        return {
          n, node, thread: c.has("thread") ? new Int32Array(c.u32("thread")) : new Int32Array(n),
          event: new Int32Array(n).fill(this.state.event), count: c.f64("count"), weight: c.f64("weight"),
        };
      };
      const threadCount = m.f64("threadCount"), threadWeight = m.f64("threadWeight");
      this.cells = null;
      if (first) {
        this.cells = { after: cellsOf(m), before: cellsOf(first) };
        const threads = new Uint8Array(this.header.threads.length).fill(1);
        this.after = addUp(this.model.data.tree, this.cells.after, this.state.event, threads);
        this.before = addUp(this.model.data.tree, this.cells.before, this.state.event, threads);
        // A thread is of one of the two.
        first.f64("threadCount").forEach((v, t) => (threadCount[t] += v));
        first.f64("threadWeight").forEach((v, t) => (threadWeight[t] += v));
        this.take();
      } else {
        this.model.take(cellsOf(m));
        this.model.show(this.state);
        this.after = this.model.values;
        this.before = null;
      }
      this.chosen = { ...m.head, threadCount, threadWeight, before: first && { all: first.head.all, chosen: first.head.chosen } };
      this.hasStates ||= m.head.states.some((s) => s.state !== "running" && s.state !== "unknown");
      this.generation++;
      this.busy = false;
      this.onError("");
      this.save();
      this.tell("counts");
    } catch (e) {
      if (this.running !== mine) return;
      this.busy = false;
      this.onError(e instanceof Error ? e.message : String(e));
    }
  }

  // take gives the flame graph the one of two that it shows.
  private take(): void {
    this.model.take(this.state.before ? this.cells!.before : this.cells!.after);
    this.model.show(this.state);
  }

  get sums(): Sums {
    if (this.sumsAt !== this.generation) {
      this.sumsAt = this.generation;
      const add = (v: Values): Sums => sums(this.model.tree, v, this.methods, this.model.data.kind, this.header.kinds.length);
      this.sumsNow = add(this.after);
      this.sumsBefore = this.before && add(this.before);
    }
    return this.sumsNow;
  }

  get baseSums(): Sums | null {
    return this.sums && this.sumsBefore;
  }

  // change is by how much a share of all went up, from before to after.
  change(after: number, before: number): number {
    const b = this.chosen.before;
    const share = (part: number, all: number): number => (all > 0 ? part / all : 0);
    return b ? share(after, this.chosen.chosen.weight) - share(before, b.chosen.weight) : 0;
  }

  calls(): Calls {
    return new Calls(this.model.tree, this.after, this.methods, this.before);
  }

  callers(method = -1): Callers {
    return new Callers(this.model.tree, this.after, this.methods, method, this.before);
  }

  nameOf(symbol: number): string {
    return this.model.names[symbol]?.full ?? this.model.rootName();
  }

  methodNamed(name: string): number {
    return name ? this.methods.symbol.findIndex((s) => this.model.names[s].full === name) : -1;
  }

  // pattern is what is searched for; null: nothing, or no expression.
  get pattern(): RegExp | null {
    return compile(this.state.query).re ?? null;
  }

  go(tab: Tab, change: Partial<State> = {}): void {
    this.set({ ...change, tab });
  }

  private save(): void {
    const hash = write(this.state);
    if (hash === this.saved) return;
    this.saved = hash;
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  }

  // moved is called when the address was changed from outside.
  async moved(): Promise<void> {
    const hash = location.hash.replace(/^#/, "");
    if (hash === this.saved) return;
    const next = read(hash, this.limits);
    if (next.recording !== this.state.recording) return this.load(Math.min(next.recording, this.names.length - 1), hash);
    this.saved = hash;
    this.state = next;
    await this.refilter();
  }
}
