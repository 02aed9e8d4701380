// Whether chance explains the difference of a share between two recordings: the rule of
// internal/diff/chance.go, for shares of the whole.

// SIGMAS is diff.Unlikely in standard deviations.
const SIGMAS = 2.999976992703393, UNLIKELY = 0.0027;

// Tally is the total of one of the two: its samples' weight, and how many samples of equal weight
// carry the same information.
export interface Tally { readonly weight: number; readonly effective: number }

export function effective(n: { readonly samples: number; readonly weight: number }, squares: number): number {
  return squares > 0 ? (n.weight * n.weight) / squares : n.samples;
}

const LOGS = new Float64Array(1024); // of factorials
for (let i = 2; i < LOGS.length; i++) LOGS[i] = LOGS[i - 1] + Math.log(i);

// logFactorial is the logarithm of the factorial of a whole number, by Stirling's series if it is
// large.
function logFactorial(n: number): number {
  if (n < LOGS.length) return LOGS[n];
  return (n + 0.5) * Math.log(n) - n + 0.5 * Math.log(2 * Math.PI) + 1 / (12 * n) - 1 / (360 * n * n * n);
}

function choose(n: number, k: number): number {
  return k < 0 || k > n ? -Infinity : logFactorial(n) - logFactorial(k) - logFactorial(n - k);
}

// Chance answers for many parts of the same two totals.
export class Chance {
  private readonly known = new Map<string, boolean>(); // for small numbers, which recur often

  constructor(private readonly before: Tally, private readonly after: Tally) {}

  // explains reports whether chance alone explains the difference of the weights before and
  // after.
  explains(before: number, after: number): boolean {
    const { before: b, after: a } = this;
    let n1 = b.effective, n2 = a.effective;
    let k1 = b.weight > 0 ? (before / b.weight) * n1 : 0, k2 = a.weight > 0 ? (after / a.weight) * n2 : 0;
    if (n1 <= 0 || n2 <= 0 || k1 + k2 <= 0 || k1 + k2 >= n1 + n2) return true;
    if (k1 + k2 > (n1 + n2) / 2) [k1, k2] = [n1 - k1, n2 - k2]; // the rarer of the two outcomes gives the same answer
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

// exact is Fisher's two-sided test.
function exact(n1: number, n2: number, k: number, k2: number): boolean {
  const all = choose(n1 + n2, k);
  return likely(Math.min(k2, k), (x) => choose(n2, x) + choose(n1, k - x) - all);
}

// likely adds up probabilities, whose logarithms at returns, from most down, and reports whether
// twice the sum is more than UNLIKELY.
function likely(most: number, at: (x: number) => number): boolean {
  let sum = 0;
  for (let x = most; x >= 0; x--) {
    const p = Math.exp(at(x));
    if (Number.isFinite(p)) sum += p;
    if (2 * sum > UNLIKELY) return true;
    if (!(p >= sum * 1e-9)) break;
  }
  return 2 * sum > UNLIKELY;
}

// Rates answers for parts of two that are compared per second, or as they are: seen is how many
// samples of each side stand for the same time.
export class Rates {
  private readonly known = new Map<string, boolean>();

  constructor(private readonly before: Tally, private readonly after: Tally, private readonly seen: readonly [number, number]) {}

  explains(before: number, after: number): boolean {
    const { before: b, after: a, seen: [t1, t2] } = this;
    const k1 = b.weight > 0 ? (before / b.weight) * b.effective : 0;
    let k2 = a.weight > 0 ? (after / a.weight) * a.effective : 0;
    if (t1 <= 0 || t2 <= 0 || k1 + k2 <= 0) return true;
    let k = k1 + k2, part = t2 / (t1 + t2);
    if (k * Math.min(part, 1 - part) > 50) return Math.abs(k2 - k * part) / Math.sqrt(k * part * (1 - part)) < SIGMAS;
    if (k2 > k * part) [k2, part] = [k1, 1 - part]; // the side with less is summed up
    k = Math.round(k);
    const key = `${k2 === k1 ? "" : "-"}${k} ${Math.round(k2)}`;
    let out = this.known.get(key);
    if (out === undefined) this.known.set(key, (out = likely(Math.min(Math.round(k2), k), (x) => choose(k, x) + x * Math.log(part) + (k - x) * Math.log1p(-part))));
    return out;
  }
}
