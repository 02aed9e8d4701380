// The visible rows of the call tree and of the callers, as candid makes them, and which of them
// are open.

import type { Name } from "../flame/label";
import type { Methods } from "./methods";
import type { Message } from "./wire";

// Known has what names and identifies rows.
export interface Known {
  readonly names: readonly Name[]; // of symbols, and after them those of threads and of processes
  readonly methods: Methods;
  readonly threads: number;
}

// keyOf identifies the rows below a row: the symbols of one method share a row, and a symbol
// without a method has its own.
export function keyOf(methods: Methods, symbol: number): number {
  const m = symbol < methods.of.length ? methods.of[symbol] : -1;
  return m >= 0 ? m : -2 - symbol;
}

const OPEN = 1, LEAF = 2;

// Rows are the rows of a table, the heavier first, each followed by its subtree.
export class Rows {
  readonly n: number;
  readonly depth: Uint32Array;
  symbol: Uint32Array; // one of the symbols that a row stands for
  readonly remark: Uint8Array;
  readonly place: Int32Array; // the heaviest node of the tree, -1: none
  readonly self: Float64Array;
  readonly total: Float64Array;
  readonly before: Float64Array | null; // total before, where two are compared
  readonly samples: Uint32Array;
  readonly more: boolean; // there are more
  readonly shown: number; // the row that was looked for, -1: none
  private readonly flags: Uint8Array;

  constructor(m: Message<{ more: boolean; shown: number }>, public known: Known) {
    [this.depth, this.symbol, this.samples] = [m.u32("depth"), m.u32("symbol"), m.u32("samples")];
    [this.flags, this.remark, this.place] = [m.u8("flags"), m.u8("remark"), m.i32("place")];
    [this.self, this.total, this.before] = [m.f64("self"), m.f64("total"), m.has("before") ? m.f64("before") : null];
    [this.n, this.more, this.shown] = [this.depth.length, m.head.more, m.head.shown];
  }

  open(i: number): boolean {
    return (this.flags[i] & OPEN) > 0;
  }

  leaf(i: number): boolean {
    return (this.flags[i] & LEAF) > 0;
  }

  name(i: number): string {
    return this.known.names[this.symbol[i]].full;
  }

  // way is a row and its ancestors, the outermost first.
  way(i: number): number[] {
    const out = [i];
    for (let k = i - 1, d = this.depth[i]; d > 0; k--) {
      if (this.depth[k] !== d - 1) continue;
      out.push(k);
      d--;
    }
    return out.reverse();
  }

  // find is the row at the end of a path of names, -1 if there is none.
  find(way: readonly string[]): number {
    let at = 0; // number of names found
    for (let i = 0; i < this.n; i++) {
      const d = this.depth[i];
      if (d > at || d >= way.length) continue;
      at = d;
      if (this.name(i) !== way[d]) continue;
      if (++at === way.length) return i;
    }
    return -1;
  }

  // fit adapts the rows to the symbols that are known now, and reports whether that is possible:
  // whether they have the same names.
  fit(known: Known): boolean {
    const was = this.known;
    if (known === was) return true;
    const old = was.methods.of.length, now = known.methods.of.length;
    const symbol = this.symbol.map((s) => (s < old ? s : s < old + was.threads ? s - old + now : s - old - was.threads + now + known.threads));
    if (!symbol.every((s, i) => known.names[s]?.full === this.name(i))) return false;
    [this.symbol, this.known] = [symbol, known];
    return true;
  }
}

// Opened is a row that is or was open, and the rows below it.
export interface Opened {
  readonly name: string;
  symbol: number; // one of the symbols that it stands for; -1: none has its name
  open: boolean;
  readonly below: Map<number, Opened>; // by key
}

// MOST is the maximum number of open rows in a request.
export const MOST = 16_000;

// OpenRows remembers which rows are open, even while other rows are shown: by their names if the
// symbols have changed.
export class OpenRows {
  private readonly root: Opened = { name: "", symbol: -1, open: true, below: new Map() };
  private nameless = -1e9; // keys of rows that do not exist now

  constructor(private known: Known) {}

  // any reports whether any row is open.
  get any(): boolean {
    return [...this.root.below.values()].some((o) => o.open);
  }

  private below(o: Opened, rows: Rows, i: number): Opened {
    const symbol = rows.symbol[i];
    const key = keyOf(rows.known.methods, symbol);
    let next = o.below.get(key);
    if (!next) o.below.set(key, (next = { name: rows.name(i), symbol, open: false, below: new Map() }));
    return next;
  }

  // at returns what is remembered of a row.
  at(rows: Rows, i: number): Opened {
    return rows.way(i).reduce((o, k) => this.below(o, rows, k), this.root);
  }

  // take remembers the rows that are open.
  take(rows: Rows): void {
    this.fit(rows.known);
    const way = [this.root];
    for (let i = 0; i < rows.n; i++) {
      if (!rows.open(i)) continue;
      const o = this.below(way[rows.depth[i]], rows, i);
      o.open = true;
      way[rows.depth[i] + 1] = o;
    }
  }

  // fit finds the rows again if they have other symbols.
  fit(known: Known): void {
    if (known === this.known) return;
    this.known = known;
    const { names, methods } = known;
    let symbols: Map<string, number[]> | null = null; // several methods may share a name
    const named = (name: string): number[] => {
      if (!symbols) {
        symbols = new Map();
        for (let s = names.length - 1; s >= 0; s--) {
          const { full } = names[s];
          const list = symbols.get(full);
          if (list) list.push(s);
          else symbols.set(full, [s]);
        }
      }
      return symbols.get(name) ?? [];
    };
    const seen = new Set<Opened>();
    const visit = (o: Opened): void => {
      if (seen.has(o)) return;
      seen.add(o);
      const list = [...o.below.values()];
      o.below.clear();
      for (const next of list) {
        const all = names[next.symbol]?.full === next.name ? [next.symbol] : named(next.name);
        next.symbol = all.length ? all[all.length - 1] : -1;
        if (all.length) for (const s of all) o.below.set(keyOf(methods, s), all.length > 1 ? { ...next, symbol: s } : next);
        else o.below.set(this.nameless--, next);
        visit(next);
      }
    };
    visit(this.root);
  }

  // write returns the visible open rows in the format that candid reads, and which of them are just
  // being opened.
  write(unfolding: ReadonlySet<Opened>): { text: string; unfold: number[]; n: number } {
    const out: string[] = [], unfold: number[] = [];
    const visit = (o: Opened, depth: number): void => {
      for (const next of o.below.values()) {
        if (!next.open || next.symbol < 0 || out.length >= MOST) continue;
        if (unfolding.has(next)) unfold.push(out.length);
        out.push(`${depth}.${next.symbol}`);
        visit(next, depth + 1);
      }
    };
    visit(this.root, 0);
    return { text: out.join("_"), unfold, n: out.length };
  }
}
