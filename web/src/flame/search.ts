// Searching: each name is matched once, then the tree is only scanned.

import type { Layout } from "./layout";
import type { Tree } from "./tree";

export interface Match {
  readonly symbols: Uint8Array; // 1 for the symbols that match
  readonly nodes: number; // how many frames match, of those wider than nothing
  readonly total: number; // their combined total, each stack counted once
  readonly before: Int32Array; // how many of a row's rowNodes match before each index and after its first; for rows that were counted
  readonly counted: Uint8Array; // 1 for rows that were counted
}

// compile returns the expression for text, case-insensitive unless text has a capital letter, or
// the reason why it is not an expression.
export function compile(text: string): { re?: RegExp; error?: string } {
  if (text === "") return {};
  try {
    return { re: new RegExp(text, /\p{Lu}/u.test(text.replace(/\\./g, "")) ? "u" : "iu") };
  } catch {
    // Names are full of characters that mean something in an expression: without the u flag more of
    // them stand for themselves.
  }
  try {
    return { re: new RegExp(text, /[A-Z]/.test(text.replace(/\\./g, "")) ? "" : "i") };
  } catch (e) {
    return { error: e instanceof Error ? e.message.replace(/^.*?: (?=[^:]*$)/, "") : "not an expression" };
  }
}

// matching marks the symbols whose name re finds.
export function matching(names: readonly string[], re: RegExp): Uint8Array {
  const out = new Uint8Array(names.length);
  for (let i = 0; i < names.length; i++) if (re.test(names[i])) out[i] = 1;
  return out;
}

// match finds the nodes with marked symbols. A matching frame under another one is found, but
// adds nothing to the total: its time is already included.
export function match(tree: Tree, l: Layout, symbols: Uint8Array): Match {
  const { sym, end, n } = tree;
  let total = 0;
  for (let i = 1; i < n; ) {
    if (symbols[sym[i]]) {
      total += l.total[i];
      i = end[i];
    } else i++;
  }
  const bySymbol = (l.bySymbol ??= countSymbols(tree, l, symbols.length));
  let nodes = 0;
  for (let s = 0; s < symbols.length; s++) if (symbols[s]) nodes += bySymbol[s];
  l.before ??= new Int32Array(l.rowNodes.length + l.rows); // a row has one more than nodes
  return { symbols, nodes, total, before: l.before, counted: new Uint8Array(l.rows) };
}

// countSymbols counts the nodes wider than nothing by symbol.
function countSymbols(tree: Tree, l: Layout, symbols: number): Int32Array {
  const out = new Int32Array(symbols);
  const { sym } = tree;
  for (const i of l.rowNodes) {
    const s = sym[i];
    if (s >= 0 && s < symbols) out[s]++;
  }
  return out;
}

// countRow counts the matches of one row: most rows are never visible.
export function countRow(m: Match, tree: Tree, l: Layout, row: number): void {
  if (m.counted[row]) return;
  m.counted[row] = 1;
  const { symbols, before } = m;
  const lo = l.rowStart[row], hi = l.rowStart[row + 1];
  const known = (l.rowSym ??= new Array<Int32Array | undefined>(l.rows));
  let sym = known[row];
  if (!sym) {
    sym = known[row] = new Int32Array(hi - lo);
    for (let k = lo; k < hi; k++) sym[k - lo] = tree.sym[l.rowNodes[k]];
  }
  let n = 0;
  let at = lo + row;
  before[at++] = 0;
  for (let k = 0; k < sym.length; k++) {
    if (sym[k] >= 0) n += symbols[sym[k]];
    before[at++] = n;
  }
}

// anyIn reports whether some of rowNodes from k up to next match; their row has been counted.
export function anyIn(m: Match, row: number, k: number, next: number): boolean {
  return m.before[next + row] > m.before[k + row];
}

// within is the matched total inside the subtree of node at.
export function within(tree: Tree, l: Layout, symbols: Uint8Array, at: number): number {
  for (let a = at; a > 0; a = tree.parent[a]) if (symbols[tree.sym[a]]) return l.total[at];
  let total = 0;
  for (let i = at + 1; i < tree.end[at]; ) {
    if (symbols[tree.sym[i]]) {
      total += l.total[i];
      i = tree.end[i];
    } else i++;
  }
  return total;
}

// steps are the matching nodes that step visits, in preorder.
export function steps(tree: Tree, l: Layout, symbols: Uint8Array): number[] {
  const hits: number[] = [];
  for (let i = 1; i < tree.n; ) {
    if (l.total[i] > 0 && symbols[tree.sym[i]]) {
      hits.push(i);
      i = tree.end[i];
    } else i++;
  }
  return hits;
}

// step returns the matching node after (dir 1) or before (dir -1) node from, in preorder and
// around the end; -1 if there is none. Nodes under a matching node are left out, so that a
// recursion is one step.
export function step(tree: Tree, l: Layout, symbols: Uint8Array, from: number, dir: -1 | 1): number {
  const hits = steps(tree, l, symbols);
  if (!hits.length) return -1;
  if (dir > 0) return hits.find((i) => i > from) ?? hits[0];
  for (let k = hits.length - 1; k >= 0; k--) if (hits[k] < from) return hits[k];
  return hits[hits.length - 1];
}
