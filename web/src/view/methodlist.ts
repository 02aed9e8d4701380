// The tab that lists the methods.

import { el } from "../page/dom";
import { count, percent, value } from "../page/format";
import type { App } from "./app";
import { changed } from "./change";
import { Grid } from "./grid";
import type { Menu } from "./menu";
import { CHANGE, gauge, known, nameCell, NUMBERS, Remarks } from "./methodcells";
import { COARSE, GUESSED, type Methods, type Sums } from "./methods";
import type { Pane } from "./pane";
import { Grown, isAborted } from "./wire";

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
      const { now, before } = await app.sums.ask();
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
    const change = (after: Float64Array, before: Float64Array): Float64Array => after.map((v, m) => Math.abs(app.difference.of(v, before[m])));
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
