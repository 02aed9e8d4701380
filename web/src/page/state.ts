// The state of the page, as its address holds it.

import type { Split } from "../data";

// Side says which of two compared recordings sets the width of the graph.
export type Side = "base" | "both" | "new";

export interface State {
  zoom: number; // node
  query: string;
  kind: number; // highlighted kind, or -1
  flame: boolean;
  split: Split;
  event: number;
  hidden: Set<number>; // threads that are left out
  side: Side;
  starts: boolean; // the frames by which threads start are shown too
  tiers: boolean; // a function has a frame for each kind of code that it ran in
}

export function initial(split: Split, event = 0): State {
  return { zoom: 0, query: "", kind: -1, flame: true, split, event, hidden: new Set(), side: "both", starts: false, tiers: false };
}

// write returns the part of the address after #, "" for the state in which the page opens.
export function write(s: State, base: State): string {
  const q = new URLSearchParams();
  if (s.event !== base.event) q.set("event", String(s.event));
  if (s.split !== base.split) q.set("split", s.split);
  if (s.hidden.size) q.set("without", ranges([...s.hidden].sort((a, b) => a - b)));
  if (!s.flame) q.set("icicle", "1");
  if (s.kind >= 0) q.set("kind", String(s.kind));
  if (s.query) q.set("search", s.query);
  if (s.zoom) q.set("zoom", String(s.zoom));
  if (s.side !== base.side) q.set("side", s.side);
  if (s.starts) q.set("starts", "shown");
  if (s.tiers) q.set("tiers", "apart");
  return q.toString();
}

export function read(hash: string, base: State, limits: { threads: number; events: number; kinds: number }): State {
  const q = new URLSearchParams(hash.replace(/^#/, ""));
  const int = (name: string, otherwise: number, below: number): number => {
    const v = Number(q.get(name) ?? otherwise);
    return Number.isInteger(v) && v >= 0 && v < below ? v : otherwise;
  };
  const split = q.get("split");
  const side = q.get("side");
  return {
    zoom: int("zoom", 0, Infinity),
    query: q.get("search") ?? "",
    kind: int("kind", -1, limits.kinds),
    flame: q.get("icicle") !== "1",
    split: split === "none" || split === "process" || split === "thread" ? split : base.split,
    event: int("event", base.event, limits.events),
    hidden: parseRanges(q.get("without") ?? "", limits.threads),
    starts: q.get("starts") === "shown",
    tiers: q.get("tiers") === "apart",
    side: side === "base" || side === "new" || side === "both" ? side : base.side,
  };
}

// ranges writes ascending numbers as 1.4-9.12.
export function ranges(list: readonly number[]): string {
  const out: string[] = [];
  for (let i = 0; i < list.length; ) {
    let j = i;
    while (j + 1 < list.length && list[j + 1] === list[j] + 1) j++;
    out.push(i === j ? String(list[i]) : `${list[i]}-${list[j]}`);
    i = j + 1;
  }
  return out.join(".");
}

export function parseRanges(s: string, below: number): Set<number> {
  const out = new Set<number>();
  for (const part of s.split(".")) {
    const m = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(part);
    if (!m) continue;
    const last = Math.min(Number(m[2] ?? m[1]), below - 1);
    for (let i = Number(m[1]); i <= last; i++) out.add(i);
  }
  return out;
}
