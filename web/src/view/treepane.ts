// A table of rows that open: the call tree and the callers.

import { el } from "../page/dom";
import { count, percent, value } from "../page/format";
import type { App, Place } from "./app";
import type { Cell } from "./cells";
import { changed } from "./change";
import { Grid, type ColumnSpec } from "./grid";
import type { Menu } from "./menu";
import { CHANGE, gauge, known, nameCell, Remarks, TREE_NUMBERS } from "./methodcells";
import { COARSE, GUESSED } from "./methods";
import type { Pane } from "./pane";
import { keyOf, MOST, OpenRows, Rows, type Opened } from "./rows";
import { ask, Grown, isAborted } from "./wire";

// FIRST is how many rows are requested at first: scrolling to the last one requests more.
const FIRST = 10_000, LAST = 1 << 18;

// TreePane is a table of rows that open.
export abstract class TreePane implements Pane {
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
    const q = app.questions.query();
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
      const rows = new Rows(await ask(app.questions.path("rows", q), mine.signal), naming);
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
