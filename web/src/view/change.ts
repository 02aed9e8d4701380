// By how much a part of the whole rose or fell, in words and cells.

import type { App } from "./app";
import type { Cell } from "./cells";

// points is a change of a share, in percentage points.
export function points(d: number): string {
  const p = 100 * d;
  if (Math.abs(p) < 0.005) return p === 0 ? "±0" : p > 0 ? "+ < 0.01" : "− < 0.01";
  return `${p > 0 ? "+" : "−"}${Math.abs(p).toFixed(2)}`;
}

// delta is a change, in its colour; one that chance explains is grey and marked as in reports.
export function delta(d: number, chance = false): Cell {
  return chance && d !== 0 ? { kind: "marked", class: "soft", text: `~ ${points(d)}` } : { kind: "marked", class: d > 0 ? "more" : d < 0 ? "less" : "soft", text: points(d) };
}

// changed is the delta of a part of the whole.
export function changed(app: App, after: number, before: number): Cell {
  return delta(app.difference.of(after, before), app.difference.byChance(after, before));
}

// CHANCE explains the mark.
export const CHANCE = "~ and grey: chance explains the difference";
