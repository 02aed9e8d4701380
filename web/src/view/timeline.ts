// Threads over time, a lane for each.

import { el, segmented } from "../page/dom";
import { count as grouped, percent, value } from "../page/format";
import type { App } from "./app";
import { clip, drawBand, label, Pictures, sum, type Band, type Lane } from "./lanes";
import { CELL, LaneStore } from "./lanestore";
import type { Pairing } from "./match";
import type { Menu } from "./menu";
import type { Pane } from "./pane";
import { choose, chosenSpan, ended, mark, shade, SIDES } from "./strip";
import { points } from "./change";
import { brush, color, spanText, STATE_COLORS, surface, ticks, type Span } from "./time";
import { ThreadShares } from "./threadshares";
import { TimelineKey } from "./timelinekey";

const LABEL = [230, 290]; // px for names if the window is wide enough; the second if two are compared
const SHARE = [78, 118]; // of it for the share
const BAND = 6; // px between two that are compared, for the difference
const AXIS = 18;

export class TimelinePane implements Pane {
  readonly root: HTMLElement;
  private readonly canvas = el("canvas", { tabindex: 0, role: "application", "aria-label": "Threads over time. Up and down go from thread to thread, Space chooses it, Enter it alone, m says what can be done with it. Drag to choose a stretch of time; left and right move it, with Shift its end. Plus and minus zoom, less and greater move." });
  private readonly scroller: HTMLElement;
  private readonly spacer: HTMLElement;
  private readonly nothing = el("p", { class: "grid-empty" }, "This recording does not know when its samples were taken: its format merges equal stacks. Record to a format that keeps times to see threads over time.");
  private readonly status = el("span", { class: "pane-title", "aria-live": "polite" });
  private readonly over = segmented<"whole" | "difference">("Two stretches of time", [
    { value: "whole", label: "Where they are", title: "The whole recording, with both stretches marked" },
    { value: "difference", label: "Over each other", title: "Both from their beginnings, with the difference" },
  ], (times) => this.app.set({ times }));
  private win: Span = { from: 0, to: 1 };
  private cursor = -1; // the row of the keyboard's cursor
  private paired = ""; // what is compared over time
  private readonly pictures = new Pictures();
  private frame = 0;
  private readonly colours: TimelineKey;
  private readonly shares: ThreadShares;
  private readonly lanes: LaneStore;
  private whole = true; // the whole recording is shown, also when it grows

  constructor(private readonly app: App, private readonly menu: Menu) {
    const zoomIn = el("button", { type: "button", title: "Show the chosen stretch as large as the page", click: () => this.zoom(chosenSpan(app)) }, "Zoom to selection");
    const zoomOut = el("button", { type: "button", click: () => this.zoom(null) }, "Whole recording");
    this.spacer = el("div", { class: "lanes-space" }, this.canvas);
    this.scroller = el("div", { class: "lanes" }, this.spacer);
    this.colours = new TimelineKey(app);
    this.shares = new ThreadShares(app);
    this.lanes = new LaneStore(app, () => this.later());
    this.win = { from: 0, to: Math.max(1, app.header.end) };
    this.root = el("div", { class: "pane timeline" }, el("div", { class: "pane-bar" }, this.colours.states, this.colours.scale, this.status, app.compared && !app.header.pair ? this.over.root : "", zoomIn, zoomOut), this.scroller, this.nothing);
    this.canvas.addEventListener("keydown", (e) => this.typed(e));
    // Two stretches of time that are drawn over each other have no common time to choose.
    const free = (): boolean => !this.pairing || this.pairing.sides;
    brush(this.canvas, { window: () => this.win, chosen: () => (free() ? chosenSpan(app) : null), choose: (s) => free() && choose(app, s), left: () => this.label });
    this.canvas.addEventListener("click", (e) => {
      const box = this.canvas.getBoundingClientRect();
      if (e.clientX - box.left >= this.label) return;
      const r = this.laneAt(e.clientY - box.top);
      if (r < 0) return;
      this.cursor = r;
      this.choose(r, e.ctrlKey || e.metaKey || e.shiftKey);
    });
    this.canvas.addEventListener("contextmenu", (e) => {
      const box = this.canvas.getBoundingClientRect();
      const r = this.laneAt(e.clientY - box.top);
      if (r < 0) return;
      e.preventDefault();
      menu.openThread(app.threads.rows[r].first, e.clientX, e.clientY);
    });
    this.canvas.addEventListener("pointermove", (e) => {
      const box = this.canvas.getBoundingClientRect();
      const r = this.laneAt(e.clientY - box.top);
      const x = e.clientX - box.left - this.label;
      this.canvas.style.cursor = x < 0 ? (r >= 0 ? "pointer" : "default") : "col-resize";
      this.canvas.title = r >= 0 && x < 0 ? app.threads.rowName(app.threads.rows[r]) : "";
      if (r >= 0 && x >= 0) this.tell(r, x / Math.max(1, box.width - this.label));
      else this.tell(-1, 0);
    });
    this.canvas.addEventListener("pointerleave", () => this.tell(-1, 0));
    this.canvas.addEventListener("wheel", (e) => {
      if (!e.ctrlKey && !e.metaKey && !e.altKey) return;
      e.preventDefault();
      const box = this.canvas.getBoundingClientRect();
      const share = Math.max(0, Math.min(1, (e.clientX - box.left - this.label) / Math.max(1, box.width - this.label)));
      this.rescale(Math.exp(Math.max(-60, Math.min(60, e.deltaY)) * 0.01), share);
    }, { passive: false });
    this.scroller.addEventListener("scroll", () => this.later(), { passive: true });
    new ResizeObserver(() => this.later()).observe(this.scroller);
  }

  // pairing says what is compared over time; null: one recording is shown as it is.
  private get pairing(): Pairing | null {
    return this.app.pairing;
  }

  // all is the duration of everything that can be shown.
  private get all(): number {
    return Math.max(1, this.pairing?.length ?? this.app.header.end);
  }

  // label is the width of the names, in px.
  private get label(): number {
    return Math.min(LABEL[this.pairing ? 1 : 0], Math.round(this.scroller.clientWidth * 0.38));
  }

  private laneHeight(): number {
    return Math.round((parseFloat(getComputedStyle(document.documentElement).fontSize) || 16) * 1.375);
  }

  private rowHeight(): number {
    return this.pairing ? 2 * this.laneHeight() + BAND : this.laneHeight();
  }

  // rescale shows a longer or a shorter stretch around a place of the picture.
  private rescale(by: number, place: number): void {
    const w = this.win.to - this.win.from;
    const width = Math.max(1e6, Math.min(this.all, w * by));
    if (width >= this.all) return this.zoom(null);
    const from = Math.max(0, Math.min(this.all - width, this.win.from + place * (w - width)));
    this.zoom({ from: Math.floor(from), to: Math.ceil(from + width) });
  }

  // choose selects or deselects a row of threads; several: in addition to those selected.
  private choose(r: number, several: boolean): void {
    const { app } = this;
    const { all } = app.threads.rows[r];
    const before = app.state.threads;
    const threads = new Set(several ? before : []);
    const on = all.some((t) => before.has(t));
    if (on && (threads.size > 0 || before.size === all.filter((t) => before.has(t)).length)) for (const t of all) threads.delete(t);
    else for (const t of all) threads.add(t);
    app.set({ threads });
  }

  private typed(e: KeyboardEvent): void {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const at = this.order.indexOf(this.cursor);
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.rowHeight()) - 2);
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 };
    if (e.key in steps) this.go(at < 0 ? 0 : Math.max(0, Math.min(this.order.length - 1, at + steps[e.key])));
    else if (e.key === "+" || e.key === "=") this.rescale(0.5, 0.5);
    else if (e.key === "-") this.rescale(2, 0.5);
    else if (e.key === "<" || e.key === "," || e.key === ">" || e.key === ".") {
      const d = (e.key === "<" || e.key === "," ? -0.5 : 0.5) * (this.win.to - this.win.from);
      const by = Math.max(-this.win.from, Math.min(this.all - this.win.to, d));
      if (by) this.zoom({ from: this.win.from + by, to: this.win.to + by });
    } else if (at < 0) return;
    else if (e.key === " ") this.choose(this.cursor, true);
    else if (e.key === "Enter") this.choose(this.cursor, false);
    else if (e.key === "m" || e.key === "ContextMenu") {
      const box = this.canvas.getBoundingClientRect();
      this.menu.openThread(this.app.threads.rows[this.cursor].first, box.left + 60, box.top + AXIS + (at + 1) * this.rowHeight() - this.scroller.scrollTop);
    } else return;
    e.preventDefault();
    e.stopPropagation();
  }

  // matches reports whether the search finds a row, by the names of its threads.
  private matches(re: RegExp, r: number): boolean {
    return this.app.threads.rows[r].all.some((t) => re.test(this.app.model.threadName(t)));
  }

  // next goes to the next thread that the search finds.
  next(dir: -1 | 1): boolean {
    const re = this.app.pattern;
    const hits = this.order.flatMap((r, k) => (re && this.matches(re, r) ? [k] : []));
    if (!hits.length) return false;
    const at = this.cursor >= 0 ? this.order.indexOf(this.cursor) : dir > 0 ? -1 : this.order.length;
    this.go((dir > 0 ? hits.find((k) => k > at) : hits.filter((k) => k < at).pop()) ?? hits[dir > 0 ? 0 : hits.length - 1]);
    this.canvas.focus({ preventScroll: true });
    return true;
  }

  found(): string {
    const re = this.app.pattern;
    if (!re) return "";
    const n = this.order.filter((r) => this.matches(re, r)).length;
    return n === 0 ? "no match" : `${grouped(n)} thread${n === 1 ? "" : "s"}`;
  }

  // go moves the keyboard's cursor to a row and makes it visible.
  private go(k: number): void {
    const r = this.order[k];
    if (r === undefined) return;
    this.cursor = r;
    const row = this.rowHeight(), y = k * row, s = this.scroller;
    if (y < s.scrollTop) s.scrollTop = y;
    else if (y + row + AXIS > s.scrollTop + s.clientHeight) s.scrollTop = y + row + AXIS - s.clientHeight;
    this.tell(r, -1);
    this.later();
  }

  private told = ""; // about a row, while the pointer or the cursor is at it

  // tell says what a row has at a place of the picture, or in total; -1: no row.
  private tell(r: number, place: number): void {
    this.told = r < 0 ? "" : this.words(r, place);
    this.status.textContent = this.told || this.summary();
  }

  private words(r: number, place: number): string {
    const { app, pairing: p } = this;
    const m = app.threads.rows[r];
    if (!m) return "";
    const name = app.threads.rowName(m);
    const chosen = m.all.some((t) => app.state.threads.has(t)) ? ", chosen" : "";
    const shares = (x: readonly number[], all: readonly number[]): string =>
      `before ${percent(x[0], all[0])}, after ${percent(x[1], all[1])}: ${points((all[1] > 0 ? x[1] / all[1] : 0) - (all[0] > 0 ? x[0] / all[0] : 0))} points`;
    if (place < 0) return `${name}: ${p ? shares([this.shares.base[0][r], this.shares.base[1][r]], this.shares.alls) : `${value(this.shares.base[1][r], app.unit)}, ${percent(this.shares.base[1][r], this.app.chosen.all.weight)}`}${chosen}`;
    const lanes = ([0, 1] as const).map((side) => this.lanes.of(side, r));
    const n = lanes[1]?.weight.length ?? lanes[0]?.weight.length ?? 0;
    if (!n) return name;
    // The smallest time that can be pointed at: some pixels.
    const room = Math.max(1, this.scroller.clientWidth - this.label);
    const step = Math.max(1, Math.round((CELL * n) / room));
    const b = Math.min(n - 1, Math.floor((place * n) / step) * step), e = Math.min(n, b + step);
    const at = (bin: number): number => this.win.from + (bin / n) * (this.win.to - this.win.from);
    const has = lanes.map((l) => sum(l, b, e));
    const what = p ? `before ${value(has[0], app.unit)}, after ${value(has[1], app.unit)}` : value(has[1], app.unit);
    return `${name} · ${spanText(at(b), at(e))}: ${what}`;
  }

  private summary(): string {
    const n = this.order.length;
    const c = this.pairing && !this.pairing.sides ? null : chosenSpan(this.app);
    return `${n} ${this.app.header.pair ? "names of threads" : `thread${n === 1 ? "" : "s"}`} with samples${c ? ` · ${spanText(c.from, c.to)}` : ""}`;
  }

  private laneAt(y: number): number {
    if (y < AXIS) return -1;
    return this.order[Math.floor((y - AXIS + this.scroller.scrollTop) / this.rowHeight())] ?? -1;
  }

  private zoom(s: Span | null): void {
    this.whole = !s;
    this.win = s ?? { from: 0, to: this.all };
    this.later();
  }

  update(fresh: boolean): void {
    const { app } = this;
    const timed = app.header.timed;
    this.nothing.hidden = timed;
    this.scroller.hidden = this.root.querySelector<HTMLElement>(".pane-bar")!.hidden = !timed;
    if (!timed) return;
    this.over.set(this.pairing ? "difference" : "whole");
    const paired = JSON.stringify(this.pairing);
    if (paired !== this.paired) { // another span of time is shown
      this.paired = paired;
      this.whole = true;
      fresh = true;
    }
    if (this.whole) this.win = { from: 0, to: this.all };
    if (fresh) void this.count();
    this.later();
  }

  private async count(): Promise<void> {
    if (!(await this.shares.count())) return;
    if (!this.order.includes(this.cursor)) this.cursor = -1;
    this.later();
  }

  private get order(): readonly number[] {
    return this.shares.order;
  }

  private later(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      void this.paint();
    });
  }

  // visible are the visible lanes, and some around them.
  private visible(): number[] {
    const row = this.rowHeight();
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / row) - 5);
    return this.order.slice(first, Math.min(first + 200, first + Math.ceil(this.scroller.clientHeight / row) + 12));
  }

  private async paint(): Promise<void> {
    if (!this.root.isConnected || this.root.hidden || !this.app.header.timed) return;
    const { app, pairing: p } = this;
    const row = this.rowHeight(), tall = this.laneHeight();
    const height = this.scroller.clientHeight;
    const space = `${Math.max(height, this.order.length * row + AXIS)}px`;
    if (this.spacer.style.height !== space) this.spacer.style.height = space;
    if (this.canvas.style.height !== `${height}px`) this.canvas.style.height = `${height}px`;
    void this.lanes.fetch({ win: this.win, whole: this.whole, width: this.scroller.clientWidth - this.label, rows: this.visible() });
    const { g, width } = surface(this.canvas);
    const left = this.label; // read once: the browser looks it up in the layout
    const scale = this.canvas.width / width;
    const theme = document.documentElement.dataset.theme === "dark" ? "dark" : "light";
    const colors = app.header.states.map((s) => STATE_COLORS[theme][s] ?? STATE_COLORS[theme].unknown);
    const ink = color("--ink"), soft = color("--soft"), line = color("--line"), on = color("--on");
    // A bin that a thread spent entirely in one state is as high as its lane.
    const full = Math.max(1, Math.min(this.lanes.most, app.unit === "nanoseconds" ? Math.max((this.win.to - this.win.from) / Math.max(1, this.lanes.bins), app.header.events[app.state.event]?.period ?? 0) : this.lanes.most));
    const all = p ? this.shares.alls : [0, app.chosen.all.weight];
    g.textBaseline = "middle";
    const font = `${0.75 * (tall / 1.375)}px system-ui, sans-serif`;
    g.font = font;
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / row));
    const last = Math.min(this.order.length, first + Math.ceil(height / row) + 1);
    const bands = new Map<number, Band | null>();
    if (p) for (let k = first; k < last; k++) bands.set(k, this.lanes.band(this.order[k], width - left, this.win, this.shares));
    // A single sample makes no more than a quarter of the colour: it may be chance.
    const strongest = Math.max(this.lanes.differs, 4 * this.colours.oneSample);
    for (let k = first; k < last; k++) {
      const y = AXIS + k * row - this.scroller.scrollTop;
      const r = this.order[k];
      const m = app.threads.rows[r];
      const marked = m.all.some((t) => app.state.threads.has(t));
      const chosen = app.state.threads.size === 0 || marked;
      if (marked) {
        g.fillStyle = on;
        g.fillRect(0, y, left, row - 1);
      }
      g.fillStyle = line;
      g.fillRect(0, y + row - 1, width, 1);
      g.globalAlpha = chosen ? 1 : 0.35;
      for (const side of this.lanes.sides) {
        const lane = this.lanes.of(side, r);
        if (!lane) continue;
        const look = { width: width - left, height: tall - 1, full: full * Math.max(1, m.before.length, m.after.length), theme, scale, down: !!p && side === 1 };
        g.drawImage(this.pictures.of(lane, look, colors), left, y + (look.down ? tall + BAND : 0), width - left, tall - 1);
      }
      if (p) drawBand(g, bands.get(k) ?? null, strongest, left, y + tall - 1, width - left, BAND, theme);
      g.globalAlpha = 1;
      g.textAlign = "right";
      g.fillStyle = soft;
      for (const side of this.lanes.sides) g.fillText(p ? `${SIDES[side]} ${percent(this.shares.base[side][r], all[side])}` : percent(this.shares.base[side][r], all[side]), left - 8, y + (p && side ? tall + BAND : 0) + tall / 2);
      g.textAlign = "left";
      g.fillStyle = chosen ? ink : soft;
      const room = left - SHARE[p ? 1 : 0];
      g.fillText(p?.sides ? clip(g, app.threads.rowName(m), room) : label(g, app.model.threadName(m.first), app.header.threads[m.first].name, room), 8, y + row / 2);
      if (p) { // by how much its share rose
        const d = this.shares.change(r);
        g.font = `600 ${font}`;
        const chance = this.shares.chance?.explains(this.shares.base[0][r], this.shares.base[1][r]) ?? false;
        g.fillStyle = chance ? soft : d > 0 ? color("--more") : d < 0 ? color("--less") : soft;
        g.textAlign = "right";
        g.fillText(chance && d !== 0 ? `~ ${points(d)}` : points(d), left - 8, y + row / 2);
        g.textAlign = "left";
        g.font = font;
      }
      if (r === this.cursor && document.activeElement === this.canvas) {
        g.strokeStyle = color("--accent");
        g.lineWidth = 2;
        g.strokeRect(1, y + 1, width - 2, row - 3);
      }
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
    if (p) {
      g.globalAlpha = 0.5;
      for (let k = first; k < last; k++) {
        const y = AXIS + k * row - this.scroller.scrollTop;
        ended(g, app, this.win, left, width, (side) => [Math.max(AXIS, y + (side ? tall + BAND : 0)), tall - 1]);
      }
      g.globalAlpha = 1;
    }
    if (!p || p.sides) {
      shade(g, chosenSpan(app), this.win, left, width, height);
      mark(g, app.state.base, this.win, left, width, height);
    }
    this.status.textContent = this.told || this.summary();
    this.colours.tell(strongest, theme);
  }

  // compared is the drawing of two, for tests: by row, both sides' shares of the total, the sums
  // of the lanes, and the band.
  compared(): { name: string; before: number; after: number; lanes: (number | null)[]; band: number[]; chance: boolean; grey: number[] }[] {
    const total = (l: Lane | null): number | null => l && sum(l, 0, l.weight.length);
    return this.order.map((r) => [r, this.lanes.band(r, 400, this.win, this.shares)] as const).map(([r, band]) => ({
      name: this.app.threads.label(this.app.threads.rows[r].first), before: this.shares.base[0][r], after: this.shares.base[1][r],
      lanes: [total(this.lanes.of(0, r)), total(this.lanes.of(1, r))], band: Array.from(band?.by ?? []),
      chance: this.shares.chance?.explains(this.shares.base[0][r], this.shares.base[1][r]) ?? false, grey: Array.from(band?.chance ?? []),
    }));
  }

  theme(): void {
    this.later();
  }

  focus(): void {
    this.canvas.focus();
  }
}
