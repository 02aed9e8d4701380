// A heatmap: each column is a stretch of time from top to bottom, and the next continues where it
// ended. Periodic activity shows as a pattern.

import { DARK, LIGHT } from "../flame/colors";
import { el, segmented } from "../page/dom";
import { percent, value } from "../page/format";
import type { App } from "./app";
import type { Chance } from "../flame/chance";
import { heat, withinChance } from "./heatcells";
import { differenceKey } from "./lanes";
import { scales, type Pairing, overTime } from "./match";
import type { Pane } from "./pane";
import type { Times } from "./state";
import { choose, chosenSpan } from "./strip";
import { points } from "./change";
import { color, spanText, surface, ticks, type Span } from "./time";
import { ask } from "./wire";

const ROWS = 50;
const AXIS = 18;
// STEPS are keys and by how many cells they move: time runs down, then right.
const STEPS: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, ArrowRight: ROWS, ArrowLeft: -ROWS, PageDown: 10, PageUp: -10, Home: -1e12, End: 1e12 };
// Possible durations of a column, so that a cell is a round time: at least 20 ms.
const COLUMNS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600].map((s) => s * 1e9);

export class HeatmapPane implements Pane {
  readonly root: HTMLElement;
  private readonly canvas = el("canvas", { tabindex: 0, role: "application", "aria-label": "Heatmap. Arrow keys go from cell to cell, with Shift from the first to the last to be chosen; Enter chooses the cell. Drag from one cell to another to choose what lies between; Escape shows all. Plus and minus zoom, less and greater move." });
  private readonly nothing = el("p", { class: "grid-empty" }, "This recording does not know when its samples were taken, so there is nothing to lay out over time.");
  private readonly status = el("span", { class: "pane-title", "aria-live": "polite" });
  private readonly ramp = el("span", { class: "heat-key" }); // what the colours mean
  private rampIs = "";
  private readonly which: { root: HTMLElement; set(v: Times): void };
  private sides: readonly Float32Array[] = []; // before and after; for one recording only its cells
  private seen: Span = { from: 0, to: 1 }; // the span of the cells
  private cursor = -1; // the cell of the keyboard's cursor
  private anchor = -1; // the cell from which it selects
  private columns = 0;
  private column = COLUMNS[0];
  private asked = "";
  private running: AbortController | null = null;
  private from = -1; // the cell in which a drag began
  private win: Span | null = null; // the span that is shown; null: all
  private begin = 0; // of the first cell, in ns

  constructor(private readonly app: App) {
    const button = (label: string, title: string, click: () => void): HTMLElement => el("button", { type: "button", title, "aria-label": title, click }, label);
    this.which = segmented<Times>("Which of the two", [
      ...(app.header.pair ? [] : [{ value: "whole" as const, label: "Whole recording", title: "The whole recording, to choose from" }]),
      { value: "before", label: "Before", title: "What is compared with" },
      { value: "after", label: "After", title: "In the same colours as before" },
      { value: "difference", label: "Difference", title: "By how much more or less there is in a cell, as shares of each" },
    ], (times) => app.set({ times }));
    this.root = el("div", { class: "pane heatmap" }, el("div", { class: "pane-bar" }, app.compared ? this.which.root : "", this.status, this.ramp,
      button("‹", "Earlier (<)", () => this.pan(-0.5)), button("›", "Later (>)", () => this.pan(0.5)), button("−", "Longer columns (-)", () => this.scale(2, 0.5)), button("+", "Shorter columns, down to cells of 20 ms (+)", () => this.scale(0.5, 0.5)),
      el("button", { type: "button", title: "Show the chosen stretch as large as the page", click: () => this.zoom(chosenSpan(app)) }, "Zoom to selection"),
      el("button", { type: "button", click: () => this.zoom(null) }, app.compared ? "Zoom out" : "Whole recording")), this.canvas, this.nothing);
    const c = this.canvas;
    c.addEventListener("wheel", (e) => {
      const box = c.getBoundingClientRect();
      if (e.ctrlKey || e.metaKey || e.altKey) this.scale(Math.exp(Math.max(-60, Math.min(60, e.deltaY)) * 0.01), (e.clientX - box.left) / box.width);
      else if (this.win && (e.deltaX || e.deltaY)) this.pan((e.deltaX || e.deltaY) / box.width);
      else return;
      e.preventDefault();
    }, { passive: false });
    c.addEventListener("pointerdown", (e) => {
      if (e.button !== 0) return;
      this.from = this.cellAt(e);
      c.setPointerCapture(e.pointerId);
    });
    c.addEventListener("pointermove", (e) => {
      const at = this.cellAt(e);
      this.tell(at);
      if (this.from >= 0 && at >= 0 && at !== this.from) this.take(this.from, at);
    });
    c.addEventListener("pointerup", (e) => {
      const at = this.cellAt(e);
      if (this.from >= 0 && at >= 0) this.take(this.from, at);
      this.from = -1;
    });
    c.addEventListener("pointercancel", () => (this.from = -1));
    c.addEventListener("keydown", (e) => {
      if (e.key === "Escape" && chosenSpan(app)) choose(app, null);
      else if (e.key === "+" || e.key === "=") this.scale(0.5, 0.5);
      else if (e.key === "-") this.scale(2, 0.5);
      else if (e.key === "<" || e.key === ",") this.pan(-0.5);
      else if (e.key === ">" || e.key === ".") this.pan(0.5);
      else if (e.key in STEPS) this.go(STEPS[e.key], e.shiftKey);
      else if ((e.key === "Enter" || e.key === " ") && this.cursor >= 0) this.take((this.anchor = this.cursor), this.cursor);
      else return;
      e.preventDefault();
      e.stopPropagation();
    });
    new ResizeObserver(() => this.paint()).observe(this.canvas);
    c.addEventListener("blur", () => this.paint());
    c.addEventListener("focus", () => this.paint());
  }

  // go moves the keyboard's cursor by a number of cells; choosing: selects the cells in between.
  private go(by: number, choosing: boolean): void {
    const from = this.cursor < 0 ? -1 : this.cursor;
    const most = Math.min(this.columns * ROWS, Math.ceil((this.all - this.begin) / this.cell)) - 1;
    this.cursor = from < 0 ? 0 : Math.max(0, Math.min(most, from + by));
    if (!choosing) this.anchor = this.cursor;
    this.tell(this.cursor);
    if (choosing) this.take(this.anchor, this.cursor);
    this.paint();
  }

  private get pairing(): Pairing | null {
    return this.app.pairing;
  }

  // all is the duration of everything that can be shown.
  private get all(): number {
    return Math.max(1, this.pairing?.length ?? this.app.header.end);
  }

  // mode says which of the two is shown; whole: nothing is compared.
  private get mode(): Times {
    const { times } = this.app.state;
    return !this.pairing ? "whole" : times && times !== "whole" ? times : "difference";
  }

  private get cell(): number {
    return this.column / ROWS;
  }

  // time is the beginning of a cell.
  private time(cell: number): number {
    return this.begin + cell * this.cell;
  }

  private take(a: number, b: number): void {
    if (this.pairing && !this.pairing.sides) return; // two stretches have no time in common
    choose(this.app, { from: this.time(Math.min(a, b)), to: this.time(Math.max(a, b) + 1) });
  }

  private whole(): Span {
    return { from: 0, to: this.all };
  }

  private zoom(s: Span | null): void {
    this.win = s;
    void this.update();
  }

  private pan(by: number): void {
    const w = this.win;
    if (!w) return;
    const width = w.to - w.from;
    const from = Math.max(0, Math.min(this.all - width, w.from + by * width));
    this.zoom({ from, to: from + width });
  }

  // scale shows a longer or a shorter stretch around a place of the picture.
  private scale(by: number, place: number): void {
    const w = this.win ?? this.whole();
    const end = this.all;
    const width = Math.max(10 * COLUMNS[0], (w.to - w.from) * by);
    if (width >= end) return this.zoom(null);
    const from = Math.max(0, Math.min(end - width, w.from + place * (w.to - w.from - width)));
    this.zoom({ from, to: from + width });
  }

  private cellAt(e: PointerEvent): number {
    const box = this.canvas.getBoundingClientRect();
    const x = Math.floor(((e.clientX - box.left) / box.width) * this.columns);
    const y = Math.floor(((e.clientY - box.top) / (box.height - AXIS)) * ROWS);
    return Math.max(0, Math.min(this.columns - 1, x)) * ROWS + Math.max(0, Math.min(ROWS - 1, y));
  }

  private tell(at: number): void {
    const { unit } = this.app;
    const has = this.sides.map((s) => s[at] ?? 0);
    const p = this.pairing;
    if (!p || has.length < 2) {
      this.status.textContent = `${spanText(this.time(at), this.time(at + 1))}: ${value(has[0] ?? 0, unit)} · ${this.caption()}`;
      return;
    }
    const all = this.alls();
    this.status.textContent = `${spanText(this.time(at), this.time(at + 1))}: before ${value(has[0], unit)} (${percent(has[0], all[0])}), after ${value(has[1], unit)} (${percent(has[1], all[1])}): ${points(this.difference(at))}${this.grey[at] ? " (within chance)" : ""}`;
  }

  // alls is the total of each of the two; time filters do not remove anything from the picture,
  // so they are left out here.
  private alls(): [number, number] {
    return [this.totals[0] ?? 0, this.totals[1] ?? 0];
  }

  private totals: readonly number[] = [];

  // difference is by how much the share of a cell is larger than before.
  private difference(i: number): number {
    const [b, a] = this.factors;
    return (this.sides[1]?.[i] ?? 0) * a - (this.sides[0]?.[i] ?? 0) * b;
  }

  private factors: readonly [number, number] = [0, 0]; // that turn weights into shares

  private chance: Chance | null = null; // of cells
  private grey: Uint8Array = new Uint8Array(0); // cells whose difference chance explains

  // same reports whether chance explains all of the difference.
  private get same(): boolean {
    return this.grey.length > 0 && this.grey.every((g, i) => g > 0 || this.difference(i) === 0);
  }

  private caption(): string {
    const text = `Each column is ${value(this.column, "nanoseconds")}, each cell ${value(this.cell, "nanoseconds")}; time runs down, then right`;
    return this.mode === "difference" && this.same ? `No stretch of time differs by more than chance. ${text}` : text;
  }

  // shared is the end of the shorter one: after it there are not two to compare.
  private shared(p: Pairing): number {
    return Math.min(...p.of.map((s) => s.to - s.from));
  }

  async update(): Promise<void> {
    const { app, pairing: p } = this;
    const timed = app.header.timed;
    this.nothing.hidden = timed;
    this.canvas.hidden = this.status.hidden = this.ramp.hidden = !timed;
    this.which.root.hidden = !timed;
    if (!timed) return;
    this.which.set(this.mode);
    const paired = JSON.stringify(p);
    if (paired !== this.paired) {
      this.paired = paired;
      this.win = null; // another span of time is shown
      this.cursor = this.anchor = -1;
    }
    const widest = Math.max(50, Math.floor(this.canvas.clientWidth / 4));
    const win = this.win ?? this.whole();
    this.column = COLUMNS.find((c) => (win.to - win.from) / c <= widest) ?? COLUMNS[COLUMNS.length - 1];
    const begin = Math.floor(win.from / this.column) * this.column;
    const end = Math.min(this.all, Math.ceil(win.to / this.column) * this.column);
    const q = app.questions.query(["from", "to"]);
    q.set("cell", String(this.cell));
    q.set("rows", String(ROWS));
    const ask1 = (w0: number, w1: number, side: string): string => {
      const x = new URLSearchParams(q);
      x.set("w0", String(w0));
      x.set("w1", String(w1));
      if (side) x.set("side", side);
      return app.questions.path("heatmap", x);
    };
    // The total of each, with all filters except those of time, is requested as a heatmap of one
    // cell.
    const whole = (s: Span, side: string): string => {
      const x = new URLSearchParams(q);
      x.set("w0", String(s.from));
      x.set("w1", String(s.to));
      x.set("cell", String(s.to - s.from));
      x.set("rows", "1");
      if (side) x.set("side", side);
      return app.questions.path("heatmap", x);
    };
    const paths: (string | null)[] = p
      ? [...p.of.map((s, i) => (s.from + begin < s.to ? ask1(s.from + begin, Math.min(s.to, s.from + end), p.sides ? ["before", "after"][i] : "") : null)),
        ...p.of.map((s, i) => whole(s, p.sides ? ["before", "after"][i] : ""))]
      : [ask1(begin, end, "")];
    const path = `${begin} ${end} ${paths.join(" ")}`;
    if (path !== this.asked) {
      this.asked = path;
      this.running?.abort();
      const mine = (this.running = new AbortController());
      try {
        const answers = await Promise.all(paths.map((x) => x && ask<{ columns: number }>(x, mine.signal)));
        const part = p?.sides && (app.state.from || app.state.to); // the picture shows the whole time
        const tallies = !p ? null : part ? (await Promise.all((["before", "after"] as const).map((side) => app.threads.sums(app.questions.query(["from", "to"]), side)))).map((t) => t.tally) : app.difference.tallies;
        if (this.running !== mine) return;
        const columns = Math.max(...answers.slice(0, p ? 2 : 1).map((m) => (m ? m.head.columns : 0)));
        this.sides = answers.slice(0, p ? 2 : 1).map((m) => {
          const out = new Float32Array(columns * ROWS);
          if (m) out.set(m.f32("weight"));
          return out;
        });
        this.totals = answers.slice(2).map((m) => (m ? m.f32("weight")[0] : 0));
        this.factors = p ? scales(p, this.alls()) : [0, 0];
        this.chance = p && tallies && overTime([tallies[0], tallies[1]], p);
        if (this.columns !== columns || this.begin !== begin || this.seen.to !== end) this.cursor = this.anchor = -1;
        this.columns = columns;
        this.begin = begin;
        this.grey = this.chance ? withinChance(this.chance, this.sides, this.columns, ROWS, (i) => this.difference(i)) : new Uint8Array(0);
        this.seen = { from: begin, to: end };
        this.status.textContent = this.status.title = this.caption();
      } catch (e) {
        if (mine.signal.aborted) return;
        this.asked = "";
        app.onError(e instanceof Error ? e.message : String(e));
      }
    }
    this.paint();
  }

  private paired = ""; // what is compared over time

  paint(): void {
    if (!this.root.isConnected || !this.columns) return;
    const { g, width, height } = surface(this.canvas);
    const { mode, pairing: p } = this;
    if (p && this.sides.length < 2) return; // it is not here yet
    const dark = document.documentElement.dataset.theme === "dark";
    const theme = dark ? DARK : LIGHT;
    let most = 0;
    // Before and after use the same colours: shares of each.
    const factor = mode === "before" ? this.factors[0] : mode === "after" ? this.factors[1] : 1;
    const shown = this.sides[mode === "after" ? 1 : 0];
    const shared = p ? this.shared(p) : 0;
    const last = p && mode === "difference" ? shared : p ? p.of[mode === "after" ? 1 : 0].to - p.of[mode === "after" ? 1 : 0].from : this.all;
    if (mode === "difference") {
      for (let i = 0; i < shown.length && this.time(i) < shared; i++) most = Math.max(most, Math.abs(this.difference(i)));
      // A single sample makes no more than a quarter of the colour: it may be chance.
      const { chosen } = this.app;
      for (const c of [chosen.before?.chosen, chosen.chosen]) if (c && c.samples > 0) most = Math.max(most, 4 / c.samples);
    } else if (p) this.sides.forEach((s, side) => s.forEach((v) => (most = Math.max(most, v * this.factors[side]))));
    else for (const v of shown) if (v > most) most = v;
    if (!most) return;
    const bottom = height - AXIS;
    const w = width / this.columns;
    const h = bottom / ROWS;
    const gap = w > 4 ? 1 : 0;
    this.explain(p, mode, most, factor, dark);
    const middle = (theme.strong.length - 1) / 2;
    const c = p && !p.sides ? null : chosenSpan(this.app);
    for (let x = 0; x < this.columns; x++) {
      for (let y = 0; y < ROWS; y++) {
        const i = x * ROWS + y;
        const t = this.time(i);
        if (t >= last) break;
        const inside = !c || (t + this.cell > c.from && t < c.to);
        g.globalAlpha = inside ? 1 : 0.25;
        g.fillStyle = mode === "difference" ? theme.strong[middle + (this.grey[i] ? 0 : Math.round((this.difference(i) / most) * middle))] : heat((shown[i] * factor) / most, dark);
        g.fillRect(x * w, y * h, Math.max(1, w - gap), Math.max(1, h - (h > 3 ? 1 : 0)));
      }
    }
    g.globalAlpha = 1;
    if (this.cursor >= 0 && document.activeElement === this.canvas) {
      g.strokeStyle = color("--ink");
      g.lineWidth = 2;
      g.strokeRect(Math.floor(this.cursor / ROWS) * w - 1, (this.cursor % ROWS) * h - 1, Math.max(4, w + 1), Math.max(4, h + 1));
    }
    g.fillStyle = color("--soft");
    g.font = "10px system-ui, sans-serif";
    g.textBaseline = "middle";
    const span = this.columns * this.column;
    const over = ((last - this.begin) / span) * width + w;
    if (p && last < Math.min(p.length, this.seen.to) && width - over > 60) {
      const text = mode === "difference" ? "only one of the two goes on" : "this one has ended";
      g.fillText(width - over > 8 + g.measureText(text).width ? text : "ended", Math.max(over, 0) + 6, bottom / 2);
    }
    for (const t of ticks({ from: this.begin, to: this.begin + span }, Math.max(2, width / 110))) {
      const x = ((t.at - this.begin) / span) * width;
      if (x < width - 30) g.fillText(t.text, x + 2, bottom + AXIS / 2);
    }
  }

  // explain says what the colours mean.
  private explain(p: Pairing | null, mode: Times, most: number, factor: number, dark: boolean): void {
    const text = mode === "difference" ? points(most) : value(factor > 0 ? most / factor : most, this.app.unit);
    const is = `${mode} ${text} ${dark} ${this.paired}`;
    if (this.rampIs === is) return;
    this.rampIs = is;
    if (p && mode === "difference") {
      this.ramp.replaceChildren(...differenceKey(p, most, dark, "(points, in a cell)"));
      return;
    }
    const steps = [0, 0.02, 0.15, 0.4, 0.7, 1].map((v) => {
      const swatch = el("i", { "aria-hidden": "true" });
      swatch.style.background = heat(v, dark);
      return swatch;
    });
    this.ramp.replaceChildren("0", ...steps, `${text} in a cell${p ? "; equal shares are of one colour" : ""}`);
  }

  // shown is what is drawn, for tests: times in ns.
  shown(): { begin: number; cell: number; columns: number; sum: number; mode: Times; sides: number[][]; differences: number[]; grey: number[] } {
    const sides = this.sides.map((s) => Array.from(s));
    return {
      begin: this.begin, cell: this.cell, columns: this.columns, sum: (sides[this.mode === "after" ? 1 : 0] ?? []).reduce((a, b) => a + b, 0), mode: this.mode, sides,
      differences: this.pairing && sides.length > 1 ? (sides[0] ?? []).map((_, i) => this.difference(i)) : [], grey: Array.from(this.grey),
    };
  }

  theme(): void {
    this.paint();
  }

  focus(): void {
    this.canvas.focus();
  }
}
