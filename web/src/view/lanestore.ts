// The lanes of the timeline: requested from candid for the rows that are visible, and kept.

import { sum, type Band, type Lane } from "./lanes";
import type { App } from "./app";
import type { Chance } from "../flame/chance";
import { scales, type Pairing } from "./match";
import { SIDES } from "./strip";
import type { Span } from "./time";
import { ask } from "./wire";

export type Side = 0 | 1; // before and after; for one recording: after

// CELL is how many px of the band share a colour.
export const CELL = 8;

// Shown is the part of the timeline whose lanes are wanted.
export interface Shown {
  readonly win: Span;
  readonly whole: boolean; // the whole recording is shown, also when it grows
  readonly width: number; // px
  readonly rows: readonly number[];
}

export class LaneStore {
  most = 1; // the largest weight of a bin, among the loaded lanes
  differs = 0; // the largest difference in a cell of the band, among them
  private lanes: [Map<number, Lane>, Map<number, Lane>] = [new Map(), new Map()]; // by thread, before and after
  private sums = new Map<string, { readonly parts: readonly Lane[]; readonly lane: Lane }>(); // of rows with several threads
  private shownKey = "";
  private mostOf = ""; // the request whose lanes most and differs are of
  private running: AbortController | null = null;

  constructor(private readonly app: App, private readonly loaded: () => void) {}

  // sides are the sides that have lanes.
  get sides(): readonly Side[] {
    return this.app.pairing ? [0, 1] : [1];
  }

  // fetch requests the lanes that are missing.
  async fetch(shown: Shown): Promise<void> {
    const { app } = this;
    const { pairing: p } = app;
    const q = app.questions.query(["from", "to", "threads"]);
    const bins = Math.max(10, Math.min(4000, Math.floor(shown.width / 2)));
    q.set("bins", String(bins));
    const key = `${app.header.version} ${shown.win.from} ${shown.win.to} ${JSON.stringify(p)} ${q.toString()}`;
    if (key !== this.shownKey) {
      this.shownKey = key;
      if (!shown.whole || !app.header.growing) this.lanes.forEach((l) => l.clear()); // otherwise the old ones stay until they are replaced
      this.running?.abort();
      this.running = null;
    }
    const missing = this.sides.map((side) => shown.rows.flatMap((r) => app.threads.rows[r][SIDES[side]]).filter((t) => this.lanes[side].get(t)?.key !== key).slice(0, 200));
    if (missing.every((list) => !list.length) || this.running) return;
    const mine = (this.running = new AbortController());
    try {
      const answers = await Promise.all(this.sides.map((side, i) => {
        if (!missing[i].length) return null;
        const x = new URLSearchParams(q);
        const from = p?.of[side].from ?? 0;
        x.set("w0", String(from + shown.win.from));
        x.set("w1", String(from + shown.win.to));
        if (p) x.set("until", String(Math.max(1, p.of[side].to)));
        x.set("lanes", missing[i].join("."));
        return ask<{ bins: number }>(app.questions.path("lanes", x), mine.signal);
      }));
      if (this.running !== mine) return;
      if (key !== this.mostOf) {
        this.most = 1;
        this.differs = 0;
      }
      this.mostOf = key;
      answers.forEach((m, i) => {
        if (!m) return;
        const n = m.head.bins;
        const weight = m.f32("weight");
        const state = m.u8("state");
        m.u32("thread").forEach((t, k) => this.lanes[this.sides[i]].set(t, { key, weight: weight.subarray(k * n, (k + 1) * n), state: state.subarray(k * n, (k + 1) * n) }));
        for (const v of weight) if (v > this.most) this.most = v;
      });
      this.running = null;
      this.loaded();
    } catch (e) {
      if (mine.signal.aborted) return;
      this.running = null;
      app.onError(e instanceof Error ? e.message : String(e));
    }
  }

  // of is a row's lane on a side; null: it is not loaded, or there is nothing.
  of(side: Side, r: number): Lane | null {
    const threads = this.app.threads.rows[r]?.[SIDES[side]] ?? [];
    const parts: Lane[] = [];
    for (const t of threads) {
      const l = this.lanes[side].get(t);
      if (!l) return null;
      parts.push(l);
    }
    if (parts.length < 2) return parts[0] ?? null;
    const name = `${side} ${r}`;
    const known = this.sums.get(name);
    if (known && known.parts.length === parts.length && known.parts.every((l, i) => l === parts[i])) return known.lane;
    const lane = added(parts);
    this.sums.set(name, { parts, lane });
    return lane;
  }

  // band is the difference of a row, cell by cell, as shares of the totals of each side, and whether
  // chance explains it.
  band(r: number, width: number, win: Span, of: { readonly alls: readonly [number, number]; readonly cellChance: Chance | null }): Band | null {
    const p: Pairing | null = this.app.pairing;
    const { before, after } = this.app.threads.rows[r];
    const lanes = [this.of(0, r), this.of(1, r)];
    if (!p || (before.length && !lanes[0]) || (after.length && !lanes[1])) return null;
    const n = (lanes[1] ?? lanes[0])?.weight.length ?? 0;
    if (!n) return null;
    const [b, a] = scales(p, of.alls);
    const cells = Math.max(1, Math.min(n, Math.floor(width / CELL)));
    const out = new Float64Array(cells), chance = new Uint8Array(cells).fill(1);
    // After the end of the shorter one there is nothing to compare.
    const both = Math.min(...p.of.map((s) => s.to - s.from));
    for (let c = 0; c < cells; c++) {
      const from = Math.floor((c * n) / cells), to = Math.floor(((c + 1) * n) / cells);
      if (win.from + (to / n) * (win.to - win.from) > both + 1e6) break;
      const was = sum(lanes[0], from, to), is = sum(lanes[1], from, to);
      out[c] = is * a - was * b;
      chance[c] = of.cellChance?.explains(was, is) ? 1 : 0;
      if (Math.abs(out[c]) > this.differs) this.differs = Math.abs(out[c]);
    }
    return { by: out, chance };
  }

  // bins is how many bins a lane has.
  get bins(): number {
    for (const side of this.lanes) for (const l of side.values()) return l.weight.length;
    return 1;
  }
}

// added is the sum of lanes; each bin has the state of the thread with the most weight.
function added(parts: readonly Lane[]): Lane {
  const n = parts[0].weight.length;
  const weight = new Float32Array(n), state = new Uint8Array(n);
  for (let b = 0; b < n; b++) {
    let most = 0;
    for (const l of parts) {
      const v = l.weight[b] ?? 0;
      weight[b] += v;
      if (v > most) {
        most = v;
        state[b] = l.state[b];
      }
    }
  }
  return { key: parts[0].key, weight, state };
}
