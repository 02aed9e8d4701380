// What each row of threads has of the whole, and the order in which the timeline shows the rows.

import type { ThreadSums } from "./answers";
import type { App } from "./app";
import { Chance } from "../flame/chance";
import type { Side } from "./lanestore";
import { overTime, type Match } from "./match";
import { SIDES } from "./strip";

export class ThreadShares {
  order: number[] = []; // rows of threads: app.threads.rows
  base: [Float64Array, Float64Array] = [new Float64Array(0), new Float64Array(0)]; // weight by row, without filters of threads and time
  alls: [number, number] = [0, 0]; // of all rows
  chance: Chance | null = null; // of two: of rows
  cellChance: Chance | null = null; // and of cells

  constructor(private readonly app: App) {}

  // count requests the sums; it returns whether they are of what is compared now.
  async count(): Promise<boolean> {
    const { app } = this;
    const { pairing: p } = app;
    const paired = JSON.stringify(p);
    // Lanes stay where they are while the user chooses a stretch of time or threads.
    const asked = (side: Side): Promise<ThreadSums> => {
      const q = app.questions.query(["from", "to", "threads"]);
      if (p && !p.sides) {
        q.set("from", String(p.of[side].from));
        q.set("to", String(p.of[side].to));
      }
      return app.threads.sums(q, SIDES[side]);
    };
    const after = asked(1);
    const both = await Promise.all([p ? asked(0) : after, after]).catch(() => null);
    if (!both || paired !== JSON.stringify(app.pairing)) return false;
    const matches = app.threads.rows;
    const add = (m: Match, side: Side, of: Float64Array): number => m[SIDES[side]].reduce((a, t) => a + of[t], 0);
    const base = ([0, 1] as const).map((side) => Float64Array.from(matches, (m) => add(m, side, both[side].weight)));
    this.base = [base[0], base[1]];
    this.alls = [base[0].reduce((a, b) => a + b, 0), base[1].reduce((a, b) => a + b, 0)];
    this.chance = p && new Chance(both[0].tally, both[1].tally);
    this.cellChance = p && overTime([both[0].tally, both[1].tally], p);
    const [b, a] = this.alls;
    const most = p ? (r: number): number => Math.max(b > 0 ? base[0][r] / b : 0, a > 0 ? base[1][r] / a : 0) : (r: number): number => base[1][r];
    const there = (r: number): boolean => add(matches[r], 1, both[1].samples) > 0 || (!!p && add(matches[r], 0, both[0].samples) > 0);
    this.order = Array.from(matches.keys()).filter(there).sort((x, y) => most(y) - most(x) || x - y);
    return true;
  }

  // change is by how much a row's share of the whole rose.
  change(r: number): number {
    const [b, a] = this.alls;
    return (a > 0 ? this.base[1][r] / a : 0) - (b > 0 ? this.base[0][r] / b : 0);
  }
}
