// The line that says everything about one frame, at once.

import type { Func } from "../data";
import { columns } from "../flame/label";
import { el } from "./dom";
import { percent, value, count } from "./format";
import type { Model } from "./model";

// ROUGH says what "coarse" means, and what helps.
export const ROUGH = "samples are placed at the next safepoint or call: shares inside inlined code are rough. A JVM launched with -XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints places them exactly.";

const MISSING = "no stack";

// part is a share of a node, 0 to 255, as text; "" for all of it.
function part(v: number): string {
  return v === 255 ? "" : ` in ${percent(v, 255)} of its samples`;
}

// provenance says how it is known that a node's frame as recorded is there.
export function provenance(m: Model, origin: number): string[] {
  return known(m, (by) => by[origin]);
}

// known says the same for shares of a frame, 0 to 255.
function known(m: Model, share: (by: Uint8Array) => number): string[] {
  const d = m.data;
  const out: string[] = [];
  const [guess, derived, stitched, coarse, virtual] = [d.heuristic, d.derived, d.stitched, d.coarse, d.virtual].map(share);
  if (guess) out.push(`a guess${part(guess)}`);
  if (derived) out.push(`derived from the code${part(derived)}`);
  // The code it was in is certain; the inlined method is not.
  const rough = coarse > derived;
  if (!out.length) out.push(rough ? "frame certain" : "exact");
  if (stitched) out.push(`read after the sample${part(stitched)}`);
  if (rough) out.push(`(coarse): share among inlined methods rough${part(coarse)}: the JVM runs without -XX:+DebugNonSafepoints`);
  else if (coarse) out.push(`(coarse): line rough${part(coarse)}`);
  if (virtual) out.push(`virtual thread${part(virtual)}`);
  return out;
}

// kinds says how much of a frame is of each kind of code, the largest first.
function kinds(m: Model, node: number): string {
  const { kinds: names } = m.data.header;
  const list = m.kindsIn(node);
  const all = list.reduce((sum, k) => sum + k.total, 0);
  if (list.length < 2) return names[list[0]?.kind ?? m.data.kind[m.tree.sym[node]]] ?? "unknown";
  return list.map((k) => `${names[k.kind] ?? "unknown"} ${percent(k.total, all)}`).join(" · ");
}

export interface Fact { readonly key: string; readonly text: string; readonly title?: string }

// facts is everything known about a node except its numbers.
export function facts(m: Model, node: number): Fact[] {
  const { header, funcs } = m.data;
  const sym = m.tree.sym[node];
  const origin = m.tree.origin[node];
  const out: Fact[] = [];
  const f = funcs[sym];
  const kind = header.kinds[m.data.kind[sym]];
  if (f && kind !== MISSING) {
    const how = known(m, (by) => m.part(node, by));
    out.push({ key: "kind", text: kinds(m, node), title: "The kinds of code it ran in, as shares of its total" });
    out.push({ key: "provenance", text: how.join(", "), title: `How it is known that this frame is there. (coarse): ${ROUGH}` });
    if (f.module) out.push({ key: "module", text: f.module });
    if (f.file) {
      const line = m.data.line[origin];
      out.push({
        key: "source", text: line ? `${f.file}:${line}` : f.file,
        title: m.severalLines(node) ? "The line most samples were at; others were at other lines" : "",
      });
    }
    if (f.noName) out.push({ key: "noname", text: "no symbol in the file" });
  }
  return out;
}

// numbers are the self and total of a node.
export function numbers(m: Model, node: number, zoom: number, event: number): Fact[] {
  const unit = m.data.header.events[event]?.unit ?? "count";
  const out: Fact[] = [];
  const { self, total, samples } = m.values;
  const all = total[0];
  out.push({ key: "self", text: `self ${value(self[node], unit)} · ${percent(self[node], all)}` });
  out.push({ key: "total", text: `total ${value(total[node], unit)} · ${percent(total[node], all)}` });
  if (zoom > 0) out.push({ key: "zoomed", text: `${percent(total[node], total[zoom])} of zoomed` });
  out.push({ key: "samples", text: `${count(samples[node])} sample${samples[node] === 1 ? "" : "s"}` });
  return out;
}

export class Detail {
  readonly root: HTMLElement;
  private readonly name = el("div", { class: "name" });
  private readonly list = el("div", { class: "facts" });
  private readonly live = el("div", { class: "offscreen", "aria-live": "polite" });
  private readonly copyButton: HTMLButtonElement;
  node = -1;
  numbers: (node: number, zoom: number, event: number) => readonly Fact[];
  extra: (node: number) => readonly Fact[] = () => []; // further facts about a node

  constructor(private readonly model: Model, copy: () => void) {
    this.numbers = (node, zoom, event) => numbers(model, node, zoom, event);
    this.copyButton = el("button", { type: "button", class: "quiet", title: "Copy the name (c)", click: copy }, "Copy name");
    this.root = el("section", { class: "detail", id: "detail", "aria-label": "Frame" },
      el("div", { class: "line" }, this.name, this.copyButton), this.list, this.live);
  }

  show(node: number, zoom: number, event: number, speak: boolean): void {
    this.node = node;
    this.copyButton.hidden = node < 0;
    if (node < 0) {
      this.name.replaceChildren(el("span", { class: "hint" }, "Point at a frame, or press an arrow key. ? lists the keys."));
      this.list.replaceChildren();
      return;
    }
    const m = this.model;
    const sym = m.tree.sym[node];
    const f = m.data.funcs[sym];
    const full = m.nameOf(node);
    // If several functions share a name, none stands for all.
    const all = m.symbolsIn(node).map((s) => m.data.funcs[s]);
    const one = (of: (x: Func) => string): string => (f && all.every((x) => x && of(x) === of(f)) ? of(f) : "");
    const signature = one((x) => x.signature), raw = one((x) => x.raw);
    this.name.title = full + (signature ? `\n${signature}` : "") + (raw && raw !== full ? `\n${raw}` : "");
    const n = m.names[sym];
    const swatch = el("i", { class: `swatch kind-${f ? m.symbolColor[sym] : "none"}`, "aria-hidden": "true" });
    this.name.replaceChildren(swatch,
      ...(n && columns(full) < 4000
        ? [el("span", { class: "package" }, full.slice(0, n.short)), el("b", {}, full.slice(n.short, n.end)), el("span", { class: "package" }, full.slice(n.end))]
        : [el("b", {}, full)]),
      signature && !full.endsWith(signature) ? el("span", { class: "package signature" }, " " + signature) : "");
    const list = [...facts(m, node), ...this.numbers(node, zoom, event), ...this.extra(node)];
    this.list.replaceChildren(...list.map((x) => el("span", { class: `fact ${x.key}`, title: x.title || undefined }, x.text)));
    if (speak) this.live.textContent = [full, ...list.map((x) => x.text)].join(", ");
  }
}
