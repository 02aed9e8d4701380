// The flame graph's tab: the drawing of the one-file page, for the samples that the filters
// leave.

import type { Split } from "../data";
import { match, matching, step, within } from "../flame/search";
import { Chart } from "../page/chart";
import { Crumbs } from "../page/crumbs";
import { Detail, type Fact } from "../page/detail";
import { el, segmented } from "../page/dom";
import { count, percent, value } from "../page/format";
import { Legend } from "../page/legend";
import type { App, Place } from "./app";
import type { Menu } from "./menu";
import type { Pane } from "./pane";
import { points } from "./change";
import { sideSwitch } from "./sides";

// hottestIn is the node with the most self, -1 if none has any.
function hottestIn(self: Float64Array): number {
  let best = -1;
  for (let i = 1; i < self.length; i++) if (self[i] > 0 && (best < 0 || self[i] > self[best])) best = i;
  return best;
}

// heaviestMatch is the heaviest node that a search finds, null if it finds none.
function heaviestMatch(total: Float64Array, sym: Int32Array, symbols: Uint8Array | undefined): number | null {
  let best = 0;
  for (let i = 1; symbols && i < total.length; i++) if (symbols[sym[i]] && total[i] > (best && total[best])) best = i;
  return best || null;
}

export class FlamePane implements Pane {
  readonly root: HTMLElement;
  readonly chart: Chart;
  private readonly detail: Detail;
  private readonly crumbs: Crumbs;
  private readonly legend: Legend;
  private readonly orientation: { root: HTMLElement; set(v: "flame" | "icicle"): void };
  private readonly splits: { root: HTMLElement; set(v: Split): void };
  private readonly sides: { root: HTMLElement; set(v: "before" | "after"): void };
  private text = ""; // the result of the search

  constructor(private readonly app: App, menu: Menu, copy: (text: string) => void) {
    const model = app.model;
    this.chart = new Chart(model, {
      zoomed: (node) => {
        app.set({ zoom: node });
        this.around();
      },
      pointed: (node, held) => this.detail.show(node, app.state.zoom, app.state.event, held),
    });
    this.detail = new Detail(model, () => this.detail.node >= 0 && copy(model.nameOf(this.detail.node)));
    this.crumbs = new Crumbs(model, (node) => this.zoomTo(node));
    this.legend = new Legend(model, (kind) => app.set({ kind }), (apart) => app.setTiers(apart));
    this.orientation = segmented("Orientation", [
      { value: "flame", label: "Flame", title: "Callers below (i)" }, { value: "icicle", label: "Icicle", title: "Callers above (i)" },
    ], (v) => app.set({ flame: v === "flame" }));
    this.splits = segmented<Split>("Roots", [
      { value: "none", label: "Merged", title: "All threads together (t)" },
      ...(app.header.processes.length > 1 ? [{ value: "process" as const, label: "By process", title: "A root for each process (t)" }] : []),
      { value: "thread", label: "By thread", title: "A root for each thread (t)" },
    ], (split) => app.set({ split, zoom: 0 }));
    this.sides = sideSwitch(app);
    app.held.list = [{ get: () => this.chart.selected, set: (node) => (this.chart.selected = node) }];
    this.detail.extra = (node) => [...this.whole(node), ...this.compared(node)];
    const bar = el("div", { class: "pane-bar" }, this.crumbs.root, app.compared ? el("span", { class: "soft" }, "blue: less, orange: more, grey: chance explains it") : "", app.compared ? this.sides.root : this.splits.root, this.orientation.root);
    this.root = el("div", { class: app.compared ? "pane flame compared" : "pane flame" }, bar, el("div", { class: "stage" }, this.chart.root), el("footer", {}, this.detail.root, this.legend.root));
    this.chart.canvas.addEventListener("contextmenu", (e) => {
      const node = this.chart.hovered;
      if (node <= 0) return;
      e.preventDefault();
      menu.open(model.tree.sym[node], e.clientX, e.clientY, this.stack(node), this.place(node));
    });
    this.chart.canvas.addEventListener("keydown", (e) => {
      const node = this.chart.selected;
      if (e.key !== "m" || node <= 0) return;
      const box = this.chart.canvas.getBoundingClientRect();
      menu.open(model.tree.sym[node], box.left + 80, box.top + 80, this.stack(node), this.place(node));
      e.preventDefault();
    });
  }

  // place is a node of the tree of all threads together, with the thread or process that it was
  // in.
  private place(node: number): Place {
    const { tree } = this.app.model;
    let root = node;
    while (tree.depth[root] > 1) root = tree.parent[root];
    const group = tree.sym[root];
    return { node: tree.origin[node], group: group >= this.app.model.symbols ? group : -1 };
  }

  // stack is the path to a node as text, the innermost frame first, as Java prints it.
  private stack(node: number): string {
    const { tree } = this.app.model;
    const out: string[] = [];
    for (let i = node; i > 0; i = tree.parent[i]) out.push(this.app.model.nameOf(i));
    return out.join("\n");
  }

  theme(dark: boolean): void {
    this.chart.setTheme(dark);
    this.legend.paint(this.chart.theme);
  }

  update(fresh: boolean): void {
    const { state } = this.app;
    this.orientation.set(state.flame ? "flame" : "icicle");
    this.splits.set(state.split);
    this.legend.tiers.set(state.tiers);
    this.sides.set(state.before ? "before" : "after");
    if (fresh) {
      this.chart.change = this.changes();
      this.chart.flame = state.flame;
      this.chart.fresh(state.zoom);
      this.search();
      const { model, steady } = this.app;
      if (!state.zoom && !steady) {
        const found = heaviestMatch(model.values.total, model.tree.sym, this.chart.match?.symbols);
        this.chart.aim(found ?? hottestIn(model.values.self), found !== null);
      }
      this.warm();
      return;
    }
    this.chart.setFlame(state.flame);
    this.search();
  }

  private warming = 0;

  // warm runs a search that matches nothing while the page is idle: the first search of millions
  // of nodes takes several times as long as the next.
  private warm(): void {
    clearTimeout(this.warming);
    this.warming = window.setTimeout(() => {
      const { model, busy } = this.app;
      if (!busy && model.tree.n > 50_000 && !this.chart.match) match(model.tree, model.layout, matching(model.searchable, /^(?!)/));
    }, 150);
  }

  private changes(): Uint8Array | null {
    const { app } = this;
    return app.before && app.difference.ofNodes(app.after.total, app.before.total);
  }

  // whole says for a frame how much the method has in total, if it has more elsewhere: on other
  // paths, or, if those are separate, in other kinds of code.
  private whole(node: number): Fact[] {
    const { app } = this;
    if (app.compared) return [];
    const own = app.sums.own(app.model.tree.sym[node]);
    if (own <= app.model.values.self[node]) return [];
    return [{ key: "method", text: `whole method: self ${percent(own, app.chosen.chosen.weight)}`, title: "On all ways: as the method list has it" }];
  }

  // compared says how a node was before and after.
  private compared(node: number): Fact[] {
    const { app } = this;
    const { before, after } = app;
    if (!before || !app.chosen.before) return [];
    const text = `${percent(before.total[node], app.chosen.before.chosen.weight)} before, ${percent(after.total[node], app.chosen.chosen.weight)} after: ${points(app.difference.of(after.total[node], before.total[node]))}${app.difference.byChance(after.total[node], before.total[node]) ? " (within chance)" : ""}`;
    return [{ key: "total", text }];
  }

  private search(): void {
    const { app } = this;
    const { model, state } = app;
    const re = app.pattern;
    let symbols: Uint8Array | null = re ? matching(model.searchable, re) : null;
    if (state.kind >= 0) {
      symbols ??= new Uint8Array(model.names.length).fill(1);
      symbols.forEach((_, s, a) => {
        if (s >= model.symbols || model.data.kind[s] !== state.kind) a[s] = 0;
      });
    }
    this.chart.match = symbols && match(model.tree, model.layout, symbols);
    this.around();
    this.chart.redraw();
  }

  private around(): void {
    const { state, model, unit } = this.app;
    this.crumbs.show(state.zoom);
    this.legend.show(state.zoom, state.event, state.kind);
    this.detail.show(this.chart.hovered >= 0 ? this.chart.hovered : this.chart.selected, state.zoom, state.event, false);
    const m = this.chart.match;
    this.text = "";
    if (m) {
      this.text = m.nodes === 0 ? "no match" : `${percent(m.total, model.values.total[0])} · ${value(m.total, unit)} in ${count(m.nodes)} frame${m.nodes === 1 ? "" : "s"}`;
      if (state.zoom > 0 && m.nodes) this.text += ` · ${percent(within(model.tree, model.layout, m.symbols, state.zoom), model.values.total[state.zoom])} of zoomed`;
    }
  }

  zoomTo(node: number): void {
    this.chart.show(node);
    this.app.set({ zoom: node });
  }

  found(): string {
    return this.text;
  }

  next(dir: -1 | 1): boolean {
    const { model } = this.app;
    if (!this.chart.match?.nodes) return false;
    const from = this.chart.selected >= 0 ? this.chart.selected : dir > 0 ? 0 : model.tree.n;
    const to = step(model.tree, model.layout, this.chart.match.symbols, from, dir);
    if (to >= 0) this.chart.select(to);
    return to >= 0;
  }

  focus(): void {
    this.chart.canvas.focus();
  }

  // key does what a key means anywhere on this tab.
  key(key: string): boolean {
    const { state, header } = this.app;
    switch (key) {
      case "Escape":
        if (state.zoom > 0) this.zoomTo(0);
        else if (state.query || state.kind >= 0) this.app.set({ query: "", kind: -1 });
        else this.chart.select(-1);
        return true;
      case "0":
        this.zoomTo(0);
        return true;
      case "i":
        this.app.set({ flame: !state.flame });
        return true;
      case "t": {
        const order: Split[] = header.processes.length > 1 ? ["none", "process", "thread"] : ["none", "thread"];
        this.app.set({ split: order[(order.indexOf(state.split) + 1) % order.length], zoom: 0 });
        return true;
      }
      case "k":
        if (!this.app.model.hasTiers) return false;
        this.app.setTiers(!state.tiers);
        return true;
    }
    if (/^(Arrow|Page|Home|[-+=<>,.]$)/.test(key)) {
      this.chart.canvas.focus();
      this.chart.canvas.dispatchEvent(new KeyboardEvent("keydown", { key }));
      return true;
    }
    return false;
  }
}
