// Shared by all tabs: the recording, the state, and the samples that the filters leave.

import { CHANGES } from "../flame/colors";
import { layout } from "../flame/layout";
import { compile } from "../flame/search";
import { fromDepth, type Cells, type Tree, type Values } from "../flame/tree";
import { began, commandLine } from "../page/format";
import { kindChoices, kindOf, ofKind } from "../page/kinds";
import { Model } from "../page/model";
import { firstOf, loaded, tallyOf, type Chosen, type CountsHead, type Loaded, type ThreadSums, type ViewHeader, type Wait } from "./answers";
import { Chance, type Tally } from "../flame/chance";
import { pairing, processOf, threadsOf, ThreadRows, type Match, type Pairing } from "./match";
import { sumsOf, type Methods, type Sums } from "./methods";
import type { Known } from "./rows";
import { filters, initial, plain, read, recordingOf, rewriting, rewritingOf, write, type Limits, type State, type Tab } from "./state";
import { nodeAt, wayOf } from "../flame/way";
import { ask, Grown, type Message } from "./wire";

// Place is a node of the tree, and the symbol of the thread or the process in which it is shown;
// -1: none.
export interface Place { readonly node: number; readonly group: number }

// Change says what changed, so that not everything is drawn anew.
export type Change = "counts" | "look";

export class App {
  model!: Model;
  header!: ViewHeader;
  methods!: Methods;
  private starts: Uint8Array = new Uint8Array(0); // by symbol: 1 for functions by which threads start
  searchable: string[] = []; // by method
  state: State = initial();
  chosen!: Chosen;
  generation = 0; // of the counts
  busy = false;
  after!: Values; // by node of the unsplit tree, unless threads have roots of their own
  before: Values | null = null;
  private cells: { after: Cells; before: Cells } | null = null;
  private cellsAt = -1; // the generation that they are of
  private sumsFor = ""; // the last request
  private sumsAre: Promise<{ now: Sums; before: Sums | null }> | null = null;
  private summing: AbortController | null = null;
  private running: AbortController | null = null;
  private saved = "";
  private following: AbortController | null = null;
  private asOf = 0; // when the header came
  private has = 0; // symbols of a recording that grows, none of which stands for a package
  private next: (Loaded & { shape: string; asOf: number }) | null = null; // loaded, but not shown yet
  private stale = false; // the last request was about an earlier state
  private shape = ""; // how the stacks are shown
  private ways: (string[] | null)[] | null = null; // to be found again: the zoomed node and the held ones
  built = false; // the page is built for a comparison
  steady = false; // the page changes because the recording grew, not because of the user
  held: { get(): number; set(node: number): void }[] = []; // nodes that are kept
  hasStates = false; // threads were seen in other states than running
  onError: (message: string) => void = () => {};
  onChange: (c: Change) => void = () => {};
  onKey: (e: KeyboardEvent) => void = () => {};
  onFound: () => void = () => {}; // a tab has learned what the search finds
  onLoad: () => void = () => {}; // another recording is loaded, with its selections

  constructor(readonly names: readonly string[]) {}

  private tell(c: Change): void {
    this.onChange(c);
  }

  get limits(): Limits {
    const h = this.header;
    return { served: this.names.length, threads: h.threads.length, events: h.events.length, first: firstOf(h), whole: h.whole, kinds: h.kinds.length, states: h.states, end: h.end };
  }

  get unit(): string {
    return this.header.events[this.state.event]?.unit ?? "count";
  }

  // eventName precedes an amount; empty if it would only say that it is one.
  get eventName(): string {
    const name = this.header.events[this.state.event]?.name ?? "";
    return name && name !== "samples" ? `${name} ` : "";
  }

  path(question: string, query: URLSearchParams): string {
    const { version } = this.next?.header ?? this.header;
    if (version) query.set("version", String(version));
    const q = query.toString();
    return `${this.served(this.state)}/${question}${q ? `?${q}` : ""}`;
  }

  // served is candid's name for a recording, or for two that are compared.
  private served(s: { readonly recording: number; readonly against: number }): string {
    return s.against >= 0 ? `${s.against}-${s.recording}` : String(s.recording);
  }

  async load(hash: string): Promise<void> {
    const n = this.served(recordingOf(hash, this.names.length));
    this.following?.abort();
    this.next = null;
    this.has = 0;
    // If the address asks for other stacks than were taken, that must be known first.
    const asked = new URLSearchParams(hash.replace(/^#/, ""));
    const early = rewriting({ ...initial(), ...rewritingOf(asked, false) });
    if (!/^(shown|fold)$/.test(asked.get("starts") ?? "")) early.set("starts", "usual");
    const other = (): void => {
      const { data } = this.next!;
      this.model = new Model(data);
      this.adopt();
    };
    await this.fetchTree(n, early);
    other();
    const h = this.header;
    this.state = read(hash, this.limits);
    this.shape = rewriting(this.state).toString();
    if (this.compared) this.state.split = "none";
    this.built = this.compared;
    this.saved = hash.replace(/^#/, "");
    document.title = `${h.pair ? h.name : commandLine(h.title)} · candid`;
    this.onChange = () => {};
    const { generation } = this;
    for (let tries = 0; ; tries++) {
      await this.refilter();
      if (this.generation !== generation) break;
      if (!this.stale || tries > 50) return;
      await this.fetchTree(n, rewriting(this.state)); // it has grown between the two requests
      other();
    }
    this.onLoad();
    void this.follow(n);
  }

  // fetchTree asks for the tree and what is known of the recording. For a growing recording only
  // new names are sent.
  private async fetchTree(n: string, shape: URLSearchParams, signal?: AbortSignal): Promise<void> {
    const q = new URLSearchParams(shape);
    if (this.has && plain(q)) q.set("symbols", String(this.has));
    const m = await ask<ViewHeader>(`${n}/tree?${q.toString()}`, signal);
    this.next = { ...loaded(m, { data: this.model?.data, methods: this.methods, starts: this.starts }), shape: shape.toString(), asOf: performance.now() };
  }

  // adopt shows the tree that was loaded last.
  private adopt(): void {
    const { next } = this;
    if (!next) return;
    this.next = null;
    this.header = next.header;
    this.asOf = next.asOf;
    this.has = next.header.growing && plain(new URLSearchParams(next.shape)) ? next.data.names.length : 0;
    if (this.model.data !== next.data) this.model.reset(next.data);
    this.methods = next.methods;
    this.starts = next.starts;
    this.searchable = Array.from(this.methods.symbol, (s) => this.model.searchable[s]);
    this.shape = next.shape;
  }

  // compared reports whether two recordings, or two stretches of time, are compared.
  get compared(): boolean {
    return this.header.pair || !!this.state.base;
  }

  // elapsed is how long a growing recording has been running, in ns.
  get elapsed(): number {
    return this.header.elapsed + (performance.now() - this.asOf) * 1e6;
  }

  // rowsOfThreads are the rows in which threads are shown.
  private get rowsOfThreads(): ThreadRows {
    if (this.threadRows?.header !== this.header) this.threadRows = new ThreadRows(this.header);
    return this.threadRows;
  }

  private threadRows: ThreadRows | null = null;

  get matches(): readonly Match[] {
    return this.rowsOfThreads.rows;
  }

  // alike are the threads that share a row with a thread.
  alike(t: number): readonly number[] {
    return this.rowsOfThreads.alike(t);
  }

  // matchName is the name of a row of threads.
  matchName(m: Match): string {
    if (!this.header.pair) return this.model.threadName(m.first);
    const n = Math.max(m.before.length, m.after.length);
    return `${this.threadLabel(m.first)}${n > 1 ? ` × ${n}` : ""}`;
  }

  threadLabel(t: number): string {
    const { name, os, since } = this.header.threads[t];
    return `${name || os || "thread"}${began(since)}`;
  }

  // pairing says what is compared over time; null: nothing is.
  get pairing(): Pairing | null {
    const { times } = this.state;
    return this.header.pair || (times && times !== "whole") ? pairing(this.header, this.state) : null;
  }

  // structure is what the page was built for: when it changes, the page is rebuilt.
  private structure(): string {
    const h = this.header;
    return JSON.stringify([h.events, h.processes.length > 1, h.kernelCPU.some((v) => v > 0), kindChoices(h.threads), h.growing, h.stopped, h.title]);
  }

  // follow keeps up with a recording that is still being made.
  private async follow(n: string): Promise<void> {
    const mine = (this.following = new AbortController());
    while (this.header.growing || this.header.stopped) {
      try {
        const m: Message<{ version: number; growing: boolean }> = await ask(`${n}/wait?version=${this.header.version}`, mine.signal);
        if (mine.signal.aborted) return;
        if (m.head.version === this.header.version) continue;
        const before = this.structure();
        await this.reshape(mine.signal, true);
        if (mine.signal.aborted) return;
        if (this.structure() !== before) this.onLoad();
      } catch (e) {
        if (mine.signal.aborted) return;
        this.onError(e instanceof Error ? e.message : String(e));
        return;
      }
    }
  }

  // reshape loads the tree anew; the zoomed and the selected nodes stay if they still exist.
  // steady: the content keeps its position on the page.
  private async reshape(signal?: AbortSignal, steady = false): Promise<void> {
    const held = this.waysTo();
    const kind = this.kindChosen, pid = this.processChosen;
    await this.fetchTree(this.served(this.state), rewriting(this.state), signal);
    if (signal?.aborted) return;
    const { state, header, next } = this;
    if (next && header.growing && pid >= 0 && pid === this.processChosen) state.threads = threadsOf(next.header, pid); // with those that have begun
    else if (next && header.growing && kind && kind === this.kindChosen) state.threads = ofKind(next.header.threads, kind);
    if (next && !header.sums[state.event]?.samples && state.event === firstOf(header)) state.event = firstOf(next.header); // nothing had happened yet
    this.ways = held;
    this.steady = steady;
    await this.refilter();
    this.steady = false;
  }

  // tree is the tree whose numbers nodes have.
  private get tree(): Tree {
    return this.state.split === "none" ? this.model.wholeTree(this.state.tiers) : this.model.tree;
  }

  // drawsCells reports whether the self of each node must be known: only the flame graph draws
  // that, and only it knows the nodes of threads.
  private get drawsCells(): boolean {
    return this.state.tab === "flame" || (this.state.split !== "none" && this.state.zoom > 0);
  }

  // ready reports whether the counts that the tab needs are known.
  get ready(): boolean {
    return !this.drawsCells || this.cellsAt === this.generation;
  }

  private nameKind(symbol: number): string {
    return `${this.state.tiers && symbol < this.model.symbols ? this.model.data.kind[symbol] : ""} ${this.nameOf(symbol)}`;
  }

  // waysTo are the paths to the zoomed node and to the held ones.
  private waysTo(): (string[] | null)[] {
    return [this.state.zoom, ...this.held.map((h) => h.get())].map((i) => (i > 0 ? wayOf(this.tree, (s) => this.nameKind(s), i) : i === 0 ? [] : null));
  }

  // setTiers gives a function one frame for each kind of code that it ran in, or one for all. The
  // zoomed and the selected nodes stay, as far as each is one frame.
  setTiers(tiers: boolean): void {
    if (tiers === this.state.tiers) return;
    const name = (s: number): string => this.nameOf(s);
    const ways = [this.state.zoom, ...this.held.map((h) => h.get())].map((i) => (i > 0 ? wayOf(this.tree, name, i) : i === 0 ? [] : null));
    this.state.tiers = tiers;
    if (this.drawsCells && this.cellsAt === this.generation) {
      if (this.cells) this.take();
      else {
        this.model.show({ ...this.state, zoom: 0 });
        this.after = this.model.values;
      }
      this.generation++;
      this.cellsAt = this.generation;
    }
    const [zoom, ...held] = ways.map((w) => this.at(name, w));
    this.state.zoom = Math.max(0, zoom);
    this.held.forEach((h, k) => h.set(held[k] ?? -1));
    this.save();
    this.tell("counts");
  }

  private at(name: (symbol: number) => string, way: readonly string[] | null): number {
    return way?.length === 0 ? 0 : way ? nodeAt(this.tree, name, this.starts, way) : -1;
  }

  // set changes the state and requests again what depends on the selected samples.
  set(change: Partial<State>): void {
    const before = this.asked();
    const side = this.state.before;
    Object.assign(this.state, change);
    if (this.compared) this.state.split = "none";
    if (this.state.before !== side && this.cells) {
      this.take();
      this.generation++;
      this.cellsAt = this.generation;
    }
    this.save();
    if ((this.next?.shape ?? this.shape) !== rewriting(this.state).toString()) void this.reshaped();
    else if (this.asked() !== before) void this.refilter();
    else {
      if (!this.ready && !this.busy) void this.refilter();
      this.tell("look");
    }
  }

  // reshaped updates the tree to the state.
  private async reshaped(): Promise<void> {
    this.running?.abort();
    this.reshaping?.abort();
    const mine = (this.reshaping = new AbortController());
    this.busy = true;
    const wanted = this.state.zoom;
    try {
      await this.reshape(mine.signal);
    } catch (e) {
      if (mine.signal.aborted) return;
      this.busy = false;
      this.state.zoom = wanted;
      this.onError(e instanceof Error ? e.message : String(e));
    }
  }

  private reshaping: AbortController | null = null;

  private asked(): string {
    return `${filters(this.state)}&${this.state.split}&${this.state.base}`;
  }

  // filters without some of them.
  query(without: readonly string[] = []): URLSearchParams {
    const q = filters(this.state);
    for (const w of without) q.delete(w);
    return q;
  }

  // processChosen is the process all of whose threads, and no others, are chosen; -1 if there is
  // none.
  get processChosen(): number {
    return processOf(this.header, this.state.threads);
  }

  // kindChosen is the kind of threads that is chosen; "" if there is none.
  get kindChosen(): string {
    return this.state.threads.size ? kindOf(this.header.threads, (t) => this.state.threads.has(t)) : "";
  }

  // threadSums requests the sum of each thread over the samples that some of the filters leave;
  // if two recordings are compared, for one of them.
  async threadSums(q: URLSearchParams, side: "before" | "after"): Promise<ThreadSums> {
    q.set("cells", "no");
    if (this.header.pair) q.set("side", side);
    const path = this.path("counts", q);
    let known = this.threadsOf.get(path);
    if (!known) {
      if (this.threadsOf.size > 3) this.threadsOf.clear();
      known = ask<CountsHead>(path).then((m) => ({ weight: m.f64("threadWeight"), samples: m.f64("threadCount"), tally: tallyOf(m.head) }));
      known.catch(() => this.threadsOf.delete(path));
      this.threadsOf.set(path, known);
    }
    return known;
  }

  private readonly threadsOf = new Map<string, Promise<ThreadSums>>(); // the last requests

  async refilter(): Promise<void> {
    this.running?.abort();
    const mine = (this.running = new AbortController());
    this.busy = true;
    const split = this.state.split !== "none";
    const q = this.query();
    this.stale = false;
    const drawn = this.drawsCells;
    if (!drawn) q.set("cells", "no");
    else if (split) q.set("split", "1");
    const { pair } = this.header;
    const [now, before] = this.sides("counts", q);
    try {
      if (this.state.tab === "methods") this.sums().catch(() => {}); // the tab that shows it reports the error
      const [m, first] = await Promise.all([ask<CountsHead>(now, mine.signal), before ? ask<CountsHead>(before, mine.signal) : null]);
      if (this.running !== mine) return;
      this.adopt();
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
        this.threadBefore = first.f64("threadWeight");
        if (pair) { // A thread belongs to one of the two.
          first.f64("threadCount").forEach((v, t) => (threadCount[t] += v));
          this.threadBefore.forEach((v, t) => (threadWeight[t] += v));
        }
      }
      if (!drawn) {
        this.before = null;
        this.blank();
      } else if (first) {
        this.cells = { after: cellsOf(m), before: cellsOf(first) };
        this.take();
      } else {
        this.model.take(cellsOf(m));
        this.model.show(this.state);
        this.after = this.model.values;
        this.before = null;
      }
      this.restore(drawn);
      this.chosen = { ...m.head, threadCount, threadWeight, before: first && first.head };
      this.tallies = first && [tallyOf(first.head), tallyOf(m.head)];
      this.chance = this.tallies && new Chance(...this.tallies);
      this.hasStates ||= m.head.states.some((s) => s.state !== "running" && s.state !== "unknown");
      this.generation++;
      if (drawn) this.cellsAt = this.generation;
      this.busy = false;
      this.onError("");
      this.save();
      const compared = this.compared;
      if (compared !== this.built) {
        this.built = compared;
        this.onLoad(); // the columns have changed
      }
      else this.tell("counts");
      if (!this.ready) void this.refilter(); // another tab was chosen meanwhile
    } catch (e) {
      if (this.running !== mine) return;
      if ((this.stale = e instanceof Grown)) return; // the matching tree follows at once
      this.busy = false;
      this.onError(e instanceof Error ? e.message : String(e));
    }
  }

  threadBefore: Float64Array = new Float64Array(0); // weight by thread on the side that is compared with

  // restore finds the zoomed and the selected nodes again.
  private restore(drawn: boolean): void {
    if (!this.ways) return;
    const [zoom, ...held] = this.ways.map((w) => this.at((s) => this.nameKind(s), w));
    this.ways = null;
    this.state.zoom = zoom > 0 && (!drawn || this.model.values.total[zoom] > 0) ? zoom : 0;
    this.held.forEach((h, k) => h.set(k < held.length ? held[k] : -1));
  }

  // blank leaves the flame graph empty until it is visible.
  private blank(): void {
    const { model } = this;
    model.tree = fromDepth(Int32Array.of(0), Int32Array.of(-1));
    model.values = { self: new Float64Array(1), total: new Float64Array(1), count: new Float64Array(1), samples: new Float64Array(1) };
    model.layout = layout(model.tree, model.values.total);
  }

  // take gives the flame graph the one of the two that it shows.
  private take(): void {
    const { after, before } = this.cells!;
    const { event, tiers } = this.state;
    this.after = this.model.sum(after, event, tiers);
    this.before = this.model.sum(before, event, tiers);
    this.model.take(this.state.before ? before : after);
    this.model.show(this.state);
  }

  // sums requests the sums of each method over what is shown; it cancels the previous request.
  sums(): Promise<{ now: Sums; before: Sums | null }> {
    const [now, before] = this.sides("methods", this.query());
    const asked = `${now} ${before}`;
    if (asked !== this.sumsFor) {
      this.summing?.abort();
      const mine = (this.summing = new AbortController());
      const { n } = this.next?.methods ?? this.methods;
      const get = async (path: string): Promise<Sums> => sumsOf(await ask(path, mine.signal), n);
      this.sumsFor = asked;
      this.sumsAre = Promise.all([get(now), before ? get(before) : null]).then(([now, before]) => ({ now, before }));
      this.sumsAre.catch(() => asked === this.sumsFor && (this.sumsFor = ""));
    }
    return this.sumsAre!;
  }

  // waits are the longest waits of what is shown, if most of it is waits; candid has the rule.
  async waits(): Promise<readonly Wait[]> {
    return (await ask<{ waits: Wait[] }>(this.path("waits", this.query()))).head.waits;
  }

  // sides are the paths of a request about what is shown and, if two are compared, about what it
  // is compared with.
  private sides(question: string, q: URLSearchParams): [string, string | null] {
    const { pair } = this.header;
    const { base } = this.state;
    const of = (which: string): string => {
      const p = new URLSearchParams(q);
      if (pair) p.set("side", which);
      else if (base && which === "before") {
        p.set("from", String(base[0]));
        p.set("to", String(base[1]));
      }
      return this.path(question, p);
    };
    return [of("after"), pair || base ? of("before") : null];
  }

  // change is by how much a share of the whole rose, from before to after.
  change(after: number, before: number): number {
    const b = this.chosen.before;
    const share = (part: number, all: number): number => (all > 0 ? part / all : 0);
    return b ? share(after, this.chosen.chosen.weight) - share(before, b.chosen.weight) : 0;
  }

  tallies: readonly [Tally, Tally] | null = null; // of two that are compared: before and after
  private chance: Chance | null = null;

  // byChance reports whether chance alone explains the difference of a part.
  byChance(after: number, before: number): boolean {
    return this.chance?.explains(before, after) ?? false;
  }

  // changes is, for each node of a tree, by which part of itself it rose or fell, beyond chance.
  changes(after: Float64Array, before: Float64Array): Uint8Array | null {
    if (!this.chosen.before) return null;
    const [a, b] = [this.chosen.chosen.weight || 1, this.chosen.before.chosen.weight || 1];
    const out = new Uint8Array(after.length);
    for (let i = 0; i < out.length; i++) {
      const [x, y] = [after[i] / a, before[i] / b];
      const most = Math.max(x, y);
      out[i] = Math.round(((most > 0 && !this.byChance(after[i], before[i]) ? (x - y) / most : 0) + 1) * ((CHANGES - 1) / 2));
    }
    return out;
  }

  private knownNow: Known | null = null;

  // names and methods of the recording as it is now.
  get naming(): Known {
    const { names } = this.model;
    if (this.knownNow?.names !== names || this.knownNow.methods !== this.methods) this.knownNow = { names, methods: this.methods, threads: this.header.threads.length };
    return this.knownNow;
  }

  nameOf(symbol: number): string {
    return this.model.names[symbol]?.full ?? this.model.rootName();
  }

  methodNamed(name: string): number {
    return name ? this.methods.symbol.findIndex((s) => this.model.names[s].full === name) : -1;
  }

  reveal: Place | null = null; // the node that the call tree is to show

  // heaviest is the heaviest node of a method, -1 if it has none.
  async heaviest(method: number): Promise<number> {
    const { now, before } = await this.sums();
    return now.node[method] >= 0 ? now.node[method] : (before?.node[method] ?? -1);
  }

  known: { generation: number; sums: Sums } | null = null; // the sums of each method, once they were requested

  // ownOf is the self of the whole method of a symbol, 0 while it is not known.
  ownOf(symbol: number): number {
    const method = this.methods.of[symbol] ?? -1;
    return method >= 0 && this.known?.generation === this.generation ? this.known.sums.self[method] : 0;
  }

  // pattern is the expression of the search; null: no search, or not a valid expression.
  get pattern(): RegExp | null {
    return compile(this.state.query).re ?? null;
  }

  go(tab: Tab, change: Partial<State> = {}): void {
    this.set({ ...change, tab });
  }

  private save(): void {
    const hash = write(this.state, this.limits);
    if (hash === this.saved) return;
    this.saved = hash;
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  }

  // moved is called when the address was changed from outside.
  async moved(): Promise<void> {
    const hash = location.hash.replace(/^#/, "");
    if (hash === this.saved) return;
    const next = read(hash, this.limits);
    if (this.served(next) !== this.served(this.state)) {
      try {
        return await this.load(hash);
      } catch (e) { // the page stays as it was
        history.replaceState(null, "", `#${this.saved}`);
        void this.follow(this.served(this.state));
        this.onLoad();
        return this.onError(e instanceof Error ? e.message : String(e));
      }
    }
    this.saved = hash;
    this.state = next;
    if (this.shape !== rewriting(next).toString()) await this.reshaped();
    else await this.refilter();
  }
}
