// One method between all of its callers and all that it calls, over everything
// that the filters leave: nothing is too small to be in it.

import { layout } from "../flame/layout";
import type { Tree } from "../flame/tree";
import { Chart } from "../page/chart";
import { facts } from "../page/detail";
import { el } from "../page/dom";
import { percent, value } from "../page/format";
import type { Model } from "../page/model";
import type { App } from "./app";
import type { Menu } from "./menu";
import { points } from "./tables";
import { ask, Grown, type Message } from "./wire";

// Half is one half, as candid made it. Node 0 is the method, with all of its total: a
// stack counts once, for the outermost frame of the method.
export interface Half { readonly tree: Tree; readonly after: Float64Array; readonly before: Float64Array | null }

// half reads one of the two; sym are the symbols of the recording's tree.
export function half(m: Message<unknown>, name: "callers" | "callees", sym: Int32Array): Half {
  const depths = m.u32(`${name}.depth`), origins = m.u32(`${name}.origin`);
  const n = depths.length;
  const depth = new Int32Array(depths.buffer, depths.byteOffset, n), origin = new Int32Array(origins.buffer, origins.byteOffset, n);
  const columns = new Int32Array(3 * n);
  const own = columns.subarray(0, n), parent = columns.subarray(n, 2 * n), end = columns.subarray(2 * n);
  const last: number[] = []; // by depth
  for (let i = 0; i < n; i++) {
    const d = depth[i];
    own[i] = d > 0 ? sym[origin[i]] : -1;
    parent[i] = d > 0 ? last[d - 1] : -1;
    last[d] = i;
    end[i] = i + 1;
  }
  for (let i = n - 1; i > 0; i--) if (end[i] > end[parent[i]]) end[parent[i]] = end[i];
  return { tree: { n, sym: own, depth, parent, end, origin }, after: m.f64(`${name}.after`), before: m.has(`${name}.before`) ? m.f64(`${name}.before`) : null };
}

const NOTHING = new Float64Array(0);

export class Sandwich {
  readonly root: HTMLElement;
  private readonly charts: readonly Chart[];
  private readonly models: readonly Model[];
  private readonly line = el("p", { class: "sandwich-line", "aria-live": "polite" });
  private method = -1;
  private halvesNow: readonly Half[] = [];
  private running: AbortController | null = null;

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

  // busy says that what is shown is not of what the filters chose yet.
  get busy(): boolean {
    return this.running !== null;
  }

  // update asks candid for both halves of a method's; what was asked before is not wanted
  // any more.
  async update(method: number): Promise<void> {
    const { app } = this;
    this.running?.abort();
    this.running = null;
    if (method < 0) return;
    const mine = (this.running = new AbortController());
    const { generation } = app;
    const { tree } = app.model.data;
    const q = app.query();
    q.set("of", String(method));
    if (app.state.base) q.set("base", app.state.base.join("-"));
    try {
      const m = await ask(app.path("sandwich", q), mine.signal);
      if (this.running !== mine) return;
      if (generation === app.generation) { // else the filters have changed, and it will be asked anew when it is seen
        this.method = method;
        this.take((["callers", "callees"] as const).map((name) => half(m, name, tree.sym)));
      }
    } catch (e) {
      if (this.running !== mine) return;
      if (!(e instanceof Grown)) app.onError(e instanceof Error ? e.message : String(e)); // else what fits comes at once
    }
    this.running = null;
  }

  private take(halves: readonly Half[]): void {
    const { app } = this;
    const again = this.halvesNow.length > 0;
    this.halvesNow = halves;
    halves.forEach(({ tree, after, before }, k) => {
      const m = this.models[k];
      const total = before && app.state.before ? before : after;
      m.tree = tree;
      m.values = { total, self: NOTHING, count: NOTHING, samples: NOTHING }; // charts show totals
      m.layout = layout(tree, total, again ? m.layout : undefined);
      this.charts[k].change = before && app.changes(after, before);
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
    const was = this.halvesNow[k]?.before, is = this.halvesNow[k]?.after;
    const { before } = app.chosen;
    const all = (was && app.state.before ? before : app.chosen)?.chosen.weight ?? 0, whole = m.values.total[0], v = m.values.total[node];
    const change = was && before ? [`${percent(was[node], before.chosen.weight)} before, ${percent(is[node], app.chosen.chosen.weight)} after: ${points(app.change(is[node], was[node]))}`] : [];
    const s = node > 0 ? m.tree.sym[node] : app.methods.symbol[this.method];
    const known = node > 0 ? facts(m, node).filter((f) => ["kind", "provenance", "module", "source"].includes(f.key)).map((f) => f.text) : [];
    this.line.replaceChildren(el("b", {}, app.nameOf(s)), ` ${[value(v, app.unit), `${percent(v, all)} of what is shown`, ...(node > 0 ? [`${percent(v, whole)} of the method's`] : []), ...change, ...known].join(" · ")}`);
  }

  focus(): void {
    this.charts[1].canvas.focus();
  }
}
