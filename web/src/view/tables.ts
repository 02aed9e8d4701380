// The tabs that are tables of methods: the list, the call tree, the callers.

import { el, segmented } from "../page/dom";
import { provenance, ROUGH } from "../page/detail";
import { count, percent, value } from "../page/format";
import type { App, Place } from "./app";
import type { Cell } from "./cells";
import { Grid, type ColumnSpec } from "./grid";
import type { Menu } from "./menu";
import { COARSE, GUESSED, type Methods, type Sums } from "./methods";
import type { Pane } from "./pane";
import { goPattern } from "./bar";
import { Sandwich } from "./sandwich";
import { keyOf, MOST, OpenRows, Rows, type Opened } from "./rows";
import { ask, Grown, isAborted } from "./wire";

// nameCell is a name with the package dimmed, and a mark of its kind of code.
export function nameCell(app: App, symbol: number, kind: number, remark = 0): Cell {
  const n = app.model.names[symbol];
  const f = app.model.data.funcs[symbol];
  const own = symbol < app.model.symbols;
  return {
    kind: "name", title: n.full + (f?.module ? `\n${f.module}` : "") + (f?.file ? `\n${f.file}` : ""), swatch: own ? `swatch kind-${app.model.colors[kind] ?? 0}` : "swatch", of: own ? app.header.kinds[kind] : "",
    before: n.full.slice(0, n.short), name: n.full.slice(n.short, n.end), after: n.full.slice(n.end), remark: REMARK[remark], why: WHY[remark],
  };
}

// The reasons why a row is less certain than it looks, in the words of reports.
const REMARK = ["", "(guessed) ", "(coarse) "];
const WHY = ["", "By frame pointers or a search of the stack, which can be wrong", ROUGH[0].toUpperCase() + ROUGH.slice(1)];

// Remarks is the line under a table that explains the marks of its rows.
class Remarks {
  readonly root = el("p", { class: "remarks soft", hidden: true });
  private shown = "";

  tell(guessed: boolean, coarse: boolean, compared: boolean, first = 0): void {
    const text = [first ? `Only the first ${count(first)} rows are shown: close some, or filter.` : "", compared ? `${CHANCE}: two recordings of one program differ as much more often than once in 370 times.` : "", guessed ? "(guessed): by frame pointers or a search of the stack, which can be wrong." : "", coarse ? `(coarse): ${ROUGH}` : ""].filter(Boolean).join(" ");
    if (text === this.shown) return;
    this.root.textContent = this.shown = text;
    this.root.hidden = !text;
  }
}

// points is a change of a share, in percentage points.
export function points(d: number): string {
  const p = 100 * d;
  if (Math.abs(p) < 0.005) return p === 0 ? "±0" : p > 0 ? "+ < 0.01" : "− < 0.01";
  return `${p > 0 ? "+" : "−"}${Math.abs(p).toFixed(2)}`;
}

// delta is a change, in its colour; one that chance explains is grey and marked as in reports.
export function delta(d: number, chance = false): Cell {
  return chance && d !== 0 ? { kind: "marked", class: "soft", text: `~ ${points(d)}` } : { kind: "marked", class: d > 0 ? "more" : d < 0 ? "less" : "soft", text: points(d) };
}

// changed is the delta of a part of the whole.
function changed(app: App, after: number, before: number): Cell {
  return delta(app.change(after, before), app.byChance(after, before));
}

// CHANCE explains the mark.
export const CHANCE = "~ and grey: chance explains the difference";

// known is everything known of a method at a place of the tree: the same as the flame graph says
// of a frame.
function known(app: App, symbol: number, node: number, self: number, total: number): string[] {
  const { data } = app.model;
  const f = data.funcs[symbol];
  const all = app.chosen.chosen.weight;
  const own = symbol < app.methods.of.length && app.methods.of[symbol] >= 0;
  const line = node > 0 ? data.line[node] : 0;
  return [app.nameOf(symbol),
    ...(own ? [app.header.kinds[data.kind[symbol]], node > 0 ? provenance(app.model, node).join(", ") : "", f.module, f.file ? (line ? `${f.file}:${line}` : f.file) : "", f.signature] : []),
    `self ${value(self, app.unit)} · ${percent(self, all)}`, `total ${value(total, app.unit)} · ${percent(total, all)}`];
}

// gauge is a share as a number over a bar.
export function gauge(part: number, all: number, of = all): Cell {
  return { kind: "gauge", width: of > 0 ? Math.max(0, Math.min(100, (100 * part) / of)) : 0, text: percent(part, all) };
}

const NUMBERS: ColumnSpec[] = [
  { id: "self", label: "Self", title: "In the method's own code, as a share of what is shown", numeric: true, sortable: true, width: "6.5rem" },
  { id: "selfValue", label: "", numeric: true, width: "5.5rem", spare: true },
  { id: "total", label: "Total", title: "In it and in what it calls; a stack counts once", numeric: true, sortable: true, width: "6.5rem" },
  { id: "totalValue", label: "", numeric: true, width: "5.5rem", spare: true },
  { id: "samples", label: "Samples", title: "Total, in samples", numeric: true, sortable: true, width: "5.5rem", spare: true },
];
const CHANGE: ColumnSpec[] = [
  { id: "selfChange", label: "Self ±", title: "By how many percentage points its share went up or down, in its own code", numeric: true, sortable: true, width: "5.5rem" },
  { id: "selfBefore", label: "Before", numeric: true, width: "5rem", spare: true },
  { id: "self", label: "After", numeric: true, sortable: true, width: "5rem", spare: true },
  { id: "totalChange", label: "Total ±", title: "By how many percentage points its share went up or down, with what it calls", numeric: true, sortable: true, width: "5.5rem" },
  { id: "totalBefore", label: "Before", numeric: true, width: "5rem", spare: true },
  { id: "total", label: "After", numeric: true, sortable: true, width: "5rem", spare: true },
];
const TREE_NUMBERS = NUMBERS.map((c) => ({ ...c, sortable: false, spare: c.spare || c.id === "self" }));

export class MethodsPane implements Pane {
  readonly root: HTMLElement;
  private readonly grid: Grid;
  private readonly remarks = new Remarks();
  private order: number[] = []; // methods
  private by: "self" | "total" | "samples" | "name" | "selfChange" | "totalChange";
  private descending = true;
  private mostSelf = 0; // the maximum that the bars are relative to: the numbers stay shares of everything shown
  private mostTotal = 0;
  private now: Sums | null = null; // null: not known yet
  private before: Sums | null = null;
  private asking: object | null = null;
  private of: Methods | null = null; // the methods by which they are numbered
  private rankedFor: Methods | null = null;
  private rank: Int32Array = new Int32Array(0);

  constructor(private readonly app: App, menu: Menu) {
    const symbol = (i: number): number => app.methods.symbol[this.order[i]];
    this.by = app.compared ? "selfChange" : "self";
    this.grid = new Grid({
      label: "Methods", empty: "No method is left: no sample passes the filters, or the search finds nothing.",
      waiting: () => this.now === null,
      columns: [...(app.compared ? CHANGE : NUMBERS), { id: "name", label: "Method", sortable: true, width: "minmax(16rem, 3fr)" }, { id: "module", label: "Module", width: "minmax(4rem, 1fr)", spare: true }, { id: "file", label: "File", width: "minmax(4rem, 1fr)", spare: true }],
      count: () => this.order.length,
      row: (i) => {
        const m = this.order[i];
        const s = this.now!;
        const f = app.model.data.funcs[app.methods.symbol[m]];
        const all = app.chosen.chosen.weight;
        const b = this.before;
        if (b && app.chosen.before) {
          const was = app.chosen.before.chosen.weight;
          const kind = s.samples[m] > 0 ? s.kind[m] : b.kind[m];
          return { cells: [
            changed(app, s.self[m], b.self[m]), percent(b.self[m], was), percent(s.self[m], all), changed(app, s.total[m], b.total[m]), percent(b.total[m], was), percent(s.total[m], all),
            nameCell(app, app.methods.symbol[m], kind, s.samples[m] > 0 ? s.remark[m] : b.remark[m]), f.module, f.file,
          ] };
        }
        return { cells: [
          gauge(s.self[m], all, this.mostSelf), value(s.self[m], app.unit), gauge(s.total[m], all, this.mostTotal), value(s.total[m], app.unit), count(s.samples[m]),
          nameCell(app, app.methods.symbol[m], s.kind[m], s.remark[m]), f.module, f.file,
        ] };
      },
      detail: (i) => {
        const m = this.order[i];
        const s = this.now!;
        const node = s.node[m];
        return known(app, node > 0 ? app.model.data.tree.sym[node] : symbol(i), node, s.self[m], s.total[m]);
      },
      act: (i) => app.go("callers", { of: app.nameOf(symbol(i)) }),
      menu: (i, x, y) => menu.open(symbol(i), x, y),
      sort: (id) => {
        this.descending = id === this.by ? !this.descending : id !== "name";
        this.by = id as typeof this.by;
        if (this.now) this.fill(true, false);
      },
    });
    this.root = el("div", { class: "pane" }, this.grid.root, this.remarks.root);
  }

  // ranks are the positions of the methods by name: comparing names takes longer than the rest of
  // sorting.
  private ranks(): Int32Array {
    const { methods } = this.app;
    if (this.rankedFor !== methods) {
      this.rankedFor = methods;
      const names = Array.from(methods.symbol, (s) => this.app.nameOf(s));
      const order = Array.from(names, (_, m) => m).sort((a, b) => (names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : a - b));
      this.rank = new Int32Array(order.length);
      order.forEach((m, place) => (this.rank[m] = place));
    }
    return this.rank;
  }

  // busy reports that the content is not yet that of the chosen samples.
  get busy(): boolean {
    return this.asking !== null;
  }

  update(fresh: boolean): void {
    if (fresh || !this.now) void this.ask();
    else if (!this.asking) this.fill(false, this.app.steady);
  }

  // ask requests the sums from candid, and fills the table with them.
  private async ask(): Promise<void> {
    const { app } = this;
    const { generation, steady } = app;
    const mine = (this.asking = {});
    if (!steady && this.of !== app.methods) [this.now, this.order] = [null, []]; // they were numbered differently
    this.of = app.methods;
    try {
      const { now, before } = await app.sums();
      if (this.asking !== mine) return;
      this.asking = null;
      if (generation !== app.generation) return; // a new request follows when it is visible
      [this.now, this.before] = [now, before];
      this.fill(true, steady);
    } catch (e) {
      if (this.asking !== mine) return;
      this.asking = null;
      if (!(e instanceof Grown) && !isAborted(e)) app.onError(e instanceof Error ? e.message : String(e)); // otherwise the matching answer follows at once
    }
  }

  // next goes from row to row: the list has only methods that the search finds.
  next(dir: -1 | 1): boolean {
    return this.grid.step(dir, () => true);
  }

  found(): string {
    const n = this.order.length;
    return !this.app.pattern || !this.now ? "" : n === 0 ? "no match" : `${count(n)} method${n === 1 ? "" : "s"}`;
  }

  private fill(fresh: boolean, steady: boolean): void {
    const { app } = this;
    const s = this.now!;
    const re = app.pattern;
    const selected = this.order[this.grid.selected] ?? -1;
    this.order = [];
    const base = this.before;
    this.mostSelf = s.self.reduce((a, b) => Math.max(a, b), 0);
    this.mostTotal = s.total.reduce((a, b) => Math.max(a, b), 0);
    for (let m = 0; m < app.methods.n; m++) if ((s.samples[m] > 0 || (base && base.samples[m] > 0)) && (!re || re.test(app.searchable[m]))) this.order.push(m);
    const rank = this.ranks();
    const name = (a: number, b: number): number => rank[a] - rank[b];
    const change = (after: Float64Array, before: Float64Array): Float64Array => after.map((v, m) => Math.abs(app.change(v, before[m])));
    const keys = base && this.by === "selfChange" ? [change(s.self, base.self)] : base && this.by === "totalChange" ? [change(s.total, base.total)] : this.by === "self" ? [s.self, s.count, s.total] : this.by === "total" ? [s.total, s.samples, s.self] : [s.samples];
    this.order.sort(this.by === "name" ? name : (a, b) => {
      for (const k of keys) if (k[a] !== k[b]) return k[b] - k[a];
      return name(a, b);
    });
    if (this.descending === (this.by === "name")) this.order.reverse(); // names come from a to z, numbers from the largest
    this.grid.sorted(this.by, this.descending);
    const any = (remark: number): boolean => this.order.some((m) => (s.samples[m] > 0 ? s : base!).remark[m] === remark);
    this.remarks.tell(any(GUESSED), any(COARSE), !!base);
    if (steady) this.grid.selected = this.order.indexOf(selected);
    this.grid.refresh(fresh && !steady);
    app.onFound();
  }

  focus(): void {
    this.grid.focus();
  }
}

// FIRST is how many rows are requested at first: scrolling to the last one requests more.
const FIRST = 10_000, LAST = 1 << 18;

// TreePane is a table of rows that open.
abstract class TreePane implements Pane {
  readonly root: HTMLElement;
  protected readonly grid: Grid;
  private readonly remarks = new Remarks();
  protected rows: Rows | null = null; // null: not known yet
  private all: Pick<App["chosen"], "chosen" | "before">; // the total that the rows are shares of
  private running: AbortController | null = null;
  private unfolding = new Set<Opened>(); // that have been opened, but whose children are not known yet
  private most = FIRST;
  private wanted: Place | null = null; // the place to be shown
  private fresh = true; // the rows are of other samples than those that were requested

  constructor(protected readonly app: App, menu: Menu, label: string, firstColumn: string, ...above: HTMLElement[]) {
    this.all = app.chosen;
    this.grid = new Grid({
      label, empty: "Nothing is left: no sample passes the filters.",
      waiting: () => this.rows === null,
      columns: [{ id: "name", label: firstColumn, width: "minmax(16rem, 1fr)" }, ...this.columns()],
      count: () => this.rows?.n ?? 0,
      row: (i) => {
        const r = this.rows!;
        const s = r.symbol[i];
        if (r.more && i === r.n - 1) this.further();
        return { level: r.depth[i], open: r.leaf(i) ? null : r.open(i), cells: [nameCell(app, s, app.model.data.kind[s] ?? 0, r.remark[i]), ...this.numbers(r, i)] };
      },
      toggle: (i, open) => this.toggle(i, open),
      detail: (i) => {
        const r = this.rows!;
        return known(app, r.symbol[i], r.place[i], r.self[i], r.total[i]);
      },
      act: (i) => app.go("callers", { of: this.isMethod(i) ? this.rows!.name(i) : "" }),
      menu: (i, x, y) => menu.open(this.rows!.symbol[i], x, y, this.stack(this.names(i)), { node: this.place(i), group: this.group(i) }),
    });
    this.root = el("div", { class: "pane" }, ...above, this.grid.root, this.remarks.root);
  }

  // group is the symbol of the thread or the process that a row is below, -1 if there is none.
  private group(i: number): number {
    const outermost = this.rows!.symbol[this.rows!.way(i)[0]];
    return outermost >= this.app.model.symbols ? outermost : -1;
  }

  protected isMethod(i: number): boolean {
    return keyOf(this.app.methods, this.rows!.symbol[i]) >= 0;
  }

  protected columns(): ColumnSpec[] {
    return this.app.compared ? CHANGE.slice(3).map((c) => ({ ...c, sortable: false })) : TREE_NUMBERS;
  }

  protected numbers(r: Rows, i: number): Cell[] {
    const all = this.all.chosen.weight;
    const b = this.all.before;
    if (r.before && b) return [changed(this.app, r.total[i], r.before[i]), percent(r.before[i], b.chosen.weight), percent(r.total[i], all)];
    const { unit } = this.app;
    return [gauge(r.self[i], all), value(r.self[i], unit), gauge(r.total[i], all, this.widest(all)), value(r.total[i], unit), count(r.samples[i])];
  }

  // widest is the amount of the longest bar: the numbers are shares of all.
  protected widest(all: number): number {
    return all;
  }

  protected abstract question(q: URLSearchParams): void; // adds to q which rows are requested
  protected abstract opened(): OpenRows; // of those rows
  protected abstract place(i: number): number; // the node of the tree that a row is, -1 if it is none
  protected abstract stack(way: readonly string[]): string; // of names, the outermost row's first

  // busy reports that the content is not yet what was requested.
  get busy(): boolean {
    return this.running !== null;
  }

  private toggle(i: number, open: boolean): void {
    const opened = this.opened();
    opened.fit(this.rows!.known);
    const row = opened.at(this.rows!, i);
    if (open && opened.write(this.unfolding).n >= MOST) {
      this.app.onError(`More than ${count(MOST)} rows are open. Close some first.`);
      return;
    }
    row.open = open;
    if (open) this.unfolding.add(row);
    else this.unfolding.delete(row);
    void this.ask();
  }

  // further requests more rows when the last one is visible.
  private further(): void {
    if (this.running || this.most >= LAST) return;
    this.most = Math.min(LAST, this.most * 4);
    void this.ask();
  }

  private names(i: number): string[] {
    return this.rows!.way(i).map((k) => this.rows!.name(k));
  }

  // ask requests the rows from candid; it cancels the previous request.
  private async ask(): Promise<void> {
    const { app } = this;
    this.running?.abort();
    const mine = (this.running = new AbortController());
    const { generation, steady, naming } = app;
    if (this.rows && !this.rows.fit(naming)) {
      this.rows = null;
      this.grid.refresh();
    }
    const opened = this.opened();
    opened.fit(naming);
    const { text, unfold } = opened.write(this.unfolding);
    const q = app.query();
    this.question(q);
    q.set("most", String(this.most));
    if (app.state.split !== "none") q.set("split", app.state.split);
    if (app.state.base) q.set("base", app.state.base.join("-"));
    if (text) q.set("open", text);
    for (const i of unfold) q.append("unfold", String(i));
    if (this.fresh && !opened.any) q.set("begin", "1");
    if (this.wanted) q.set("place", String(this.wanted.node));
    if (this.wanted && this.wanted.group >= 0) q.set("in", String(this.wanted.group));
    try {
      const rows = new Rows(await ask(app.path("rows", q), mine.signal), naming);
      if (this.running !== mine) return;
      this.running = null;
      if (generation !== app.generation) return; // a new request follows when it is visible
      this.unfolding.clear();
      this.fresh = false;
      opened.take(rows);
      this.take(rows, steady);
    } catch (e) {
      if (this.running !== mine) return;
      this.running = null;
      if (!(e instanceof Grown) && !isAborted(e)) app.onError(e instanceof Error ? e.message : String(e)); // otherwise the matching answer follows at once
    }
  }

  private take(rows: Rows, steady: boolean): void {
    const { grid } = this;
    const selected = this.rows && grid.selected >= 0 && grid.selected < this.rows.n ? rows.find(this.names(grid.selected)) : -1;
    if (selected >= 0 || steady) grid.selected = selected;
    this.rows = rows;
    this.all = this.app.chosen;
    const some = rows.remark.subarray(0, 500);
    this.remarks.tell(some.includes(GUESSED), some.includes(COARSE), rows.before !== null, rows.more && this.most >= LAST ? rows.n : 0);
    grid.refresh();
    this.app.onFound();
    if (!this.wanted) return;
    this.wanted = null;
    if (rows.shown >= 0) grid.select(rows.shown);
    grid.focus();
  }

  update(fresh: boolean): void {
    if (fresh || !this.rows) {
      this.most = FIRST;
      this.fresh = true;
      void this.ask();
    } else if (!this.running) this.grid.refresh();
  }

  // show also opens the rows on the path to a node, and selects the last one.
  protected show(place: Place, fresh: boolean): Promise<void> {
    this.wanted = place;
    this.fresh ||= fresh;
    return this.ask();
  }

  // finds reports whether a search finds a row.
  private finds(re: RegExp, i: number): boolean {
    return re.test(this.app.model.searchable[this.rows!.symbol[i]] ?? "");
  }

  // next goes to the next row that the search finds, among the open ones.
  next(dir: -1 | 1): boolean | Promise<boolean> {
    const re = this.app.pattern;
    return !!re && !!this.rows && this.grid.step(dir, (i) => this.finds(re, i));
  }

  found(): string {
    const re = this.app.pattern;
    if (!re || !this.rows) return "";
    let n = 0;
    for (let i = 0; i < this.rows.n; i++) n += Number(this.finds(re, i));
    return `${count(n)} of the open rows`;
  }

  // listed are the rows, for tests.
  listed(): unknown[] {
    const r = this.rows;
    if (!r) return [];
    return Array.from(r.symbol, (s, i) => ({
      depth: r.depth[i], name: r.name(i), module: this.app.model.data.funcs[s]?.module ?? "", open: r.open(i), leaf: r.leaf(i),
      self: r.self[i], total: r.total[i], before: r.before?.[i] ?? 0, samples: r.samples[i],
    }));
  }

  // chosenWay is the path to the selected row, for tests.
  chosenWay(): string[] {
    const { selected } = this.grid;
    return this.rows && selected >= 0 && selected < this.rows.n ? this.names(selected) : [];
  }

  focus(): void {
    this.grid.focus();
  }
}

export class CallTreePane extends TreePane {
  private tally = ""; // which of how many rows was found last
  private tallyOf = ""; // the request that it belongs to
  private finding: AbortController | null = null;

  constructor(app: App, menu: Menu) {
    super(app, menu, "Call tree", "Calls, from the thread's first frame down");
  }

  // next goes to the next row that the search finds, open or not: the path to it opens. If
  // threads have roots of their own, or two are compared, only open rows are searched.
  override async next(dir: -1 | 1): Promise<boolean> {
    const { app } = this;
    if (!app.pattern || !this.rows || app.state.split !== "none" || app.compared) return super.next(dir);
    this.finding?.abort();
    const mine = (this.finding = new AbortController());
    const { generation } = app;
    const q = app.query();
    q.set("find", goPattern(app.state.query));
    q.set("step", String(dir));
    const { selected } = this.grid;
    if (selected >= 0 && selected < this.rows.n) q.set("at", String(this.rows.place[selected]));
    try {
      const { head } = await ask<{ place: number; index: number; count: number }>(app.path("find", q), mine.signal);
      if (this.finding !== mine || generation !== app.generation) return false;
      this.tallyOf = this.asked();
      this.tally = head.count === 0 ? "no match" : `row ${count(head.index + 1)} of ${count(head.count)}`;
      if (head.count === 0) return false;
      await this.show({ node: head.place, group: -1 }, false);
      return true;
    } catch (e) {
      if (!(e instanceof Grown) && !isAborted(e)) app.onError(e instanceof Error ? e.message : String(e));
      return false;
    }
  }

  private asked(): string {
    return `${this.app.state.query} ${this.app.generation}`;
  }

  override found(): string {
    return this.app.pattern && this.tallyOf === this.asked() ? this.tally : super.found();
  }

  private readonly open = new Map<string, OpenRows>(); // by the settings that give all rows other places: whether starts and late samples are shown

  protected opened(): OpenRows {
    const { naming, state } = this.app;
    const key = `${state.starts} ${state.raw}`;
    const rows = this.open.get(key) ?? new OpenRows(naming);
    this.open.set(key, rows);
    return rows;
  }

  protected question(q: URLSearchParams): void {
    q.set("way", "tree");
  }

  protected place(i: number): number {
    return this.rows!.place[i];
  }

  update(fresh: boolean): void {
    const { reveal } = this.app;
    this.app.reveal = null;
    if (reveal && reveal.node > 0) void this.show(reveal, fresh);
    else super.update(fresh);
  }

  protected stack(way: readonly string[]): string {
    return [...way].reverse().join("\n");
  }
}

// sideSwitch chooses which of two that are compared sets the width of the graphs.
export function sideSwitch(app: App): { root: HTMLElement; set(v: "before" | "after"): void } {
  return segmented<"before" | "after">("Side", [
    { value: "before", label: "Before", title: "As wide as they were before: what is gone is there" },
    { value: "after", label: "After", title: "As wide as they are after: what is new is there" },
  ], (v) => app.set({ before: v === "before" }));
}

// KEPT is the number of methods whose open caller rows are remembered.
const KEPT = 20;

type Mode = "one" | "all" | "sandwich";

export class CallersPane extends TreePane {
  private readonly title: HTMLElement;
  private readonly mode: { root: HTMLElement; set(v: Mode): void };
  private shown = "";
  private shownIn = ""; // the same for the sandwich
  private waiting = true; // the table is not yet of what is shown
  private readonly sides: { root: HTMLElement; set(v: "before" | "after"): void };
  readonly sandwich: Sandwich;

  constructor(app: App, menu: Menu) {
    const title = el("span", { class: "pane-title" });
    const mode = segmented<Mode>("Callers of", [
      { value: "all", label: "All methods", title: "Where time was spent, and who called that" },
      { value: "one", label: "This method", title: "Who called it. Choose a method by a double click in another table" },
      { value: "sandwich", label: "Sandwich", title: "All of the method's callers above it, all that it calls below" },
    ], (v) => app.set(v === "all" ? { of: "", sandwich: false } : { of: this.method(), sandwich: v === "sandwich" }));
    const sides = sideSwitch(app);
    super(app, menu, "Callers", "Callers, from the inside out", el("div", { class: "pane-bar" }, mode.root, title, sides.root));
    this.title = title;
    this.sides = sides;
    this.mode = mode;
    this.sandwich = new Sandwich(app, menu);
    this.sandwich.root.hidden = true;
    this.root.append(this.sandwich.root);
  }

  // method is the one that is shown, or else the selected row's, or the hottest.
  private method(): string {
    const { app } = this;
    if (app.methodNamed(app.state.of) >= 0) return app.state.of;
    const { rows, grid } = this;
    if (!rows) return "";
    let i = grid.selected;
    if (i < 0 || i >= rows.n) i = rows.symbol.findIndex((_, k) => this.isMethod(k));
    return i >= 0 ? rows.name(i) : "";
  }

  theme(dark: boolean): void {
    this.sandwich.theme(dark);
  }

  focus(): void {
    if (this.sandwich.root.hidden) super.focus();
    else this.sandwich.focus();
  }

  override next(dir: -1 | 1): boolean | Promise<boolean> {
    return this.sandwich.root.hidden ? super.next(dir) : this.sandwich.next(dir);
  }

  override found(): string {
    return this.sandwich.root.hidden ? super.found() : this.sandwich.found();
  }

  protected place(): number {
    return -1;
  }

  protected columns(): ColumnSpec[] {
    return super.columns().filter((c) => !c.id.startsWith("self"));
  }

  protected numbers(r: Rows, i: number): Cell[] {
    return super.numbers(r, i).slice(this.app.compared ? 0 : 2);
  }

  protected widest(all: number): number {
    return this.rows?.total[0] || all; // the heaviest is the first
  }

  private readonly open = new Map<string, OpenRows>(); // by the method whose callers they are

  protected opened(): OpenRows {
    const { app } = this;
    const of = app.methodNamed(app.state.of) >= 0 ? app.state.of : "";
    const rows = this.open.get(of) ?? new OpenRows(app.naming);
    this.open.delete(of);
    this.open.set(of, rows); // it becomes the newest
    for (const old of this.open.keys()) if (this.open.size > KEPT) this.open.delete(old);
    return rows;
  }

  protected question(q: URLSearchParams): void {
    const { app } = this;
    const method = app.methodNamed(app.state.of);
    q.set("way", "callers");
    if (method >= 0) q.set("of", String(method));
  }

  protected stack(way: readonly string[]): string {
    return way.join("\n");
  }

  update(fresh: boolean): void {
    const { of } = this.app.state;
    const method = this.app.methodNamed(of);
    const known = method >= 0;
    const sandwich = known && this.app.state.sandwich;
    this.mode.set(sandwich ? "sandwich" : known ? "one" : "all");
    const appeared = this.sandwich.root.hidden;
    this.sandwich.root.hidden = !sandwich;
    this.sides.root.hidden = !sandwich || !this.app.compared;
    this.sides.set(this.app.state.before ? "before" : "after");
    this.grid.root.hidden = sandwich;
    if (sandwich && (fresh || appeared || this.shownIn !== of)) {
      this.shownIn = of;
      void this.sandwich.update(method);
    }
    this.title.textContent = known ? of : "Where time was spent itself, and who called that. Open a method from any table or frame to see its callers only.";
    this.title.classList.toggle("is-name", known);
    this.waiting ||= fresh || of !== this.shown;
    this.shown = of;
    if (sandwich) {
      this.sandwich.search();
      return; // the table is made when it is visible
    }
    super.update(this.waiting);
    this.waiting = false;
  }
}
