// Whether chance explains that a share differs between two recordings: the rule of
// internal/diff/chance.go, with shares of all that there is.

import type { Pairing } from "./match";

// SIGMAS is what diff.Unlikely comes to in standard deviations.
const SIGMAS = 2.999976992703393, UNLIKELY = 0.0027;

// Tally is what one of the two has: its samples' weight, and how many of the same weight tell as much.
export interface Tally { readonly weight: number; readonly effective: number }

export function effective(n: { readonly samples: number; readonly weight: number }, squares: number): number {
  return squares > 0 ? (n.weight * n.weight) / squares : n.samples;
}

const LOGS = new Float64Array(1024); // of factorials
for (let i = 2; i < LOGS.length; i++) LOGS[i] = LOGS[i - 1] + Math.log(i);

// logFactorial is that of a whole number, by Stirling's series where it is large.
function logFactorial(n: number): number {
  if (n < LOGS.length) return LOGS[n];
  return (n + 0.5) * Math.log(n) - n + 0.5 * Math.log(2 * Math.PI) + 1 / (12 * n) - 1 / (360 * n * n * n);
}

function choose(n: number, k: number): number {
  return k < 0 || k > n ? -Infinity : logFactorial(n) - logFactorial(k) - logFactorial(n - k);
}

// Chance is asked about many parts of the same two.
export class Chance {
  private readonly known = new Map<string, boolean>(); // of small numbers, which come again and again

  constructor(private readonly before: Tally, private readonly after: Tally) {}

  // explains says whether chance alone does, of weights before and after.
  explains(before: number, after: number): boolean {
    const { before: b, after: a } = this;
    let n1 = b.effective, n2 = a.effective;
    let k1 = b.weight > 0 ? (before / b.weight) * n1 : 0, k2 = a.weight > 0 ? (after / a.weight) * n2 : 0;
    if (n1 <= 0 || n2 <= 0 || k1 + k2 <= 0 || k1 + k2 >= n1 + n2) return true;
    if (k1 + k2 > (n1 + n2) / 2) [k1, k2] = [n1 - k1, n2 - k2]; // the rarer of the two outcomes tells the same
    const k = k1 + k2, n = n1 + n2;
    if ((Math.min(n1, n2) * k) / n > 50) {
      const p = k / n;
      return Math.abs(k1 / n1 - k2 / n2) / Math.sqrt(p * (1 - p) * (1 / n1 + 1 / n2)) < SIGMAS;
    }
    if (k1 / n1 < k2 / n2) [n1, n2, k2] = [n2, n1, k1]; // the side with less is summed up
    const key = `${n2 === a.effective ? "" : "-"}${Math.round(k)} ${Math.round(k2)}`;
    let out = this.known.get(key);
    if (out === undefined) this.known.set(key, (out = exact(Math.round(n1), Math.round(n2), Math.round(k), Math.round(k2))));
    return out;
  }
}

// overTime is about parts of two that are laid over each other in time: if one is longer,
// as much less of it lies in each part.
export function overTime(tallies: readonly [Tally, Tally], p: Pairing): Chance {
  const of = (side: 0 | 1): Tally => {
    const longer = p.length / (p.of[side].to - p.of[side].from);
    return { weight: tallies[side].weight * longer, effective: tallies[side].effective * longer };
  };
  return new Chance(of(0), of(1));
}

// exact is Fisher's test of both sides.
function exact(n1: number, n2: number, k: number, k2: number): boolean {
  const all = choose(n1 + n2, k);
  let sum = 0;
  for (let x = Math.min(k2, k); x >= 0; x--) {
    const p = Math.exp(choose(n2, x) + choose(n1, k - x) - all);
    if (Number.isFinite(p)) sum += p;
    if (2 * sum > UNLIKELY) return true;
    if (!(p >= sum * 1e-9)) break;
  }
  return 2 * sum > UNLIKELY;
}
