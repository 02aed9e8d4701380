// candid's answers about a recording, as the page keeps them.

import { named, type Data, type Header, type Quality } from "../data";
import { fromDepth, type Cells } from "../flame/tree";
import { effective, type Tally } from "../flame/chance";
import { methodsOf, type Methods } from "./methods";
import type { Limits } from "./state";
import type { Message } from "./wire";

export interface ViewHeader extends Header {
  readonly name: string;
  readonly timed: boolean;
  readonly end: number; // ns
  readonly states: readonly string[];
  readonly kernelCPU: readonly number[];
  readonly sums: readonly Count[]; // by event
  readonly pair: boolean; // two recordings are compared
  readonly second: number; // the first thread of the second of them
  readonly parts: readonly Part[] | null; // the data of each of them
  readonly cost: Cost;
  readonly version: number; // how often it has grown
  readonly growing: boolean; // it is still being made
  readonly stopped: string; // why it is no longer followed, though it has not ended
  readonly skipped: number; // symbols that were sent before
  readonly elapsed: number; // ns, of a growing recording
  readonly starts: boolean; // there are frames by which threads start
  readonly skid: boolean; // there are frames in which samples came late
  readonly whole: boolean; // these are shown by default
}

export interface Cost { readonly copying: number; readonly targetCPU: number; readonly ownCPU: number; readonly memory: number; readonly firstWalked: number; readonly samples: number; readonly recorded: number } // ns and bytes; 0: not known

// Part is one of two recordings that are compared.
export interface Part extends Pick<Header, "command" | "host" | "start" | "duration" | "engine" | "describe" | "candid" | "notes" | "lost" | "throttled" | "quality" | "processes"> {
  readonly name: string;
  readonly periods: readonly number[]; // by event
  readonly sums: readonly Count[];
  readonly cost: Cost;
  readonly end: number; // ns
}

export interface Count { readonly samples: number; readonly weight: number }

export interface Wait extends Count { readonly state: string; readonly method: number }

export interface StateRow extends Count { readonly state: string; readonly syscall: string }

export interface Chosen {
  readonly all: Count;
  readonly chosen: Count;
  readonly quality: Quality;
  readonly states: readonly StateRow[];
  readonly threadCount: Float64Array;
  readonly threadWeight: Float64Array;
  readonly squares: number; // of the samples' weights
  readonly before: { readonly all: Count; readonly chosen: Count; readonly quality: Quality; readonly states: readonly StateRow[] } | null; // of two that are compared
}

// ThreadSums has the sum of each thread, and of all.
export interface ThreadSums { readonly weight: Float64Array; readonly samples: Float64Array; readonly tally: Tally }

export function tallyOf(h: CountsHead): Tally {
  return { weight: h.chosen.weight, effective: effective(h.chosen, h.squares) };
}

export interface CountsHead { all: Count; chosen: Count; quality: Quality; states: StateRow[]; squares: number }

// firstOf is the event that is shown by default: the first that has samples.
export function firstOf(h: ViewHeader): number {
  return Math.max(0, h.sums.findIndex((s) => s.samples > 0));
}

// Named has the data that is known by symbol.
export interface Named {
  readonly data: Data;
  readonly methods: Methods;
  readonly starts: Uint8Array; // 1 for functions by which threads start
}

// Loaded has the tree, and what is known of the recording.
export interface Loaded extends Named { readonly header: ViewHeader }

// loaded reads it. For a growing recording only new names are sent: old has the others.
export function loaded(m: Message<ViewHeader>, old: Named): Loaded {
  const h = m.head;
  let kind = m.u8("kind");
  let starts = m.u8("start");
  let { funcs, names } = named(h, m.u32("func"), kind);
  let method = m.i32("method");
  if (h.skipped) {
    funcs = [...old.data.funcs.slice(0, h.skipped), ...funcs];
    names = [...old.data.names.slice(0, h.skipped), ...names];
    const join = <T extends Uint8Array | Int32Array>(a: T, b: T): T => {
      const out = new (a.constructor as { new (n: number): T })(h.skipped + b.length);
      out.set(a.subarray(0, h.skipped));
      out.set(b, h.skipped);
      return out;
    };
    kind = join(old.data.kind, kind);
    starts = join(old.starts, starts);
    method = join(old.methods.of, method);
  }
  const none = new Int32Array(0);
  const cells: Cells = { n: 0, node: none, thread: none, event: none, count: new Float64Array(0), weight: new Float64Array(0) };
  const data: Data = {
    header: h, funcs, names, kind, tree: fromDepth(new Int32Array(m.u32("depth")), m.i32("sym")), line: m.i32("line"), lines: new Int32Array(m.u32("lines")),
    derived: m.u8("derived"), heuristic: m.u8("heuristic"), stitched: m.u8("stitched"), coarse: m.u8("coarse"), virtual: m.u8("virtual"), samples: m.u32("samples"), cells,
  };
  return { header: h, data, methods: methodsOf(method), starts };
}

// cellsOf is the self of each node, of one event.
export function cellsOf(c: Message<CountsHead>, event: number): Cells {
  const node = new Int32Array(c.u32("node"));
  const n = node.length;
  return {
    n, node, thread: c.has("thread") ? new Int32Array(c.u32("thread")) : new Int32Array(n),
    event: new Int32Array(n).fill(event), count: c.f64("count"), weight: c.f64("weight"),
  };
}

// limitsOf is what the state may refer to: of one of so many recordings.
export function limitsOf(h: ViewHeader, served: number): Limits {
  return { served, threads: h.threads.length, events: h.events.length, first: firstOf(h), whole: h.whole, kinds: h.kinds.length, states: h.states, end: h.end };
}
