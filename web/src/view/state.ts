// The state of the page, as its address holds it: what it shows, and of which recording.

import type { Split } from "../data";
import { initial as flameInitial, parseRanges, ranges, type State as FlameState } from "../page/state";

export const TABS = ["flame", "tree", "methods", "callers", "timeline", "heatmap", "threads", "events", "about"] as const;
export type Tab = (typeof TABS)[number];

// Times says what the heatmap shows of two that are compared; whole: nothing is compared.
export const TIMES = ["whole", "before", "after", "difference"] as const;
export type Times = (typeof TIMES)[number];

export interface State extends FlameState {
  recording: number;
  against: number; // the recording that it is compared with; -1: none
  tab: Tab;
  from: number; // ns since the beginning
  to: number; // 0: the end
  threads: Set<number>; // those that count; empty: all
  states: Set<string>; // the same
  focus: string[]; // expressions, as candid report --focus takes them
  ignore: string[];
  merge: string[]; // expressions: functions whose frames are left out of their stacks
  collapse: string[]; // "package X" or "module X": one frame
  recursion: string[]; // expressions: functions whose recursion is one frame
  raw: boolean; // frames in which samples came late are shown; their time is their callers'
  base: [number, number] | null; // ns: the stretch of time that the chosen one is compared with
  sandwich: boolean; // callers and callees of one method, not a table of callers
  before: boolean; // of two that are compared: the flame graph shows the first
  times: Times | ""; // of two that are compared: what is shown over time; "": the default
  of: string; // the method whose callers are shown: its name; "": of every method
}

export function initial(): State {
  return { ...flameInitial("none"), recording: 0, against: -1, tab: "flame", from: 0, to: 0, threads: new Set(), states: new Set(), focus: [], ignore: [], merge: [], collapse: [], recursion: [], raw: false, base: null, sandwich: false, before: false, times: "", of: "" };
}

export interface Limits { readonly served: number; readonly threads: number; readonly events: number; readonly first: number; readonly whole: boolean; readonly kinds: number; readonly states: readonly string[]; readonly end: number }

// write returns the part of the address after #. It contains an event only if it is not the
// default, and likewise whether the frames by which threads start are shown.
export function write(s: State, l: Pick<Limits, "first" | "whole">): string {
  const q = new URLSearchParams();
  if (s.recording) q.set("recording", String(s.recording));
  if (s.against >= 0) q.set("against", String(s.against));
  if (s.tab !== "flame") q.set("tab", s.tab);
  filters(s).forEach((v, k) => (k !== "event" || s.event !== l.first) && k !== "starts" && q.append(k, v));
  if (s.tiers) q.set("tiers", "apart");
  if (s.starts !== l.whole) q.set("starts", s.starts ? "shown" : "fold");
  if (s.base) q.set("base", `${s.base[0]}-${s.base[1]}`);
  if (s.of) q.set("of", s.of);
  if (s.sandwich) q.set("sandwich", "1");
  if (s.before) q.set("before", "1");
  if (s.times) q.set("times", s.times);
  if (s.split !== "none") q.set("split", s.split);
  if (!s.flame) q.set("icicle", "1");
  if (s.kind >= 0) q.set("kind", String(s.kind));
  if (s.query) q.set("search", s.query);
  if (s.zoom) q.set("zoom", String(s.zoom));
  return q.toString();
}

// filters are the part of the state that selects samples, in the syntax that
// internal/view/query.go reads.
export function filters(s: State): URLSearchParams {
  const q = new URLSearchParams();
  q.set("event", String(s.event));
  if (s.from) q.set("from", String(s.from));
  if (s.to) q.set("to", String(s.to));
  if (s.threads.size) q.set("threads", ranges([...s.threads].sort((a, b) => a - b)));
  if (s.states.size) q.set("states", [...s.states].sort().join(","));
  for (const f of s.focus) q.append("focus", f);
  for (const f of s.ignore) q.append("ignore", f);
  rewriting(s).forEach((v, k) => q.append(k, v));
  return q;
}

// rewriting is the part of the state that changes how stacks are shown, in the syntax that
// internal/view/shape.go reads.
export function rewriting(s: State): URLSearchParams {
  const q = new URLSearchParams();
  for (const f of s.merge) q.append("merge", f);
  for (const f of s.collapse) q.append("collapse", f);
  for (const f of s.recursion) q.append("recursion", f);
  if (!s.starts) q.set("starts", "fold");
  if (s.raw) q.set("raw", "1");
  return q;
}

// rewritingOf reads that part of an address. whole: whether the frames by which threads start are
// shown if the address does not say.
export function rewritingOf(q: URLSearchParams, whole: boolean): Pick<State, "merge" | "collapse" | "recursion" | "starts" | "raw"> {
  return {
    merge: q.getAll("merge").slice(0, 16), collapse: q.getAll("collapse").filter((c) => /^(package|module) /.test(c)).slice(0, 16),
    recursion: q.getAll("recursion").slice(0, 16), starts: whole ? q.get("starts") !== "fold" : q.get("starts") === "shown",
    raw: q.get("raw") === "1",
  };
}

// plain reports whether all functions are shown by their names, and no others.
export function plain(rewriting: URLSearchParams): boolean {
  return [...rewriting.keys()].every((k) => k === "starts" || k === "raw");
}

// recordingOf returns which of the served recordings an address is of, and which one it is
// compared with, -1 for none.
export function recordingOf(hash: string, served: number): { recording: number; against: number } {
  const q = new URLSearchParams(hash.replace(/^#/, ""));
  const number = (name: string): number => {
    const text = q.get(name) ?? "";
    return /^\d+$/.test(text) ? Number(text) : -1;
  };
  const recording = Math.max(0, Math.min(number("recording"), served - 1)), against = number("against");
  return { recording, against: against < served && against !== recording ? against : -1 };
}

export function read(hash: string, l: Limits): State {
  const q = new URLSearchParams(hash.replace(/^#/, ""));
  const s = initial();
  const int = (name: string, otherwise: number, below: number): number => {
    const v = Number(q.get(name) ?? otherwise);
    return Number.isInteger(v) && v >= 0 && v < below ? v : otherwise;
  };
  const tab = q.get("tab");
  const split = q.get("split");
  Object.assign(s, recordingOf(hash, l.served));
  s.tab = TABS.find((t) => t === tab) ?? "flame";
  s.event = int("event", l.first, l.events);
  s.from = int("from", 0, l.end + 1);
  s.to = int("to", 0, Infinity);
  if (s.to && s.to <= s.from) s.from = s.to = 0;
  s.threads = parseRanges(q.get("threads") ?? "", l.threads);
  s.states = new Set((q.get("states") ?? "").split(",").filter((n) => l.states.includes(n)));
  s.focus = q.getAll("focus").slice(0, 16);
  s.ignore = q.getAll("ignore").slice(0, 16);
  Object.assign(s, rewritingOf(q, l.whole));
  const base = (q.get("base") ?? "").split("-").map(Number);
  if (base.length === 2 && base.every((n) => Number.isInteger(n) && n >= 0) && base[0] < base[1]) s.base = [base[0], base[1]];
  s.sandwich = q.get("sandwich") === "1";
  s.of = q.get("of") ?? "";
  s.before = q.get("before") === "1";
  s.times = TIMES.find((t) => t === q.get("times")) ?? "";
  s.split = (["none", "process", "thread"] as Split[]).find((x) => x === split) ?? "none";
  s.flame = q.get("icicle") !== "1";
  s.tiers = q.get("tiers") === "apart";
  s.kind = int("kind", -1, l.kinds);
  s.query = q.get("search") ?? "";
  s.zoom = int("zoom", 0, Infinity);
  return s;
}

// exactly is the expression, for candid, that matches only this name.
export function exactly(name: string): string {
  return `^${name.replace(/[\\.+*?()|[\]{}^$]/g, "\\$&")}$`;
}

// readable is an expression as a chip shows it: a name without the characters that make it an
// expression.
export function readable(expression: string): string {
  if (!/^\^.*\$$/s.test(expression)) return expression;
  const inner = expression.slice(1, -1);
  const plain = inner.replace(/\\([\\.+*?()|[\]{}^$])/g, "$1");
  return exactly(plain) === expression ? plain : expression;
}
