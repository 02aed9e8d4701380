// What the tables of methods have in common: columns, cells, and the line that explains them.

import { el } from "../page/dom";
import { provenance, ROUGH } from "../page/detail";
import { count, percent, value } from "../page/format";
import type { App } from "./app";
import type { Cell } from "./cells";
import { CHANCE } from "./change";
import type { ColumnSpec } from "./grid";

// nameCell is a name with the package dimmed, and a mark of its kind of code.
export function nameCell(app: App, symbol: number, kind: number, remark = 0): Cell {
  const n = app.model.names[symbol];
  const f = app.model.data.funcs[symbol];
  const own = symbol < app.model.symbols;
  return {
    kind: "name", title: n.full + (f?.module ? `\n${f.module}` : "") + (f?.file ? `\n${f.file}` : ""), swatch: own ? `swatch kind-${app.model.colors[kind] ?? 0}` : "swatch", of: own ? app.header.kinds[kind] : "",
    before: n.full.slice(0, n.short), name: n.full.slice(n.short, n.end), after: n.full.slice(n.end), remark: REMARK[remark], why: WHY[remark],
  };
}

// The reasons why a row is less certain than it looks, in the words of reports.
const REMARK = ["", "(guessed) ", "(coarse) "];
const WHY = ["", "By frame pointers or a search of the stack, which can be wrong", ROUGH[0].toUpperCase() + ROUGH.slice(1)];

// Remarks is the line under a table that explains the marks of its rows.
export class Remarks {
  readonly root = el("p", { class: "remarks soft", hidden: true });
  private shown = "";

  tell(guessed: boolean, coarse: boolean, compared: boolean, first = 0): void {
    const text = [first ? `Only the first ${count(first)} rows are shown: close some, or filter.` : "", compared ? `${CHANCE}: two recordings of one program differ as much more often than once in 370 times.` : "", guessed ? "(guessed): by frame pointers or a search of the stack, which can be wrong." : "", coarse ? `(coarse): ${ROUGH}` : ""].filter(Boolean).join(" ");
    if (text === this.shown) return;
    this.root.textContent = this.shown = text;
    this.root.hidden = !text;
  }
}

// known is everything known of a method at a place of the tree: the same as the flame graph says
// of a frame.
export function known(app: App, symbol: number, node: number, self: number, total: number): string[] {
  const { data } = app.model;
  const f = data.funcs[symbol];
  const all = app.chosen.chosen.weight;
  const own = symbol < app.methods.of.length && app.methods.of[symbol] >= 0;
  const line = node > 0 ? data.line[node] : 0;
  return [app.nameOf(symbol),
    ...(own ? [app.header.kinds[data.kind[symbol]], node > 0 ? provenance(app.model, node).join(", ") : "", f.module, f.file ? (line ? `${f.file}:${line}` : f.file) : "", f.signature] : []),
    `self ${value(self, app.unit)} · ${percent(self, all)}`, `total ${value(total, app.unit)} · ${percent(total, all)}`];
}

// gauge is a share as a number over a bar.
export function gauge(part: number, all: number, of = all): Cell {
  return { kind: "gauge", width: of > 0 ? Math.max(0, Math.min(100, (100 * part) / of)) : 0, text: percent(part, all) };
}

export const NUMBERS: ColumnSpec[] = [
  { id: "self", label: "Self", title: "In the method's own code, as a share of what is shown", numeric: true, sortable: true, width: "6.5rem" },
  { id: "selfValue", label: "", numeric: true, width: "5.5rem", spare: true },
  { id: "total", label: "Total", title: "In it and in what it calls; a stack counts once", numeric: true, sortable: true, width: "6.5rem" },
  { id: "totalValue", label: "", numeric: true, width: "5.5rem", spare: true },
  { id: "samples", label: "Samples", title: "Total, in samples", numeric: true, sortable: true, width: "5.5rem", spare: true },
];
export const CHANGE: ColumnSpec[] = [
  { id: "selfChange", label: "Self ±", title: "By how many percentage points its share went up or down, in its own code", numeric: true, sortable: true, width: "5.5rem" },
  { id: "selfBefore", label: "Before", numeric: true, width: "5rem", spare: true },
  { id: "self", label: "After", numeric: true, sortable: true, width: "5rem", spare: true },
  { id: "totalChange", label: "Total ±", title: "By how many percentage points its share went up or down, with what it calls", numeric: true, sortable: true, width: "5.5rem" },
  { id: "totalBefore", label: "Before", numeric: true, width: "5rem", spare: true },
  { id: "total", label: "After", numeric: true, sortable: true, width: "5rem", spare: true },
];
export const TREE_NUMBERS = NUMBERS.map((c) => ({ ...c, sortable: false, spare: c.spare || c.id === "self" }));
