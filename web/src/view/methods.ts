// The list of methods, as candid adds it up.

import type { Message } from "./wire";

// Methods says which symbol belongs to which method.
export interface Methods {
  readonly n: number;
  readonly of: Int32Array; // by symbol: the method, -1 for placeholders of missing frames
  readonly symbol: Int32Array; // by method: one of its symbols
}

export function methodsOf(of: Int32Array): Methods {
  let n = 0;
  for (const m of of) if (m >= n) n = m + 1;
  const symbol = new Int32Array(n).fill(-1);
  of.forEach((m, s) => {
    if (m >= 0 && symbol[m] < 0) symbol[m] = s;
  });
  return { n, of, symbol };
}

export interface Sums {
  readonly self: Float64Array; // by method
  readonly total: Float64Array; // a stack counts once, however often the method is on it
  readonly count: Float64Array; // self, in samples
  readonly samples: Float64Array; // total, in samples
  readonly kind: Uint8Array; // the most frequent kind of its innermost frames
  readonly remark: Uint8Array; // GUESSED, COARSE or 0: whether it is less certain than it looks
  readonly node: Int32Array; // the heaviest node that is of the method, -1: none
}

export const GUESSED = 1, COARSE = 2;

// sumsOf reads the sums that candid sends for those of n methods that have any.
export function sumsOf(m: Message<unknown>, n: number): Sums {
  const out: Sums = { self: new Float64Array(n), total: new Float64Array(n), count: new Float64Array(n), samples: new Float64Array(n), kind: new Uint8Array(n), remark: new Uint8Array(n), node: new Int32Array(n).fill(-1) };
  const self = m.f64("self"), total = m.f64("total"), count = m.u32("count"), samples = m.u32("samples"), kind = m.u8("kind"), remark = m.u8("remark"), node = m.u32("node");
  m.u32("method").forEach((method, i) => {
    out.self[method] = self[i];
    out.total[method] = total[i];
    out.count[method] = count[i];
    out.samples[method] = samples[i];
    out.kind[method] = kind[i];
    out.remark[method] = remark[i];
    out.node[method] = node[i];
  });
  return out;
}
