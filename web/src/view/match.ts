// Matches threads of two recordings, and moments of two stretches of time.

import { Chance, type Tally } from "../flame/chance";
import { commandLine } from "../page/format";
import type { ViewHeader } from "./answers";
import type { State } from "./state";
import type { Span } from "./time";

// Match is a row of threads. For two recordings it has the threads of one name on both sides; for
// one recording it is one thread, which is on both sides.
export interface Match {
  readonly first: number; // the thread that names the row
  readonly before: readonly number[];
  readonly after: readonly number[];
  readonly all: readonly number[];
}

function matchThreads(h: ViewHeader): Match[] {
  if (!h.pair) return h.threads.map((_, t) => ({ first: t, before: [t], after: [t], all: [t] }));
  // Numbers differ from run to run. If a recording has several programs, their threads are
  // matched by program too.
  const many = (h.parts ?? []).some((p) => p.processes.length > 1);
  const commands = h.parts?.map((p) => new Map(p.processes.map((x) => [x.pid, commandLine(x.command)]))) ?? [];
  const rows = new Map<string, { before: number[]; after: number[] }>();
  h.threads.forEach((x, t) => {
    const side = t < h.second ? 0 : 1;
    const key = JSON.stringify([x.name || x.os, many ? commands[side]?.get(x.pid) ?? "" : ""]);
    let row = rows.get(key);
    if (!row) rows.set(key, (row = { before: [], after: [] }));
    (side ? row.after : row.before).push(t);
  });
  return [...rows.values()].map(({ before, after }) => ({ first: after[0] ?? before[0], before, after, all: [...before, ...after] }));
}

// ThreadRows are the rows in which the threads of a recording are shown: for two recordings, the
// threads of one name share a row.
export class ThreadRows {
  readonly rows: readonly Match[];
  private readonly rowOf: Int32Array; // by thread

  constructor(readonly header: ViewHeader) {
    this.rows = matchThreads(header);
    this.rowOf = new Int32Array(header.threads.length);
    this.rows.forEach((m, i) => m.all.forEach((t) => (this.rowOf[t] = i)));
  }

  // alike are the threads that share a row with a thread.
  alike(t: number): readonly number[] {
    return this.rows[this.rowOf[t]]?.all ?? [t];
  }
}

export function threadsOf(h: ViewHeader, pid: number): Set<number> {
  return new Set(h.threads.flatMap((t, i) => (t.pid === pid ? [i] : [])));
}

// processOf is the process that has all of some threads and no others; -1 if there is none, or
// only one process.
export function processOf(h: ViewHeader, threads: ReadonlySet<number>): number {
  const [first] = threads;
  if (first === undefined || h.processes.length < 2) return -1;
  const { pid } = h.threads[first];
  return h.threads.every((t, i) => (t.pid === pid) === threads.has(i)) ? pid : -1;
}

// Pairing says which moments are compared: those at the same distance from the beginning of each
// of the two.
export interface Pairing {
  readonly of: readonly [Span, Span]; // before and after, in ns of their own recording
  readonly length: number; // of the longer one
  readonly sides: boolean; // they are two recordings, not two stretches of one
}

export function pairing(h: ViewHeader, s: State): Pairing | null {
  if (!h.timed) return null;
  const span = (from: number, to: number): Span => ({ from, to: Math.max(from + 1, to) });
  if (h.pair && h.parts) {
    const of = [span(0, h.parts[0].end), span(0, h.parts[1].end)] as const;
    return { of, length: Math.max(of[0].to, of[1].to), sides: true };
  }
  if (!s.base) return null;
  const of = [span(s.base[0], s.base[1]), span(s.from, s.to || h.end)] as const;
  return { of, length: Math.max(of[0].to - of[0].from, of[1].to - of[1].from), sides: false };
}

// scales returns the factors that make amounts in a part of the time comparable: as shares of
// each side's total, as on every other tab. If one of the two is longer, its shares per second are smaller by that factor,
// which is taken out: the comparison is about how much more or less than usual.
export function scales(p: Pairing, all: readonly [number, number]): [number, number] {
  const one = (side: 0 | 1): number => (all[side] > 0 ? (p.of[side].to - p.of[side].from) / p.length / all[side] : 0);
  return [one(0), one(1)];
}

// unequal reports whether the two differ in length, so that their shares per second cannot be
// compared as they are.
export function unequal(p: Pairing): boolean {
  const [a, b] = p.of.map((s) => s.to - s.from);
  return Math.abs(a - b) > 0.02 * p.length;
}

// overTime is for parts of two that are compared over time: if one is longer, each part has a
// correspondingly smaller share of it.
export function overTime(tallies: readonly [Tally, Tally], p: Pairing): Chance {
  const of = (side: 0 | 1): Tally => {
    const longer = p.length / (p.of[side].to - p.of[side].from);
    return { weight: tallies[side].weight * longer, effective: tallies[side].effective * longer };
  };
  return new Chance(of(0), of(1));
}
