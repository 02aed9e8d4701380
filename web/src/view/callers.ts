// The callers' tab: a table, or the sandwich.

import { el, segmented } from "../page/dom";
import type { App } from "./app";
import type { Cell } from "./cells";
import type { ColumnSpec } from "./grid";
import type { Menu } from "./menu";
import { OpenRows, type Rows } from "./rows";
import { Sandwich } from "./sandwich";
import { sideSwitch } from "./sides";
import { TreePane } from "./treepane";

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
