// Two recordings in one page: which of them sets the width of the graph, and the colour by which
// a frame shows how it changed.

import type { Compared, Data } from "../data";
import { Chance, Rates } from "../flame/chance";
import { CHANGES, type Theme } from "../flame/colors";
import { gather } from "../flame/tiers";
import { addUp, type Values } from "../flame/tree";
import type { Fact } from "./detail";
import { el } from "./dom";
import { count, percent, seconds, value } from "./format";
import { quality } from "./header";
import { Model } from "./model";
import type { Side, State } from "./state";

export const SIDES: readonly Side[] = ["base", "both", "new"];

// UNCHANGED is the step of the colours between less and more.
const UNCHANGED = (CHANGES - 1) / 2;

export class PairModel extends Model {
  readonly compared: Compared;
  sides!: readonly [Values, Values]; // by node
  change!: Uint8Array; // by node: step of the theme's changes
  private scale!: readonly [number, number]; // converts a weight into the unit of the comparison
  private chance!: Chance | Rates;

  constructor(data: Data) {
    super(data);
    this.compared = data.header.compared!;
  }

  override show(s: State): void {
    const { tree, cells } = this.data;
    const c = this.compared;
    const of = (second: boolean): Values =>
      addUp(tree, cells, 0, Uint8Array.from(this.data.header.threads, (_, t) => Number(t >= c.second === second)));
    const [base, now] = [of(false), of(true)];
    const part = (all: number, by: number): number => (c.normalize === "total" ? (all > 0 ? 1 / all : 0) : by);
    const [a, b] = (this.scale = [part(base.total[0], c.scale[0]), part(now.total[0], c.scale[1])]);
    const [before, after] = [base, now].map((v, side) => ({ weight: v.total[0], effective: c.effective[side] }));
    // Weights per sample may differ: at twice the rate the same number of samples means half as much.
    const seen = (t: { weight: number; effective: number }, side: 0 | 1): number => (t.weight > 0 ? t.effective / (c.scale[side] * t.weight) : 0);
    this.chance = c.normalize === "total" ? new Chance(before, after) : new Rates(before, after, [seen(before, 0), seen(after, 1)]);
    const pick = (x: Values, y: Values): Values => (s.side === "base" ? x : s.side === "new" ? y : middle(x, a, y, b));
    this.weights = pick(base, now);
    this.lay(tree, s.tiers, (merged) => {
      this.sides = merged ? [gather(merged, base), gather(merged, now)] : [base, now];
      return merged ? pick(...this.sides) : this.weights;
    });
    const [{ total: was }, { total: is }] = this.sides;
    this.change = Uint8Array.from(was, (_, i) => {
      const [x, y] = [was[i] * a, is[i] * b];
      const most = Math.max(x, y);
      return most > 0 && !this.chance.explains(was[i], is[i]) ? Math.round(((y - x) / most + 1) * UNCHANGED) : UNCHANGED;
    });
    if (s.zoom >= this.tree.n || this.values.total[s.zoom] <= 0) s.zoom = 0;
  }

  // amount is a weight of a side in the unit of the comparison.
  private amount(v: number): string {
    const unit = this.data.header.events[0].unit;
    switch (this.compared.normalize) {
      case "total": return percent(v, 1);
      case "time": return `${value(v, unit)}/s`;
    }
    return value(v, unit);
  }

  private difference(v: number): string {
    if (this.compared.normalize !== "total") return `${v > 0 ? "+" : v < 0 ? "−" : "±"}${this.amount(Math.abs(v))}`;
    const p = 100 * v;
    if (Math.abs(p) < 0.005) return "±0.00 points";
    return `${p > 0 ? "+" : "−"}${Math.abs(p).toFixed(2)} points`;
  }

  // numbers are the figures of a node on both sides.
  numbers(node: number): Fact[] {
    const [base, now] = this.sides;
    const of = (name: string, x: Float64Array, y: Float64Array): Fact => {
      const [u, v] = [x[node] * this.scale[0], y[node] * this.scale[1]];
      const mark = u !== v && this.chance.explains(x[node], y[node]) ? " (within chance)" : "";
      return { key: name, text: `${name} ${this.difference(v - u)}${mark}: ${this.amount(u)} → ${this.amount(v)}` };
    };
    const [m, n] = [base.samples[node], now.samples[node]];
    return [
      of("total", base.total, now.total), of("self", base.self, now.self),
      { key: "samples", text: `${count(m)} → ${count(n)} samples${m === 0 ? ", new" : n === 0 ? ", gone" : ""}` },
    ];
  }

  // header is the head of the page.
  header(controls: HTMLElement): HTMLElement {
    const h = this.data.header;
    const c = this.compared;
    const e = h.events[0];
    const all = c.names.map((_, side) => {
      let weight = 0;
      this.threadWeight[0].forEach((w, t) => (weight += Number(t >= c.second) === side ? w : 0));
      return weight;
    });
    const facts = c.names.map((name, side) => el("span", { class: "fact", title: name },
      `${side ? "new" : "base"}: ${name.replace(/.*\//, "")} · ${count(c.samples[side])} samples · ${e.name} ${value(all[side], e.unit)}${c.seconds[side] > 0 ? ` in ${seconds(c.seconds[side])}` : ""}`));
    const how = { total: "compared as shares", time: "compared by the second", none: "compared as they are" }[c.normalize];
    return el("header", {},
      el("div", { class: "top" },
        el("div", { class: "what" },
          el("h1", { title: h.title }, h.title),
          el("p", { class: "facts" }, ...facts, el("span", { class: "fact" }, how))),
        controls),
      quality(h));
  }
}

// middle is as wide as the mean of both, in the unit of the new one: everything that either has
// is in it.
function middle(base: Values, a: number, now: Values, b: number): Values {
  const mix = (x: Float64Array, y: Float64Array): Float64Array => y.map((v, i) => (b > 0 ? (v + (x[i] * a) / b) / 2 : x[i]));
  const add = (x: Float64Array, y: Float64Array): Float64Array => y.map((v, i) => v + x[i]);
  return { self: mix(base.self, now.self), total: mix(base.total, now.total), count: add(base.count, now.count), samples: add(base.samples, now.samples) };
}

// Key says what the colours mean.
export class Key {
  private readonly swatches = [0, UNCHANGED, CHANGES - 1].map(() => el("i", { class: "swatch", "aria-hidden": "true" }));
  readonly root = el("section", { class: "legend", "aria-label": "What the colours mean" },
    ...["less than before, or gone", "the same, or within chance", "more than before, or new"].map((text, i) =>
      el("span", { class: "kind key", title: "Of its own width: the colour says by which part a frame went up or down. Within chance: as many samples of one and the same program would differ that much more often than once in 370 times" }, this.swatches[i], text)),
    el("span", { class: "kind key", title: "Found by frame pointers or by a search of the stack" }, el("i", { class: "swatch hatched", "aria-hidden": "true" }), "guess"));

  paint(t: Theme): void {
    [0, UNCHANGED, CHANGES - 1].forEach((step, i) => (this.swatches[i].style.background = t.change[step]));
  }
}
