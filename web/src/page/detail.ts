// The line that says everything about one frame, at once.

import { columns } from "../flame/label";
import { el } from "./dom";
import { percent, value, count } from "./format";
import type { Model } from "./model";

// ROUGH says what "coarse" comes to, and what helps.
export const ROUGH = "samples are placed at the next safepoint or call: shares inside inlined code are rough. A JVM launched with -XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints places them exactly.";

const MISSING = "no stack";

// share255 reads a share of a node that was written as 0 to 255.
function part(v: number): string {
  return v === 255 ? "" : ` in ${percent(v, 255)} of its samples`;
}

// provenance says how it is known that a frame is there.
export function provenance(m: Model, origin: number): string[] {
  const d = m.data;
  const out: string[] = [];
  if (d.heuristic[origin]) out.push(`a guess${part(d.heuristic[origin])}`);
  if (d.derived[origin]) out.push(`derived from the code${part(d.derived[origin])}`);
  // Which code it was in is certain; which of the methods that are inlined there is not.
  const rough = d.coarse[origin] > d.derived[origin];
  if (!out.length) out.push(rough ? "frame certain" : "exact");
  if (d.stitched[origin]) out.push(`read after the sample${part(d.stitched[origin])}`);
  if (rough) out.push(`(coarse): share among inlined methods rough${part(d.coarse[origin])}: the JVM runs without -XX:+DebugNonSafepoints`);
  else if (d.coarse[origin]) out.push(`(coarse): line rough${part(d.coarse[origin])}`);
  if (d.virtual[origin]) out.push(`virtual thread${part(d.virtual[origin])}`);
  return out;
}

export interface Fact { readonly key: string; readonly text: string; readonly title?: string }

// facts is what is known of a node beside its numbers.
export function facts(m: Model, node: number): Fact[] {
  const { header, funcs } = m.data;
  const sym = m.tree.sym[node];
  const origin = m.tree.origin[node];
  const out: Fact[] = [];
  const f = funcs[sym];
  const kind = header.kinds[m.data.kind[sym]];
  if (f && kind !== MISSING) {
    const how = provenance(m, origin);
    out.push({ key: "kind", text: kind });
    out.push({ key: "provenance", text: how.join(", "), title: `How it is known that this frame is there. (coarse): ${ROUGH}` });
    if (f.module) out.push({ key: "module", text: f.module });
    if (f.file) {
      const line = m.data.line[origin];
      const more = m.data.lines[origin] - 1;
      out.push({
        key: "source", text: line ? `${f.file}:${line}` : f.file,
        title: more > 0 ? `The line most samples were at; ${more} more` : "",
      });
    }
    if (f.noName) out.push({ key: "noname", text: "no symbol in the file" });
  }
  return out;
}

// numbers are what a node has itself and in all.
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
  extra: (node: number) => readonly Fact[] = () => []; // what else is known of a node

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
    this.name.title = full + (f?.signature ? `\n${f.signature}` : "") + (f?.raw && f.raw !== full ? `\n${f.raw}` : "");
    const n = m.names[sym];
    const swatch = el("i", { class: `swatch kind-${f ? m.data.kind[sym] : "none"}`, "aria-hidden": "true" });
    this.name.replaceChildren(swatch,
      ...(n && columns(full) < 4000
        ? [el("span", { class: "package" }, full.slice(0, n.short)), el("b", {}, full.slice(n.short, n.end)), el("span", { class: "package" }, full.slice(n.end))]
        : [el("b", {}, full)]),
      f?.signature && !full.endsWith(f.signature) ? el("span", { class: "package signature" }, " " + f.signature) : "");
    const list = [...facts(m, node), ...this.numbers(node, zoom, event), ...this.extra(node)];
    this.list.replaceChildren(...list.map((x) => el("span", { class: `fact ${x.key}`, title: x.title || undefined }, x.text)));
    if (speak) this.live.textContent = [full, ...list.map((x) => x.text)].join(", ");
  }
}
