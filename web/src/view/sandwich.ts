// One method between all of its callers and all that it calls, over everything
// that the filters leave: nothing is too small to be in it.

import { heavierFirst, Merging } from "./merging";
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

export interface Half { readonly tree: Tree; readonly values: Values }

// sandwich gives both halves. Node 0 of each is the method, with all of its total:
// a stack counts once, for the outermost frame of the method.
export function sandwich(tree: Tree, v: Values, methods: Methods, method: number): { callers: Half; callees: Half } {
  const { sym, parent, end, n } = tree;
  const own = (i: number): boolean => sym[i] >= 0 && sym[i] < methods.of.length && methods.of[sym[i]] === method;
  let room = 1;
  for (let i = 1; i < n; ) {
    if (own(i)) room += end[i] - i;
    i = own(i) || v.samples[i] === 0 ? end[i] : i + 1;
  }
  const above = new Merging(methods), below = new Merging(methods, room);
  const at = new Int32Array(n);
  for (let i = 1; i < n; ) {
    if (v.samples[i] === 0) i = end[i];
    else if (!own(i)) i++;
    else {
      let up = 0;
      above.add(0, i, 0, v.total[i], 0, v.samples[i]);
      for (let c = parent[i]; c > 0; c = parent[c]) {
        up = above.child(up, sym[c]);
        above.add(up, c, 0, v.total[i], 0, v.samples[i]);
      }
      above.end(up, v.total[i], v.samples[i]);
      below.add(0, i, v.self[i], v.total[i], v.count[i], v.samples[i]);
      at[i] = 0;
      for (let c = i + 1; c < end[i]; c++) {
        if (v.samples[c] === 0) {
          c = end[c] - 1;
          continue;
        }
        at[c] = below.child(at[parent[c]], sym[c]);
        below.add(at[c], c, v.self[c], v.total[c], v.count[c], v.samples[c]);
      }
      i = end[i];
    }
  }
  return { callers: heavierFirst(above), callees: heavierFirst(below) };
}

export class Sandwich {
  readonly root: HTMLElement;
  private readonly charts: readonly Chart[];
  private readonly models: readonly Model[];
  private readonly line = el("p", { class: "sandwich-line", "aria-live": "polite" });
  private method = -1;

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
    const both = sandwich(app.model.data.tree, app.after, app.methods, method);
    [both.callers, both.callees].forEach((half, k) => {
      const m = this.models[k];
      m.tree = half.tree;
      m.values = half.values;
      m.layout = layout(half.tree, half.values.total);
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
