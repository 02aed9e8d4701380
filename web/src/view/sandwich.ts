// One method between all of its callers and everything it calls, over all samples that the
// filters leave. candid sends the frames wide enough to be visible, and the sum of the rest of
// each frame's callers or callees; after a zoom it sends what is visible then.

import type { Name } from "../flame/label";
import { layout, nodeAt } from "../flame/layout";
import { match, steps } from "../flame/search";
import type { Tree } from "../flame/tree";
import { Chart } from "../page/chart";
import { facts } from "../page/detail";
import { el } from "../page/dom";
import { count, percent, value } from "../page/format";
import type { Model } from "../page/model";
import type { App } from "./app";
import type { Menu } from "./menu";
import { points } from "./change";
import { ask, Grown, type Message } from "./wire";

// Half is one half, as candid made it. Node 0 is the method, with all of its total: a stack
// counts once, for the outermost frame of the method.
export interface Half {
  readonly tree: Tree; // origin -1: several narrow frames as one
  readonly folded: Uint32Array; // their number
  readonly after: Float64Array;
  readonly before: Float64Array | null;
}

const NOWHERE = 0xffffffff;

// half reads one of the two; sym are the symbols of the recording's tree, narrow is the symbol of
// narrow frames as one.
export function half(m: Message<unknown>, name: "callers" | "callees", sym: Int32Array, narrow: number): Half {
  const depths = m.u32(`${name}.depth`), origins = m.u32(`${name}.origin`), folded = m.u32(`${name}.folded`);
  const n = depths.length;
  const depth = new Int32Array(depths.buffer, depths.byteOffset, n), origin = new Int32Array(origins.buffer, origins.byteOffset, n);
  const columns = new Int32Array(3 * n);
  const own = columns.subarray(0, n), parent = columns.subarray(n, 2 * n), end = columns.subarray(2 * n);
  const last: number[] = []; // by depth
  for (let i = 0; i < n; i++) {
    const d = depth[i];
    own[i] = d === 0 ? -1 : origins[i] === NOWHERE ? narrow : sym[origin[i]]; // in origin that is -1
    parent[i] = d > 0 ? last[d - 1] : -1;
    last[d] = i;
    end[i] = i + 1;
  }
  for (let i = n - 1; i > 0; i--) if (end[i] > end[parent[i]]) end[parent[i]] = end[i];
  return { tree: { n, sym: own, depth, parent, end, origin }, folded, after: m.f64(`${name}.after`), before: m.has(`${name}.before`) ? m.f64(`${name}.before`) : null };
}

const NOTHING = new Float64Array(0);
const WHOLE: readonly [number, number][] = [[0, 1], [0, 1]];

export class Sandwich {
  readonly root: HTMLElement;
  private readonly charts: readonly Chart[];
  private readonly models: readonly Model[];
  private readonly line = el("p", { class: "sandwich-line", "aria-live": "polite" });
  private method = -1;
  private halvesNow: readonly Half[] = [];
  private running: AbortController | null = null;
  private looking = 0; // a timer: a view has changed, and its visible part will be requested
  private looked: readonly [number, number][] = WHOLE; // for each half: the part that was requested in detail, as shares of its width
  private of = { names: [] as readonly Name[], with: [] as Name[] }; // the names and one more, for narrow frames

  constructor(private readonly app: App, menu: Menu) {
    // Everything that is not of a half is the recording's.
    this.models = [0, 1].map(() => Object.create(app.model) as Model);
    this.charts = this.models.map((m, k) => {
      m.tree = app.model.tree;
      m.values = app.model.values;
      m.layout = app.model.layout;
      m.guessed = app.model.guessed;
      m.alone();
      m.rootName = () => (this.method >= 0 ? app.nameOf(app.methods.symbol[this.method]) : "");
      const chart = new Chart(m, { zoomed: () => this.look(), pointed: (node) => this.tell(k, node) });
      chart.flame = k === 0;
      chart.canvas.setAttribute("aria-label", k === 0 ? "Callers of the method, above it. Arrow keys move between frames, Enter zooms, m says what can be done." : "What the method calls, below it. Arrow keys move between frames, Enter zooms, m says what can be done.");
      const open = (x: number, y: number): void => {
        const node = chart.hovered > 0 ? chart.hovered : chart.selected;
        if (node > 0 && m.tree.origin[node] >= 0) menu.open(m.tree.sym[node], x, y, this.stack(k, node), { node: m.tree.origin[node], group: -1 });
      };
      chart.canvas.addEventListener("contextmenu", (e) => {
        e.preventDefault();
        open(e.clientX, e.clientY);
      });
      chart.canvas.addEventListener("keydown", (e) => {
        if (e.key === "Escape") {
          chart.show(0);
          this.look();
        }
        else if (e.key === "m") {
          const box = chart.canvas.getBoundingClientRect();
          open(box.left + 80, box.top + 40);
        } else {
          this.look(); // a key may have moved the view
          return;
        }
        e.preventDefault();
        e.stopPropagation();
      });
      chart.canvas.addEventListener("wheel", () => this.look(), { passive: true });
      chart.canvas.addEventListener("pointerup", () => this.look());
      chart.canvas.addEventListener("dblclick", () => {
        const s = m.tree.sym[chart.selected];
        if (chart.selected > 0 && s < app.methods.of.length && app.methods.of[s] >= 0) app.set({ of: app.nameOf(s) });
      });
      return chart;
    });
    this.root = el("div", { class: "sandwich" },
      el("h3", {}, "Callers", app.compared ? el("span", { class: "soft" }, " · blue: less, orange: more, grey: chance explains it") : ""), this.charts[0].root, el("h3", {}, "What it calls"), this.charts[1].root, this.line);
  }

  // busy reports that the content is not yet that of the chosen samples.
  get busy(): boolean {
    return this.running !== null || this.looking !== 0;
  }

  // look requests the visible part when a view has come to rest.
  private look(): void {
    clearTimeout(this.looking);
    this.looking = window.setTimeout(() => {
      this.looking = 0;
      const seen = this.charts.map((c, k): [number, number] => {
        const all = this.models[k].values.total[0];
        const { x0, x1 } = c.view();
        return all > 0 && x1 > x0 ? [Math.max(0, x0 / all), Math.min(1, x1 / all)] : [0, 1];
      });
      // Frames that are folded in the visible part, which was not requested in this detail, are
      // requested.
      const k = seen.findIndex(([a, b], k) => {
        const [from, to] = this.looked[k];
        const m = this.models[k];
        const all = m.values.total[0];
        return b > a && (a < from || b > to || b - a < 0.7 * (to - from)) && this.halvesNow[k]?.folded.some((n, i) => n > 0 && m.values.total[i] > 0 && m.layout.x[i] < b * all && m.layout.x[i] + m.values.total[i] > a * all);
      });
      if (k >= 0) void this.ask(this.method, k, seen[k]);
    }, 200);
  }

  // update requests both halves of a method; it cancels the previous request.
  async update(method: number): Promise<void> {
    clearTimeout(this.looking);
    this.looking = 0;
    this.looked = WHOLE;
    await this.ask(method);
  }

  // ask requests both halves; one of them in detail between two shares of its width.
  private async ask(method: number, closely = -1, [left, right]: readonly [number, number] = [0, 1]): Promise<void> {
    const { app } = this;
    this.running?.abort();
    this.running = null;
    if (method < 0) return;
    const mine = (this.running = new AbortController());
    const { generation } = app;
    const { tree } = app.model.data;
    const q = app.questions.query();
    q.set("of", String(method));
    q.set("room", String(Math.ceil(2 * (this.root.clientWidth || innerWidth) * (devicePixelRatio || 1)))); // half a pixel each
    if (closely >= 0) {
      q.set("left", String(left));
      q.set("right", String(right));
    }
    if (app.state.before) q.set("wide", "before");
    if (app.state.base) q.set("base", app.state.base.join("-"));
    try {
      const m = await ask(app.questions.path("sandwich", q), mine.signal);
      if (this.running !== mine) return;
      if (generation === app.generation) { // otherwise the filters have changed, and a new request follows when it is visible
        this.method = method;
        const halves = (["callers", "callees"] as const).map((name) => half(m, name, tree.sym, app.model.names.length));
        if (closely >= 0) this.closer(closely, halves[closely], [left, right]);
        else this.take(halves);
      }
    } catch (e) {
      if (this.running !== mine) return;
      if (!(e instanceof Grown)) app.onError(e instanceof Error ? e.message : String(e)); // otherwise the matching answer follows at once
    }
    this.running = null;
  }

  private take(halves: readonly Half[]): void {
    const { app } = this;
    const again = this.halvesNow.length > 0;
    this.halvesNow = halves;
    halves.forEach(({ tree, after, before }, k) => {
      const total = before && app.state.before ? before : after;
      this.lay(k, tree, total, again);
      this.charts[k].change = before && app.difference.ofNodes(after, before);
      this.charts[k].selected = -1;
      this.charts[k].fresh(0);
    });
    this.search();
    app.onFound();
    this.tell(1, 0);
  }

  private lay(k: number, tree: Tree, total: Float64Array, again: boolean): void {
    const { app } = this;
    const m = this.models[k];
    if (this.of.names !== app.model.names) {
      const full = "… narrower ones: zoom in";
      this.of = { names: app.model.names, with: [...app.model.names, { full, short: 0, method: 0, end: full.length }] };
    }
    m.names = this.of.with;
    m.tree = tree;
    m.values = { total, self: NOTHING, count: NOTHING, samples: NOTHING }; // charts show totals
    m.layout = layout(tree, total, again ? m.layout : undefined);
    m.guessed = Uint8Array.from(tree.origin, (o) => (o >= 0 ? m.data.heuristic[o] : 0));
  }

  // closer takes a half with more detail: the visible part stays where it is.
  private closer(k: number, now: Half, looked: [number, number]): void {
    const { app } = this;
    const m = this.models[k];
    const chart = this.charts[k];
    const place = (i: number): [number, number] => [m.tree.depth[i], m.layout.x[i] + m.layout.total[i] / 2];
    const folded = (i: number): boolean => i > 0 && m.tree.origin[i] < 0;
    // Narrow frames that were zoomed to as one are below the frame next to them.
    const zoom = place(folded(chart.zoom) ? m.tree.parent[chart.zoom] : chart.zoom), selected = chart.selected >= 0 && !folded(chart.selected) ? place(chart.selected) : null;
    this.halvesNow = this.halvesNow.map((h, i) => (i === k ? now : h));
    this.looked = this.looked.map((l, i) => (i === k ? looked : l));
    this.lay(k, now.tree, now.before && app.state.before ? now.before : now.after, true);
    chart.change = now.before && app.difference.ofNodes(now.after, now.before);
    chart.hovered = -1;
    chart.zoom = Math.max(0, nodeAt(m.layout, ...zoom));
    chart.selected = selected ? nodeAt(m.layout, ...selected) : -1;
    chart.resize();
    this.search();
  }

  // halves are the contents, for tests: the total of each half, of the frames next to the method
  // and of those that are too narrow, and the number of nodes.
  halves(): { total: number; next: Record<string, number>; narrow: number; nodes: number }[] {
    return this.models.map((m) => {
      const next: Record<string, number> = {};
      let narrow = 0;
      for (let c = 1; c < m.tree.n; c = m.tree.end[c]) {
        const name = this.app.nameOf(m.tree.sym[c]);
        if (m.tree.origin[c] < 0) narrow += m.values.total[c];
        else next[name] = (next[name] ?? 0) + m.values.total[c];
      }
      return { total: m.values.total[0], next, narrow, nodes: m.tree.n };
    });
  }

  theme(dark: boolean): void {
    for (const c of this.charts) c.setTheme(dark);
  }

  private stack(k: number, node: number): string {
    const m = this.models[k];
    const out: string[] = [];
    for (let i = node; i >= 0; i = m.tree.parent[i]) out.push(i > 0 ? m.names[m.tree.sym[i]].full : m.rootName());
    return (k === 0 ? out.reverse() : out).join("\n");
  }

  private tell(k: number, node: number): void {
    const { app } = this;
    const m = this.models[k];
    if (node < 0) node = 0;
    const was = this.halvesNow[k]?.before, is = this.halvesNow[k]?.after;
    const { before } = app.chosen;
    const all = (was && app.state.before ? before : app.chosen)?.chosen.weight ?? 0, whole = m.values.total[0], v = m.values.total[node];
    const change = was && before ? [`${percent(was[node], before.chosen.weight)} before, ${percent(is[node], app.chosen.chosen.weight)} after: ${points(app.difference.of(is[node], was[node]))}${app.difference.byChance(is[node], was[node]) ? " (within chance)" : ""}`] : [];
    const several = this.halvesNow[k]?.folded[node] ?? 0;
    const name = several ? `${count(several)} narrower frame${several > 1 ? "s" : ""}` : app.nameOf(node > 0 ? m.tree.sym[node] : app.methods.symbol[this.method]);
    const known = several ? ["zoom in to see them"] : node > 0 ? facts(m, node).filter((f) => ["kind", "provenance", "module", "source"].includes(f.key)).map((f) => f.text) : [];
    this.line.replaceChildren(el("b", {}, name), ` ${[value(v, app.unit), `${percent(v, all)} of what is shown`, ...(node > 0 ? [`${percent(v, whole)} of the method's`] : []), ...change, ...known].join(" · ")}`);
  }

  // search marks the matches of the search in both halves.
  search(): void {
    const re = this.app.pattern;
    this.charts.forEach((c, k) => {
      const m = this.models[k];
      const symbols = re && Uint8Array.from(m.names, (n, s) => Number(re.test(this.app.model.searchable[s] ?? n.full)));
      if (symbols) symbols[symbols.length - 1] = 0; // several frames as one have no name
      c.match = symbols && this.halvesNow.length ? match(m.tree, m.layout, symbols) : null;
      c.redraw();
    });
  }

  found(): string {
    if (!this.app.pattern || !this.halvesNow.length) return "";
    const n = this.charts.reduce((sum, c) => sum + (c.match?.nodes ?? 0), 0);
    return n === 0 ? "no match" : `${count(n)} frame${n === 1 ? "" : "s"}`;
  }

  private foundIn = 0; // the half of the last match

  // next goes to the next match of the search: first through the callers, then through the
  // callees.
  next(dir: -1 | 1): boolean {
    const hits = this.charts.map((c, k) => (c.match?.nodes ? steps(this.models[k].tree, this.models[k].layout, c.match.symbols) : []));
    const all = hits.flatMap((list, k) => list.map((node) => ({ k, node })));
    if (!all.length) return false;
    const at = this.charts[this.foundIn].selected;
    const order = (x: { k: number; node: number }): number => x.k - this.foundIn || x.node - at;
    const to = (dir > 0 ? all.find((x) => order(x) > 0) : all.filter((x) => order(x) < 0).pop()) ?? all[dir > 0 ? 0 : all.length - 1];
    this.charts[1 - to.k].selected = -1;
    this.charts[1 - to.k].redraw();
    this.foundIn = to.k;
    this.charts[to.k].select(to.node);
    return true;
  }

  focus(): void {
    this.charts[1].canvas.focus();
  }
}
