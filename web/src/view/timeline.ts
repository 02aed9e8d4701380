// Threads over time, a lane for each.

import { el } from "../page/dom";
import { percent } from "../page/format";
import type { App } from "./app";
import type { Pane } from "./pane";
import { choose, chosenSpan, mark, shade } from "./strip";
import { brush, color, spanText, STATE_COLORS, surface, ticks, type Span } from "./time";
import { ask } from "./wire";

const LABEL = 230; // px for names, where the window is wide enough
const SHARE = 78; // of it for the share
const AXIS = 18;
const PICTURES = 120; // of lanes that are kept: as many as large screens show

interface Lane { readonly key: string; readonly weight: Float32Array; readonly state: Uint8Array }

// Look is what a lane's picture depends on besides the lane.
interface Look { readonly width: number; readonly height: number; readonly full: number; readonly theme: string; readonly scale: number }

export class TimelinePane implements Pane {
  readonly root: HTMLElement;
  private readonly canvas = el("canvas", { tabindex: 0, role: "application", "aria-label": "Threads over time. Drag to choose a stretch of time; arrow keys move it, with Shift its end. A click on a name chooses that thread." });
  private readonly scroller: HTMLElement;
  private readonly spacer: HTMLElement;
  private readonly nothing = el("p", { class: "grid-empty" }, "This recording does not know when its samples were taken: its format merges equal stacks. Record to a format that keeps times to see threads over time.");
  private readonly status = el("span", { class: "pane-title" });
  private readonly legend = el("div", { class: "states" });
  private win: Span = { from: 0, to: 1 };
  private order: number[] = [];
  private lanes = new Map<number, Lane>();
  private pictures = new Map<Lane, { readonly look: Look; readonly canvas: HTMLCanvasElement }>(); // those drawn last
  private shownKey = "";
  private most = 1;
  private mostOf = ""; // the question whose lanes it is of
  private running: AbortController | null = null;
  private frame = 0;
  private whole = true; // what is shown is all of the recording, also when it grows
  private base: Float64Array; // weight by thread, without filters of threads and time

  constructor(private readonly app: App) {
    const zoomIn = el("button", { type: "button", title: "Show the chosen stretch as large as the page", click: () => this.zoom(chosenSpan(app)) }, "Zoom to selection");
    const zoomOut = el("button", { type: "button", click: () => this.zoom(null) }, "Whole recording");
    this.spacer = el("div", { class: "lanes-space" }, this.canvas);
    this.scroller = el("div", { class: "lanes" }, this.spacer);
    this.base = new Float64Array(app.header.threads.length);
    this.win = { from: 0, to: Math.max(1, app.header.end) };
    this.root = el("div", { class: "pane timeline" }, el("div", { class: "pane-bar" }, this.legend, this.status, zoomIn, zoomOut), this.scroller, this.nothing);
    brush(this.canvas, { window: () => this.win, chosen: () => chosenSpan(app), choose: (s) => choose(app, s), left: () => this.label });
    this.canvas.addEventListener("click", (e) => {
      const box = this.canvas.getBoundingClientRect();
      if (e.clientX - box.left >= this.label) return;
      const t = this.laneAt(e.clientY - box.top);
      if (t < 0) return;
      const threads = new Set(e.ctrlKey || e.metaKey || e.shiftKey ? app.state.threads : []);
      if (app.state.threads.has(t) && (app.state.threads.size === 1 || threads.size > 0)) threads.delete(t);
      else threads.add(t);
      app.set({ threads });
    });
    this.canvas.addEventListener("pointermove", (e) => {
      const box = this.canvas.getBoundingClientRect();
      const t = this.laneAt(e.clientY - box.top);
      this.canvas.style.cursor = e.clientX - box.left < this.label ? (t >= 0 ? "pointer" : "default") : "col-resize";
      this.canvas.title = t >= 0 && e.clientX - box.left < this.label ? app.model.threadName(t) : "";
    });
    this.canvas.addEventListener("wheel", (e) => {
      if (!e.ctrlKey && !e.metaKey && !e.altKey) return;
      e.preventDefault();
      const box = this.canvas.getBoundingClientRect();
      const share = Math.max(0, Math.min(1, (e.clientX - box.left - this.label) / Math.max(1, box.width - this.label)));
      const w = this.win.to - this.win.from;
      const by = Math.exp(Math.max(-60, Math.min(60, e.deltaY)) * 0.01);
      const width = Math.max(1e6, Math.min(app.header.end, w * by));
      const from = Math.max(0, Math.min(app.header.end - width, this.win.from + share * (w - width)));
      this.zoom({ from: Math.floor(from), to: Math.ceil(from + width) });
    }, { passive: false });
    this.scroller.addEventListener("scroll", () => this.later(), { passive: true });
    new ResizeObserver(() => this.later()).observe(this.scroller);
  }

  // label is how wide the names are, in px.
  private get label(): number {
    return Math.min(LABEL, Math.round(this.scroller.clientWidth * 0.38));
  }

  private rowHeight(): number {
    return Math.round((parseFloat(getComputedStyle(document.documentElement).fontSize) || 16) * 1.375);
  }

  private laneAt(y: number): number {
    if (y < AXIS) return -1;
    return this.order[Math.floor((y - AXIS + this.scroller.scrollTop) / this.rowHeight())] ?? -1;
  }

  private zoom(s: Span | null): void {
    this.whole = !s;
    this.win = s ?? { from: 0, to: Math.max(1, this.app.header.end) };
    this.later();
  }

  update(fresh: boolean): void {
    const { app } = this;
    const timed = app.header.timed;
    this.nothing.hidden = timed;
    this.scroller.hidden = this.root.querySelector<HTMLElement>(".pane-bar")!.hidden = !timed;
    if (!timed) return;
    if (this.whole) this.win = { from: 0, to: Math.max(1, app.header.end) };
    if (fresh) this.count();
    this.later();
  }

  private async count(): Promise<void> {
    const { app } = this;
    // Lanes stay where they are while a stretch of time or threads are chosen.
    const m = await app.threadSums(app.query(["from", "to", "threads"])).catch(() => null);
    if (!m) return;
    this.base = m.weight;
    const { samples } = m;
    this.order = Array.from(this.base.keys()).filter((t) => samples[t] > 0).sort((a, b) => this.base[b] - this.base[a] || a - b);
    this.later();
  }

  private later(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      void this.paint();
    });
  }

  // visible are the lanes that can be seen, and some around them.
  private visible(): number[] {
    const row = this.rowHeight();
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / row) - 5);
    return this.order.slice(first, Math.min(first + 200, first + Math.ceil(this.scroller.clientHeight / row) + 12));
  }

  private async fetch(): Promise<void> {
    const { app } = this;
    const q = app.query(["from", "to", "threads"]);
    const bins = Math.max(10, Math.min(4000, Math.floor((this.scroller.clientWidth - this.label) / 2)));
    q.set("w0", String(this.win.from));
    q.set("w1", String(this.win.to));
    q.set("bins", String(bins));
    const key = `${app.header.version} ${q.toString()}`;
    if (key !== this.shownKey) {
      this.shownKey = key;
      if (!this.whole || !app.header.growing) this.lanes.clear(); // else those from before stand until they are replaced
      this.running?.abort();
      this.running = null;
    }
    const missing = this.visible().filter((t) => this.lanes.get(t)?.key !== key);
    if (!missing.length || this.running) return;
    const mine = (this.running = new AbortController());
    q.set("lanes", missing.join("."));
    try {
      const m = await ask<{ bins: number }>(app.path("lanes", q), mine.signal);
      if (this.running !== mine) return;
      const n = m.head.bins;
      const weight = m.f32("weight");
      const state = m.u8("state");
      if (key !== this.mostOf) this.most = 1;
      this.mostOf = key;
      m.u32("thread").forEach((t, i) => this.lanes.set(t, { key, weight: weight.subarray(i * n, (i + 1) * n), state: state.subarray(i * n, (i + 1) * n) }));
      for (const v of weight) if (v > this.most) this.most = v;
      this.running = null;
      this.later();
    } catch (e) {
      if (mine.signal.aborted) return;
      this.running = null;
      app.onError(e instanceof Error ? e.message : String(e));
    }
  }

  private async paint(): Promise<void> {
    if (!this.root.isConnected || this.root.hidden || !this.app.header.timed) return;
    const { app } = this;
    const row = this.rowHeight();
    const height = this.scroller.clientHeight;
    const space = `${Math.max(height, this.order.length * row + AXIS)}px`;
    if (this.spacer.style.height !== space) this.spacer.style.height = space;
    if (this.canvas.style.height !== `${height}px`) this.canvas.style.height = `${height}px`;
    void this.fetch();
    const { g, width } = surface(this.canvas);
    const left = this.label; // asked once: the browser looks it up in the layout
    const scale = this.canvas.width / width;
    const theme = document.documentElement.dataset.theme === "dark" ? "dark" : "light";
    const colors = app.header.states.map((s) => STATE_COLORS[theme][s] ?? STATE_COLORS[theme].unknown);
    const ink = color("--ink"), soft = color("--soft"), line = color("--line"), on = color("--on");
    // A bin in which a thread did nothing else all the time is as high as its lane.
    const full = Math.max(1, Math.min(this.most, this.app.unit === "nanoseconds" ? Math.max((this.win.to - this.win.from) / Math.max(1, this.binsShown()), app.header.events[app.state.event]?.period ?? 0) : this.most));
    const all = app.chosen.all.weight;
    g.textBaseline = "middle";
    g.font = `${0.75 * (row / 1.375)}px system-ui, sans-serif`;
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / row));
    for (let k = first; k < this.order.length; k++) {
      const y = AXIS + k * row - this.scroller.scrollTop;
      if (y > height) break;
      const t = this.order[k];
      const chosen = app.state.threads.size === 0 || app.state.threads.has(t);
      if (app.state.threads.has(t)) {
        g.fillStyle = on;
        g.fillRect(0, y, left, row - 1);
      }
      g.fillStyle = line;
      g.fillRect(0, y + row - 1, width, 1);
      const lane = this.lanes.get(t);
      if (lane) {
        g.globalAlpha = chosen ? 1 : 0.35;
        g.drawImage(this.picture(lane, { width: width - left, height: row - 1, full, theme, scale }, colors), left, y, width - left, row - 1);
        g.globalAlpha = 1;
      }
      g.fillStyle = chosen ? ink : soft;
      const share = percent(this.base[t], all);
      g.fillText(label(g, app.model.threadName(t), app.header.threads[t].name, left - SHARE), 8, y + row / 2);
      g.fillStyle = soft;
      g.textAlign = "right";
      g.fillText(share, left - 8, y + row / 2);
      g.textAlign = "left";
    }
    g.fillStyle = color("--panel");
    g.fillRect(0, 0, width, AXIS);
    g.fillStyle = soft;
    g.font = "10px system-ui, sans-serif";
    for (const t of ticks(this.win, Math.max(2, (width - left) / 110))) {
      const x = left + ((t.at - this.win.from) / (this.win.to - this.win.from)) * (width - left);
      g.fillRect(Math.round(x), AXIS - 5, 1, 5);
      if (x < width - 40) g.fillText(t.text, x + 3, AXIS / 2);
    }
    shade(g, chosenSpan(app), this.win, left, width, height);
    mark(g, app.state.base, this.win, left, width, height);
    const c = chosenSpan(app);
    this.status.textContent = `${this.order.length} thread${this.order.length === 1 ? "" : "s"} with samples${c ? ` · ${spanText(c.from, c.to)}` : ""}`;
    this.states(theme);
  }

  private binsShown(): number {
    for (const l of this.lanes.values()) return l.weight.length;
    return 1;
  }

  // picture is what a lane looks like. While lanes are scrolled they stay the same.
  private picture(lane: Lane, look: Look, colors: readonly string[]): HTMLCanvasElement {
    const last = this.pictures.get(lane);
    if (last && (Object.keys(look) as (keyof Look)[]).every((k) => last.look[k] === look[k])) return last.canvas;
    let canvas = last?.canvas;
    if (!last && this.pictures.size >= PICTURES) { // a canvas costs more than what is drawn on it
      const [[oldest, p]] = this.pictures;
      this.pictures.delete(oldest);
      canvas = p.canvas;
    }
    canvas ??= el("canvas");
    const w = Math.max(1, Math.round(look.width * look.scale)), h = Math.max(1, Math.round(look.height * look.scale));
    if (canvas.width !== w) canvas.width = w;
    if (canvas.height !== h) canvas.height = h;
    const g = canvas.getContext("2d")!;
    g.clearRect(0, 0, w, h);
    const n = lane.weight.length;
    const bw = w / n;
    for (let b = 0; b < n; b++) {
      const v = lane.weight[b];
      if (v <= 0) continue;
      g.fillStyle = colors[lane.state[b]];
      const tall = Math.max(2 * look.scale, Math.min(1, v / look.full) * (h - 2 * look.scale));
      g.fillRect(b * bw, h - tall, bw + 0.3, tall);
    }
    this.pictures.set(lane, { look, canvas });
    return canvas;
  }

  private states(theme: "light" | "dark"): void {
    const present = [...new Set(this.app.chosen.states.map((s) => s.state))];
    this.legend.replaceChildren(...present.map((s) => {
      const swatch = el("i", { class: "swatch" });
      swatch.style.background = STATE_COLORS[theme][s] ?? "";
      return el("span", { class: "fact" }, swatch, ` ${s}`);
    }));
  }

  theme(): void {
    this.later();
  }

  focus(): void {
    this.canvas.focus();
  }
}

// label is a thread's name, with its number where there is room.
function label(g: CanvasRenderingContext2D, full: string, name: string, width: number): string {
  return !name || g.measureText(full).width <= width ? clip(g, full, width) : clip(g, name, width);
}

// clip shortens text to a width. The end stays: threads of a pool differ there.
function clip(g: CanvasRenderingContext2D, s: string, width: number): string {
  if (g.measureText(s).width <= width) return s;
  const shorter = (n: number): string => (n < 8 ? s.slice(0, n) + "…" : `${s.slice(0, n - (n >> 1))}…${s.slice(-(n >> 1))}`);
  let n = s.length;
  while (n > 1 && g.measureText(shorter(n)).width > width) n = Math.min(n - 1, Math.ceil(n * 0.95));
  return shorter(n);
}
