// How two that are compared differ, and what chance explains of it.

import { CHANGES } from "../flame/colors";
import { Chance, type Tally } from "../flame/chance";
import type { Chosen } from "./answers";

export class Difference {
  tallies: readonly [Tally, Tally] | null = null; // before and after; null: nothing is compared
  private chance: Chance | null = null;

  constructor(private readonly app: { readonly chosen: Chosen }) {}

  // set takes over what is compared.
  set(tallies: readonly [Tally, Tally] | null): void {
    this.tallies = tallies;
    this.chance = tallies && new Chance(...tallies);
  }

  // of is by how much a share of the whole rose, from before to after.
  of(after: number, before: number): number {
    const { chosen } = this.app;
    const b = chosen.before;
    const share = (part: number, all: number): number => (all > 0 ? part / all : 0);
    return b ? share(after, chosen.chosen.weight) - share(before, b.chosen.weight) : 0;
  }

  // byChance reports whether chance alone explains the difference of a part.
  byChance(after: number, before: number): boolean {
    return this.chance?.explains(before, after) ?? false;
  }

  // ofNodes is, for each node of a tree, by which part of itself it rose or fell, beyond chance.
  ofNodes(after: Float64Array, before: Float64Array): Uint8Array | null {
    const { chosen } = this.app;
    if (!chosen.before) return null;
    const [a, b] = [chosen.chosen.weight || 1, chosen.before.chosen.weight || 1];
    const out = new Uint8Array(after.length);
    for (let i = 0; i < out.length; i++) {
      const [x, y] = [after[i] / a, before[i] / b];
      const most = Math.max(x, y);
      out[i] = Math.round(((most > 0 && !this.byChance(after[i], before[i]) ? (x - y) / most : 0) + 1) * ((CHANGES - 1) / 2));
    }
    return out;
  }
}
