// One method between all of its callers and all that it calls, over everything
// that the filters leave: nothing is too small to be in it.

import { Merging, type Half } from "./merging";
import { layout } from "../flame/layout";
import type { Tree, Values } from "../flame/tree";
import { Chart } from "../page/chart";
import { facts } from "../page/detail";
import { el } from "../page/dom";
import { percent, value } from "../page/format";
import type { Model } from "../page/model";
import type { App } from "./app";
import type { Menu } from "./menu";
import type { Methods } from "./rows";

// sandwich gives both halves, callers first, of which those of old are not valid any more. Node 0 of each is the method, with all of its total:
// a stack counts once, for the outermost frame of the method.
export function sandwich(tree: Tree, v: Values, methods: Methods, method: number, old?: readonly Half[]): Half[] {
  const { sym, end, n } = tree;
  const frames: number[] = [];
  let below = 1;
  for (let i = 1; i < n; ) {
    const own = sym[i] >= 0 && sym[i] < methods.of.length && methods.of[sym[i]] === method;
    if (own && v.samples[i] > 0) {
      frames.push(i);
      below += end[i] - i;
    }
    i = own || v.samples[i] === 0 ? end[i] : i + 1;
  }
  return [new Merging(tree, v, methods, true, 1024, old?.[0]).merge(frames), new Merging(tree, v, methods, false, below, old?.[1]).merge(frames)];
}

const NOTHING = new Float64Array(0);

export class Sandwich {
  readonly root: HTMLElement;
  private readonly charts: readonly Chart[];
  private readonly models: readonly Model[];
  private readonly line = el("p", { class: "sandwich-line", "aria-live": "polite" });
  private method = -1;
  private halvesNow: readonly Half[] = [];

  constructor(private readonly app: App, menu: Menu) {
    // What is not of a half is the recording's.
    this.models = [0, 1].map(() => Object.create(app.model) as Model);
    this.charts = this.models.map((m, k) => {
      m.tree = app.model.tree;
      m.values = app.model.values;
      m.layout = app.model.layout;
      m.rootName = () => (this.method >= 0 ? app.nameOf(app.methods.symbol[this.method]) : "");
      const chart = new Chart(m, { zoomed: () => {}, pointed: (node) => this.tell(k, node) });
      chart.flame = k === 0;
      chart.canvas.setAttribute("aria-label", k === 0 ? "Callers of the method, above it. Arrow keys move between frames, Enter zooms, m says what can be done." : "What the method calls, below it. Arrow keys move between frames, Enter zooms, m says what can be done.");
      const open = (x: number, y: number): void => {
        const node = chart.hovered > 0 ? chart.hovered : chart.selected;
        if (node > 0) menu.open(m.tree.sym[node], x, y, this.stack(k, node), m.tree.origin[node]);
      };
      chart.canvas.addEventListener("contextmenu", (e) => {
        e.preventDefault();
        open(e.clientX, e.clientY);
      });
      chart.canvas.addEventListener("keydown", (e) => {
        if (e.key === "Escape") chart.show(0);
        else if (e.key === "m") {
          const box = chart.canvas.getBoundingClientRect();
          open(box.left + 80, box.top + 40);
        } else return;
        e.preventDefault();
        e.stopPropagation();
      });
      chart.canvas.addEventListener("dblclick", () => {
        const s = m.tree.sym[chart.selected];
        if (chart.selected > 0 && s < app.methods.of.length && app.methods.of[s] >= 0) app.set({ of: app.nameOf(s) });
      });
      return chart;
    });
    this.root = el("div", { class: "sandwich" },
      el("h3", {}, "Callers"), this.charts[0].root, el("h3", {}, "What it calls"), this.charts[1].root, this.line);
  }

  update(method: number): void {
    const { app } = this;
    this.method = method;
    if (method < 0) return;
    const again = this.halvesNow.length > 0;
    this.halvesNow = sandwich(app.model.data.tree, app.after, app.methods, method, this.halvesNow);
    this.halvesNow.forEach((half, k) => {
      const m = this.models[k];
      m.tree = half.tree;
      m.values = { total: half.total, self: NOTHING, count: NOTHING, samples: NOTHING }; // charts show totals
      m.layout = layout(half.tree, half.total, again ? m.layout : undefined);
      this.charts[k].selected = -1;
      this.charts[k].fresh(0);
    });
    this.tell(1, 0);
  }

  // halves are what is shown, for tests: the total of each, and of the frames next to the method.
  halves(): { total: number; next: Record<string, number> }[] {
    return this.models.map((m) => {
      const next: Record<string, number> = {};
      for (let c = 1; c < m.tree.n; c = m.tree.end[c]) {
        const name = this.app.nameOf(m.tree.sym[c]);
        next[name] = (next[name] ?? 0) + m.values.total[c];
      }
      return { total: m.values.total[0], next };
    });
  }

  theme(dark: boolean): void {
    for (const c of this.charts) c.setTheme(dark);
  }

  private stack(k: number, node: number): string {
    const m = this.models[k];
    const out: string[] = [];
    for (let i = node; i >= 0; i = m.tree.parent[i]) out.push(i > 0 ? this.app.nameOf(m.tree.sym[i]) : m.rootName());
    return (k === 0 ? out.reverse() : out).join("\n");
  }

  private tell(k: number, node: number): void {
    const { app } = this;
    const m = this.models[k];
    if (node < 0) node = 0;
    const all = app.chosen.chosen.weight, whole = m.values.total[0], v = m.values.total[node];
    const s = node > 0 ? m.tree.sym[node] : app.methods.symbol[this.method];
    const known = node > 0 ? facts(m, node).filter((f) => ["kind", "provenance", "module", "source"].includes(f.key)).map((f) => f.text) : [];
    this.line.replaceChildren(el("b", {}, app.nameOf(s)), ` ${[value(v, app.unit), `${percent(v, all)} of what is shown`, ...(node > 0 ? [`${percent(v, whole)} of the method's`] : []), ...known].join(" · ")}`);
  }

  focus(): void {
    this.charts[1].canvas.focus();
  }
}
