// What all tabs share: the recording, the state, and what the filters chose.

import { named, type Data, type Header, type Quality } from "../data";
import { compile } from "../flame/search";
import { fromDepth, type Cells } from "../flame/tree";
import { Model } from "../page/model";
import { Calls, Callers, methodsOf, sums, type Methods, type Sums } from "./rows";
import { filters, initial, read, write, type Limits, type State, type Tab } from "./state";
import { ask } from "./wire";

export interface ViewHeader extends Header {
  readonly name: string;
  readonly timed: boolean;
  readonly end: number; // ns
  readonly states: readonly string[];
  readonly threadKinds: readonly string[];
  readonly kernelCPU: readonly number[];
  readonly sums: readonly Count[]; // by event
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
  private sumsAt = -1;
  private sumsNow!: Sums;
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
    this.state.recording = n;
    this.saved = hash.replace(/^#/, "");
    document.title = `${h.title} · candid`;
    this.onChange = () => {};
    await this.refilter();
    if (!this.generation) return;
    this.onLoad();
  }

  // set changes the state; what chooses samples is asked for anew.
  set(change: Partial<State>): void {
    const before = this.asked();
    Object.assign(this.state, change);
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
    try {
      const m = await ask<CountsHead>(this.path("counts", q), mine.signal);
      if (this.running !== mine) return;
      const node = new Int32Array(m.u32("node"));
      const n = node.length;
      this.model.take({
        n, node, thread: m.has("thread") ? new Int32Array(m.u32("thread")) : new Int32Array(n),
        event: new Int32Array(n).fill(this.state.event), count: m.f64("count"), weight: m.f64("weight"),
      });
      this.model.show(this.state);
      this.chosen = { ...m.head, threadCount: m.f64("threadCount"), threadWeight: m.f64("threadWeight") };
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

  get sums(): Sums {
    if (this.sumsAt !== this.generation) {
      this.sumsAt = this.generation;
      this.sumsNow = sums(this.model.tree, this.model.values, this.methods, this.model.data.kind, this.header.kinds.length);
    }
    return this.sumsNow;
  }

  calls(): Calls {
    return new Calls(this.model.tree, this.model.values, this.methods);
  }

  callers(method = -1): Callers {
    return new Callers(this.model.tree, this.model.values, this.methods, method);
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
