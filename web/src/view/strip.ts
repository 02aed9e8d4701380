// The strip above every tab: what happened over the whole recording, and the stretch of it that
// every tab shows.

import { el } from "../page/dom";
import type { App } from "./app";
import { unequal } from "./match";
import { brush, color, spanText, STATE_COLORS, surface, ticks, type Span } from "./time";
import { ask } from "./wire";

export class Strip {
  readonly root: HTMLElement;
  private readonly canvas = el("canvas", { "aria-hidden": "true" });
  private sums: Float64Array[] = []; // one for each of two recordings that are compared
  private bins = 0;
  private asked = "";
  private running: AbortController | null = null;

  constructor(private readonly app: App) {
    this.root = el("div", {
      class: "strip", tabindex: 0, role: "slider", "aria-label": "Time. Arrow keys move the chosen stretch, with Shift its end; Escape shows all.",
      "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": 0, title: "Drag to choose a stretch of time; every view shows only that. A click shows all.",
    }, this.canvas);
    brush(this.root, { window: () => this.window(), chosen: () => this.chosen(), choose: (s) => choose(app, s) });
    new ResizeObserver(() => void this.update()).observe(this.root);
  }

  window(): Span {
    return { from: 0, to: Math.max(1, this.app.header.end) };
  }

  chosen(): Span | null {
    return chosenSpan(this.app);
  }

  async update(): Promise<void> {
    const { app } = this;
    this.root.hidden = !app.header.timed;
    if (!app.header.timed) return;
    const c = this.chosen();
    this.root.setAttribute("aria-valuetext", c ? spanText(c.from, c.to) : "all");
    this.root.setAttribute("aria-valuenow", String(Math.round((100 * app.state.from) / this.window().to)));
    const q = app.questions.query(["from", "to"]);
    q.set("bins", String(Math.max(10, Math.min(4000, Math.floor(this.root.clientWidth / 2)))));
    const sides = app.header.pair ? ["before", "after"] : [""];
    const paths = sides.map((side) => {
      const p = new URLSearchParams(q);
      if (side) p.set("side", side);
      return app.questions.path("overview", p);
    });
    const path = paths.join(" ");
    if (path !== this.asked) {
      this.asked = path;
      this.running?.abort();
      const mine = (this.running = new AbortController());
      try {
        const list = await Promise.all(paths.map((p) => ask<{ bins: number }>(p, mine.signal)));
        if (this.running !== mine) return;
        this.sums = list.map((m) => m.f64("weight"));
        this.bins = list[0].head.bins;
      } catch (e) {
        if (mine.signal.aborted) return;
        this.asked = "";
        app.onError(e instanceof Error ? e.message : String(e));
      }
    }
    this.paint();
  }

  paint(): void {
    const { g, width, height } = surface(this.canvas);
    const theme = document.documentElement.dataset.theme === "dark" ? "dark" : "light";
    const w = this.window();
    const room = (height - 14) / Math.max(1, this.sums.length);
    const most = highest(this.sums, this.bins, this.app.header.states.length);
    this.sums.forEach((sums, i) => drawBins(g, sums, this.bins, this.app.header.states, STATE_COLORS[theme], width, room, i * room, most));
    g.font = "10px system-ui, sans-serif";
    if (this.sums.length > 1) {
      g.textBaseline = "top";
      SIDES.forEach((side, i) => tag(g, side, 3, i * room + 1));
      ended(g, this.app, w, 0, width, (i) => [i * room, room]);
      g.fillStyle = color("--line");
      g.fillRect(0, Math.round(room) - 0.5, width, 1);
    }
    g.fillStyle = color("--soft");
    g.textBaseline = "bottom";
    for (const t of ticks(w, Math.max(2, width / 110))) {
      const x = (t.at / w.to) * width;
      g.fillRect(Math.round(x), height - 14, 1, 3);
      if (x < width - 40) g.fillText(t.text, x + 3, height - 1);
    }
    shade(g, this.chosen(), w, 0, width, height);
    mark(g, this.app.state.base, w, 0, width, height);
  }
}

// SIDES are the labels of the two that are drawn above each other.
export const SIDES = ["before", "after"] as const;

// tag writes a word over the drawing.
export function tag(g: CanvasRenderingContext2D, text: string, x: number, y: number): void {
  const wide = g.measureText(text).width;
  g.fillStyle = color("--veil");
  g.fillRect(x - 2, y - 1, wide + 4, 13);
  g.fillStyle = color("--soft");
  g.fillText(text, x, y);
}

// ended dims, for two recordings of different length, the part after the end of one; at says
// where one of the two is drawn.
export function ended(g: CanvasRenderingContext2D, app: App, w: Span, left: number, width: number, at: (side: number) => readonly [y: number, height: number]): void {
  const p = app.pairing;
  if (!p || !unequal(p)) return;
  p.of.forEach((s, side) => {
    const x = left + Math.max(0, Math.min(1, (s.to - s.from - w.from) / (w.to - w.from))) * (width - left);
    const [y, height] = at(side);
    if (x >= width) return;
    g.fillStyle = color("--hover");
    g.fillRect(x, y, width - x, height);
    g.fillStyle = color("--soft");
    g.fillRect(x, y, 1, height);
  });
}

// highest is the maximum of a bin, for one or for two that share their scale.
function highest(list: readonly Float64Array[], bins: number, n: number): number {
  if (!bins) return 0;
  let most = 0;
  for (const sums of list) {
    const all = new Float64Array(bins);
    for (let b = 0; b < bins; b++) for (let k = 0; k < n; k++) all[b] += sums[b * n + k];
    all.sort();
    // A sleep counts where it ends, so a few bins may have far more than all others: those are cut
    // off, or the others would not be visible.
    const usual = all[Math.floor(0.98 * (bins - 1))];
    most = Math.max(most, usual > 0 && all[bins - 1] > 4 * usual ? 1.5 * usual : all[bins - 1]);
  }
  return most;
}

// drawBins draws the states of each bin, stacked.
function drawBins(g: CanvasRenderingContext2D, sums: Float64Array, bins: number, states: readonly string[], colors: Record<string, string>, width: number, height: number, top: number, most: number): void {
  if (!bins || most <= 0) return;
  const n = states.length;
  const at = new Float64Array(bins);
  for (const k of [1, 2, 7, 4, 0, 5, 6, 3]) {
    if (k >= n) continue;
    g.fillStyle = colors[states[k]] ?? colors.unknown;
    g.beginPath();
    for (let b = 0; b < bins; b++) {
      const v = Math.min((sums[b * n + k] / most) * (height - 2), height - 2 - at[b]);
      if (v <= 0) continue;
      const x = (b * width) / bins;
      g.rect(x, top + height - at[b] - v, width / bins + 0.3, v);
      at[b] += v;
    }
    g.fill();
  }
}

// shade dims the time that is not chosen.
export function shade(g: CanvasRenderingContext2D, c: Span | null, w: Span, left: number, width: number, height: number): void {
  if (!c) return;
  const x = (t: number): number => left + Math.max(0, Math.min(1, (t - w.from) / (w.to - w.from))) * (width - left);
  const [a, b] = [x(c.from), x(c.to)];
  g.fillStyle = color("--veil");
  g.fillRect(left, 0, a - left, height);
  g.fillRect(b, 0, width - b, height);
  g.fillStyle = color("--accent");
  g.fillRect(a - 1, 0, 2, height);
  g.fillRect(b - 1, 0, 2, height);
}

// mark shows the stretch of time that the chosen one is compared with.
export function mark(g: CanvasRenderingContext2D, base: readonly [number, number] | null, w: Span, left: number, width: number, height: number): void {
  if (!base) return;
  const x = (t: number): number => left + Math.max(0, Math.min(1, (t - w.from) / (w.to - w.from))) * (width - left);
  const [a, b] = base.map(x);
  g.fillStyle = g.strokeStyle = color("--less");
  g.globalAlpha = 0.15;
  g.fillRect(a, 0, b - a, height);
  g.globalAlpha = 1;
  g.setLineDash([4, 3]);
  g.strokeRect(a + 0.5, 0.5, Math.max(1, b - a - 1), height - 1);
  g.setLineDash([]);
  if (b - a > 50) {
    g.font = "10px system-ui, sans-serif";
    g.textBaseline = "top";
    g.fillText("before", a + 4, 3);
  }
}

export function chosenSpan(app: App): Span | null {
  const { from, to } = app.state;
  return from || to ? { from, to: to || app.header.end } : null;
}

// choose makes every tab show only a stretch of time; null: all.
export function choose(app: App, s: Span | null): void {
  if (!s) app.set({ from: 0, to: 0 });
  else app.set({ from: Math.max(0, Math.floor(s.from)), to: Math.min(app.header.end, Math.max(Math.floor(s.from) + 1, Math.ceil(s.to))) });
}
