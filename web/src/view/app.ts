// Shared by all tabs: the recording, the state, and the samples that the filters leave.

import { compile } from "../flame/search";
import type { Cells, Tree, Values } from "../flame/tree";
import { commandLine } from "../page/format";
import { ofKind } from "../page/kinds";
import { Model } from "../page/model";
import { cellsOf, firstOf, limitsOf, loaded, tallyOf, type Chosen, type CountsHead, type Loaded, type ViewHeader, type Wait } from "./answers";
import { Follower } from "./follow";
import { Difference } from "./difference";
import { HeldNodes } from "./held";
import { pairing, threadsOf, type Pairing } from "./match";
import type { Methods } from "./methods";
import { MethodSums } from "./methodsums";
import { Questions, served } from "./questions";
import type { Known } from "./rows";
import { initial, plain, read, recordingOf, rewriting, rewritingOf, write, type Limits, type State, type Tab } from "./state";
import { ThreadsShown } from "./threadrows";
import { ask, Grown } from "./wire";

// Place is a node of the tree, and the symbol of the thread or the process in which it is shown;
// -1: none.
export interface Place { readonly node: number; readonly group: number }

// Change says what changed, so that not everything is drawn anew.
export type Change = "counts" | "look";

export class App {
  model!: Model;
  header!: ViewHeader;
  methods!: Methods;
  starts: Uint8Array = new Uint8Array(0); // by symbol: 1 for functions by which threads start
  searchable: string[] = []; // by method
  state: State = initial();
  chosen!: Chosen;
  generation = 0; // of the counts
  busy = false;
  after!: Values; // by node of the unsplit tree, unless threads have roots of their own
  before: Values | null = null;
  private cells: { after: Cells; before: Cells } | null = null;
  private cellsAt = -1; // the generation that they are of
  private running: AbortController | null = null;
  private saved = "";
  private asOf = 0; // when the header came
  private has = 0; // symbols of a recording that grows, none of which stands for a package
  private next: (Loaded & { shape: string; asOf: number }) | null = null; // loaded, but not shown yet
  private stale = false; // the last request was about an earlier state
  private shape = ""; // how the stacks are shown
  private ways: (string[] | null)[] | null = null; // to be found again: the zoomed node and the held ones
  built = false; // the page is built for a comparison
  steady = false; // the page changes because the recording grew, not because of the user
  hasStates = false; // threads were seen in other states than running
  onError: (message: string) => void = () => {};
  onChange: (c: Change) => void = () => {};
  onKey: (e: KeyboardEvent) => void = () => {};
  onFound: () => void = () => {}; // a tab has learned what the search finds
  onLoad: () => void = () => {}; // another recording is loaded, with its selections

  readonly questions = new Questions(this);
  private readonly follower = new Follower(this);
  readonly threads = new ThreadsShown(this);
  readonly difference = new Difference(this);
  readonly sums = new MethodSums(this);
  readonly held = new HeldNodes(this);

  constructor(readonly names: readonly string[]) {}

  get limits(): Limits {
    return limitsOf(this.header, this.names.length);
  }

  get unit(): string {
    return this.header.events[this.state.event]?.unit ?? "count";
  }

  // eventName precedes an amount; empty if it would only say that it is one.
  get eventName(): string {
    const name = this.header.events[this.state.event]?.name ?? "";
    return name && name !== "samples" ? `${name} ` : "";
  }

  async load(hash: string): Promise<void> {
    const n = served(recordingOf(hash, this.names.length));
    this.follower.stop();
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
    void this.follower.follow(n);
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

  // latest is the recording as it was loaded last, perhaps not shown yet.
  get latest(): { readonly header: ViewHeader; readonly methods: Methods } {
    return this.next ?? this;
  }

  // compared reports whether two recordings, or two stretches of time, are compared.
  get compared(): boolean {
    return this.header.pair || !!this.state.base;
  }

  // elapsed is how long a growing recording has been running, in ns.
  get elapsed(): number {
    return this.header.elapsed + (performance.now() - this.asOf) * 1e6;
  }

  // pairing says what is compared over time; null: nothing is.
  get pairing(): Pairing | null {
    const { times } = this.state;
    return this.header.pair || (times && times !== "whole") ? pairing(this.header, this.state) : null;
  }

  // reshape loads the tree anew; the zoomed and the selected nodes stay if they still exist.
  // steady: the content keeps its position on the page.
  async reshape(signal?: AbortSignal, steady = false): Promise<void> {
    const held = this.held.ways(this.nameKind);
    const kind = this.threads.kind, pid = this.threads.process;
    await this.fetchTree(served(this.state), rewriting(this.state), signal);
    if (signal?.aborted) return;
    const { state, header, next } = this;
    if (next && header.growing && pid >= 0 && pid === this.threads.process) state.threads = threadsOf(next.header, pid); // with those that have begun
    else if (next && header.growing && kind && kind === this.threads.kind) state.threads = ofKind(next.header.threads, kind);
    if (next && !header.sums[state.event]?.samples && state.event === firstOf(header)) state.event = firstOf(next.header); // nothing had happened yet
    this.ways = held;
    this.steady = steady;
    await this.refilter();
    this.steady = false;
  }

  // tree is the tree whose numbers nodes have.
  get tree(): Tree {
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

  private readonly nameKind = (symbol: number): string => `${this.state.tiers && symbol < this.model.symbols ? this.model.data.kind[symbol] : ""} ${this.nameOf(symbol)}`;

  // setTiers gives a function one frame for each kind of code that it ran in, or one for all. The
  // zoomed and the selected nodes stay, as far as each is one frame.
  setTiers(tiers: boolean): void {
    if (tiers === this.state.tiers) return;
    const name = (s: number): string => this.nameOf(s);
    const ways = this.held.ways(name);
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
    this.state.zoom = Math.max(0, this.held.find(ways, name));
    this.save();
    this.onChange("counts");
  }

  // set changes the state and requests again what depends on the selected samples.
  set(change: Partial<State>): void {
    const before = this.questions.counted;
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
    else if (this.questions.counted !== before) void this.refilter();
    else {
      if (!this.ready && !this.busy) void this.refilter();
      this.onChange("look");
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

  async refilter(): Promise<void> {
    this.running?.abort();
    const mine = (this.running = new AbortController());
    this.busy = true;
    const split = this.state.split !== "none";
    const q = this.questions.query();
    this.stale = false;
    const drawn = this.drawsCells;
    if (!drawn) q.set("cells", "no");
    else if (split) q.set("split", "1");
    const { pair } = this.header;
    const [now, before] = this.questions.sides("counts", q);
    try {
      if (this.state.tab === "methods") this.sums.ask().catch(() => {}); // the tab that shows it reports the error
      const [m, first] = await Promise.all([ask<CountsHead>(now, mine.signal), before ? ask<CountsHead>(before, mine.signal) : null]);
      if (this.running !== mine) return;
      this.adopt();
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
        this.model.clear();
      } else if (first) {
        this.cells = { after: cellsOf(m, this.state.event), before: cellsOf(first, this.state.event) };
        this.take();
      } else {
        this.model.take(cellsOf(m, this.state.event));
        this.model.show(this.state);
        this.after = this.model.values;
        this.before = null;
      }
      this.restore(drawn);
      this.chosen = { ...m.head, threadCount, threadWeight, before: first && first.head };
      this.difference.set(first && [tallyOf(first.head), tallyOf(m.head)]);
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
      else this.onChange("counts");
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
    const zoom = this.held.find(this.ways, this.nameKind);
    this.ways = null;
    this.state.zoom = zoom > 0 && (!drawn || this.model.values.total[zoom] > 0) ? zoom : 0;
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

  // waits are the longest waits of what is shown, if most of it is waits; candid has the rule.
  async waits(): Promise<readonly Wait[]> {
    return (await ask<{ waits: Wait[] }>(this.questions.path("waits", this.questions.query()))).head.waits;
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
    if (served(next) !== served(this.state)) {
      try {
        return await this.load(hash);
      } catch (e) { // the page stays as it was
        history.replaceState(null, "", `#${this.saved}`);
        void this.follower.follow(served(this.state));
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
