// The call tree's tab.

import { count } from "../page/format";
import type { App } from "./app";
import { goPattern } from "./bar";
import type { Menu } from "./menu";
import { OpenRows } from "./rows";
import { TreePane } from "./treepane";
import { ask, Grown, isAborted } from "./wire";

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
    const q = app.questions.query();
    q.set("find", goPattern(app.state.query));
    q.set("step", String(dir));
    const { selected } = this.grid;
    if (selected >= 0 && selected < this.rows.n) q.set("at", String(this.rows.place[selected]));
    try {
      const { head } = await ask<{ place: number; index: number; count: number }>(app.questions.path("find", q), mine.signal);
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
