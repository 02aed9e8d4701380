// A heatmap: each column is a stretch of time from top to bottom, the next goes
// on where it ended. What happens every so often shows as a pattern.

import { el } from "../page/dom";
import { value } from "../page/format";
import type { App } from "./app";
import type { Pane } from "./pane";
import { choose, chosenSpan } from "./strip";
import { color, spanText, surface, ticks, type Span } from "./time";
import { ask } from "./wire";

// heat is the colour of a share of the most. Lightness alone tells how much; the square
// root keeps what is little in sight.
function heat(v: number, dark: boolean): string {
  if (v === 0) return dark ? "#1f242b" : "#eceef0";
  const s = Math.sqrt(v);
  return dark ? `hsl(${40 - 25 * s} 75% ${22 + 48 * s}%)` : `hsl(${45 - 30 * s} 80% ${88 - 50 * s}%)`;
}

const ROWS = 50;
const AXIS = 18;
// What a column may last, so that a cell is a round time: 20 ms at least.
const COLUMNS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600].map((s) => s * 1e9);

export class HeatmapPane implements Pane {
  readonly root: HTMLElement;
  private readonly canvas = el("canvas", { tabindex: 0, role: "application", "aria-label": "Heatmap. Drag from one cell to another to choose what lies between; Escape shows all. Plus and minus zoom, less and greater move." });
  private readonly nothing = el("p", { class: "grid-empty" }, "This recording does not know when its samples were taken, so there is nothing to lay out over time.");
  private readonly status = el("span", { class: "pane-title" });
  private readonly ramp = el("span", { class: "heat-key" }); // what the colours mean
  private rampIs = "";
  private cells: Float32Array = new Float32Array(0);
  private columns = 0;
  private column = COLUMNS[0];
  private asked = "";
  private running: AbortController | null = null;
  private from = -1; // the cell a drag began in
  private win: Span | null = null; // what is shown; null: all
  private begin = 0; // of the first cell, in ns

  constructor(private readonly app: App) {
    const button = (label: string, title: string, click: () => void): HTMLElement => el("button", { type: "button", title, "aria-label": title, click }, label);
    this.root = el("div", { class: "pane heatmap" }, el("div", { class: "pane-bar" }, this.status, this.ramp,
      button("‹", "Earlier (<)", () => this.pan(-0.5)), button("›", "Later (>)", () => this.pan(0.5)), button("−", "Longer columns (-)", () => this.scale(2, 0.5)), button("+", "Shorter columns, down to cells of 20 ms (+)", () => this.scale(0.5, 0.5)),
      el("button", { type: "button", title: "Show the chosen stretch as large as the page", click: () => this.zoom(chosenSpan(app)) }, "Zoom to selection"),
      el("button", { type: "button", click: () => this.zoom(null) }, "Whole recording")), this.canvas, this.nothing);
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
      else if (e.key === "ArrowRight" || e.key === "ArrowLeft") {
        const s = chosenSpan(app) ?? { from: this.begin, to: this.begin + this.column };
        const d = e.key === "ArrowRight" ? this.column : -this.column;
        if (e.shiftKey) choose(app, { from: s.from, to: Math.max(s.from + 1, s.to + d) });
        else if (s.from + d >= 0 && s.from + d < app.header.end) choose(app, { from: s.from + d, to: s.to + d });
      } else return;
      e.preventDefault();
      e.stopPropagation();
    });
    new ResizeObserver(() => this.paint()).observe(this.canvas);
  }

  private get cell(): number {
    return this.column / ROWS;
  }

  // time is when a cell begins.
  private time(cell: number): number {
    return this.begin + cell * this.cell;
  }

  private take(a: number, b: number): void {
    choose(this.app, { from: this.time(Math.min(a, b)), to: this.time(Math.max(a, b) + 1) });
  }

  private whole(): Span {
    return { from: 0, to: Math.max(1, this.app.header.end) };
  }

  private zoom(s: Span | null): void {
    this.win = s;
    void this.update();
  }

  private pan(by: number): void {
    const w = this.win;
    if (!w) return;
    const width = w.to - w.from;
    const from = Math.max(0, Math.min(this.app.header.end - width, w.from + by * width));
    this.zoom({ from, to: from + width });
  }

  // scale shows a longer or a shorter stretch around a place of the picture.
  private scale(by: number, place: number): void {
    const w = this.win ?? this.whole();
    const { end } = this.app.header;
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
    const v = this.cells[at] ?? 0;
    this.status.textContent = `${this.caption()} · ${spanText(this.time(at), this.time(at + 1))}: ${value(v, this.app.unit)}`;
  }

  private caption(): string {
    return `Each column is ${value(this.column, "nanoseconds")}, each cell ${value(this.cell, "nanoseconds")}; time runs down, then right`;
  }

  async update(): Promise<void> {
    const { app } = this;
    const timed = app.header.timed;
    this.nothing.hidden = timed;
    this.canvas.hidden = this.status.hidden = this.ramp.hidden = !timed;
    if (!timed) return;
    const widest = Math.max(50, Math.floor(this.canvas.clientWidth / 4));
    const win = this.win ?? this.whole();
    this.column = COLUMNS.find((c) => (win.to - win.from) / c <= widest) ?? COLUMNS[COLUMNS.length - 1];
    const begin = Math.floor(win.from / this.column) * this.column;
    const q = app.query(["from", "to"]);
    q.set("w0", String(begin));
    q.set("w1", String(Math.min(Math.max(1, app.header.end), Math.ceil(win.to / this.column) * this.column)));
    q.set("cell", String(this.cell));
    q.set("rows", String(ROWS));
    const path = app.path("heatmap", q);
    if (path !== this.asked) {
      this.asked = path;
      this.running?.abort();
      const mine = (this.running = new AbortController());
      try {
        const m = await ask<{ columns: number }>(path, mine.signal);
        if (this.running !== mine) return;
        this.cells = m.f32("weight");
        this.columns = m.head.columns;
        this.begin = begin;
        this.status.textContent = this.caption();
      } catch (e) {
        if (mine.signal.aborted) return;
        this.asked = "";
        app.onError(e instanceof Error ? e.message : String(e));
      }
    }
    this.paint();
  }

  paint(): void {
    if (!this.root.isConnected || !this.columns) return;
    const { g, width, height } = surface(this.canvas);
    let most = 0;
    for (const v of this.cells) if (v > most) most = v;
    if (!most) return;
    const bottom = height - AXIS;
    const w = width / this.columns;
    const h = bottom / ROWS;
    const gap = w > 4 ? 1 : 0;
    const dark = document.documentElement.dataset.theme === "dark";
    this.explain(most, dark);
    const c = chosenSpan(this.app);
    for (let x = 0; x < this.columns; x++) {
      for (let y = 0; y < ROWS; y++) {
        const i = x * ROWS + y;
        const v = this.cells[i] / most;
        const t = this.time(i);
        if (t >= this.app.header.end) break;
        const inside = !c || (t + this.cell > c.from && t < c.to);
        g.globalAlpha = inside ? 1 : 0.25;
        g.fillStyle = heat(v, dark);
        g.fillRect(x * w, y * h, Math.max(1, w - gap), Math.max(1, h - (h > 3 ? 1 : 0)));
      }
    }
    g.globalAlpha = 1;
    g.fillStyle = color("--soft");
    g.font = "10px system-ui, sans-serif";
    g.textBaseline = "middle";
    const span = this.columns * this.column;
    for (const t of ticks({ from: this.begin, to: this.begin + span }, Math.max(2, width / 110))) {
      const x = ((t.at - this.begin) / span) * width;
      if (x < width - 30) g.fillText(t.text, x + 2, bottom + AXIS / 2);
    }
  }

  // explain says what the colours mean.
  private explain(most: number, dark: boolean): void {
    const text = value(most, this.app.unit);
    if (this.rampIs === `${text} ${dark}`) return;
    this.rampIs = `${text} ${dark}`;
    const steps = [0, 0.02, 0.15, 0.4, 0.7, 1].map((v) => {
      const swatch = el("i", { "aria-hidden": "true" });
      swatch.style.background = heat(v, dark);
      return swatch;
    });
    this.ramp.replaceChildren("0", ...steps, `${text} in a cell`);
  }

  // shown is what is drawn, for tests: times in ns.
  shown(): { begin: number; cell: number; columns: number; sum: number } {
    return { begin: this.begin, cell: this.cell, columns: this.columns, sum: this.cells.reduce((a, b) => a + b, 0) };
  }

  theme(): void {
    this.paint();
  }

  focus(): void {
    this.canvas.focus();
  }
}
