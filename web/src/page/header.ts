// The head of the page: what was profiled and how far it can be trusted.

import type { Header } from "../data";
import { el } from "./dom";
import { commandLine, count, percent, seconds, value, when } from "./format";

export function header(h: Header, weights: readonly number[], controls: HTMLElement): HTMLElement {
  const facts: [string, string][] = [];
  const add = (text: string, title: string) => text && facts.push([text, title]);
  for (const p of h.processes.slice(0, 4)) {
    const runtime = p.runtime ? `${p.runtime} · ` : "";
    add(`${h.processes.length > 1 ? `${p.command} · ` : ""}${runtime}pid ${p.pid}`, p.command);
  }
  if (h.processes.length > 4) add(`and ${h.processes.length - 4} more processes`, h.processes.map((p) => `${p.pid} ${p.command}`).join("\n"));
  add(h.host, "Host");
  add(when(h.start), "Start of the recording, in this browser's time zone");
  add(seconds(h.duration), "Duration of the recording");
  add(h.engine, h.describe || "Engine");
  h.events.forEach((e, i) => add(`${e.name} ${value(weights[i], e.unit)}`, `Event, and all that was sampled of it${e.period ? `; a sample stands for ${value(e.period, e.unit)}` : ""}`));
  add(`${count(h.quality.samples)} samples`, "Samples in this file");

  return el("header", {},
    el("div", { class: "top" },
      el("div", { class: "what" },
        el("h1", { title: h.command || h.title }, commandLine(h.title)),
        el("p", { class: "facts" }, ...facts.map(([text, title]) => el("span", { class: "fact", title }, text)))),
      controls),
    quality(h));
}

interface Part { readonly name: string; readonly samples: number; readonly title: string }

// quality says how far the stacks can be trusted.
export function quality(h: Pick<Header, "quality" | "lost" | "throttled" | "notes">): HTMLElement {
  const q = h.quality;
  const reasons = q.reasons.map((r) => `${r.name} ${count(r.samples)}`).join(", ");
  const parts: Part[] = [
    { name: "complete", samples: q.complete, title: "Stacks that reach the thread's first frame, with nothing guessed" },
    { name: "stitched", samples: q.stitched, title: "Complete stacks of which a part was read after the sample was taken" },
    { name: "unnamed", samples: q.unnamed ?? 0, title: "Complete stacks with a frame of which it is not known which method it runs" },
    { name: "heuristic", samples: q.heuristic, title: "Complete stacks with at least one frame that is a guess; such frames are hatched" },
    { name: "truncated", samples: q.truncated, title: "Stacks deeper than what was copied; they stand under a frame that says so" },
    { name: "broken", samples: q.broken, title: `Stacks whose outer part could not be found; they stand under a frame that says so${reasons ? `. Reasons: ${reasons}` : ""}` },
  ];
  const bar = el("div", { class: "bar", "aria-hidden": "true" });
  for (const p of parts) {
    if (!p.samples) continue;
    const piece = el("i", { class: p.name, title: `${p.name}: ${count(p.samples)}` });
    piece.style.flexGrow = String(p.samples);
    bar.append(piece);
  }
  const items = parts.map((p) =>
    el("span", { class: `part ${p.name}${p.samples ? "" : " zero"}`, title: p.title }, el("i", {}), `${p.name} `, el("b", {}, percent(p.samples, q.samples))));
  const lost = h.lost + h.throttled;
  const taken = q.samples + h.lost;
  items.push(el("span", { class: `part lost${lost ? " warn" : " zero"}`, title: "Samples that a full buffer dropped; they are not in the graph" },
    "lost ", el("b", {}, h.lost ? `${count(h.lost)} (${percent(h.lost, taken)})` : "0"), h.throttled ? `, throttled ${count(h.throttled)}×` : ""));
  const row = el("div", { class: "quality", role: "group", "aria-label": "How far the stacks can be trusted" },
    el("span", { class: "caption" }, "Stacks"), bar, ...items);
  if (h.notes.length) {
    row.append(el("details", { class: "notes" },
      el("summary", {}, `${h.notes.length} note${h.notes.length === 1 ? "" : "s"}`),
      el("ul", {}, ...h.notes.map((n) => el("li", {}, n)))));
  }
  return row;
}
