// Ranges of time of a store, in ms since 1970, and the page's address.

export interface Range { readonly from: number; readonly to: number }

// Against is what a range is compared with.
export type Against = "" | "before" | "yesterday" | "last-week";

export interface State extends Range {
  readonly service: string; // "": all
  readonly all: boolean; // all services are shown, rather than nothing
  readonly view: Range; // what the strip shows
  readonly against: Against;
  readonly capture: string; // the file of a capture that is shown instead; "": none
}

const AGAINST: readonly Against[] = ["", "before", "yesterday", "last-week"];

// earlier is when the range begins that another one is compared with, by the calendar: a day may have
// 23 or 25 hours.
export function earlier(r: Range, against: Against): number {
  if (against === "before") return r.from - (r.to - r.from);
  const d = new Date(r.from);
  if (against === "yesterday") d.setDate(d.getDate() - 1);
  if (against === "last-week") d.setDate(d.getDate() - 7);
  return d.getTime();
}

// within keeps a range within what is stored, with its length if that is possible.
export function within(r: Range, all: Range): Range {
  const length = Math.min(r.to - r.from, all.to - all.from);
  const from = Math.min(Math.max(r.from, all.from), all.to - length);
  return { from, to: from + length };
}

// read reads the page's address; what it does not say is the last hour of what is stored.
export function read(hash: string, stored: Range): State {
  const q = new URLSearchParams(hash.replace(/^#/, ""));
  const number = (name: string, otherwise: number): number => {
    const v = q.get(name);
    return v !== null && /^\d{1,13}$/.test(v) ? Number(v) : otherwise;
  };
  const all = { from: stored.from, to: Math.max(stored.to, stored.from + 1) };
  let from = number("from", Math.max(all.from, all.to - 3_600_000)), to = number("to", all.to);
  if (!(from < to)) [from, to] = [all.from, all.to];
  let view = { from: number("begin", all.from), to: number("end", all.to) };
  if (!(view.from < view.to)) view = all;
  const against = q.get("against") as Against;
  return { from, to, view, service: q.get("service") ?? "", all: q.get("service") === null, against: AGAINST.includes(against) ? against : "", capture: q.get("capture") ?? "" };
}

export function write(s: State, stored: Range): string {
  const q = new URLSearchParams();
  if (s.service) q.set("service", s.service);
  q.set("from", String(Math.round(s.from)));
  q.set("to", String(Math.round(s.to)));
  if (s.view.from !== stored.from || s.view.to !== stored.to) {
    q.set("begin", String(Math.round(s.view.from)));
    q.set("end", String(Math.round(s.view.to)));
  }
  if (s.against) q.set("against", s.against);
  if (s.capture) q.set("capture", s.capture);
  return q.toString();
}

// shown is the address of the page of recordings for a state. A service's name is after a =, so that
// it is never empty.
export function shown(s: State): string {
  if (s.capture) return `capture/${encodeURIComponent(s.capture)}/`;
  const from = Math.floor(s.from), to = Math.ceil(s.to);
  return `show/${from}-${to}/${s.against ? Math.floor(earlier(s, s.against)) : "-"}/${encodeURIComponent(`=${s.service}`)}/`;
}

// ticks are times at which a strip has marks: round ones of the reader's zone.
export function ticks(r: Range, most: number): number[] {
  const steps = [1, 5, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800].map((s) => s * 1000);
  const step = steps.find((s) => (r.to - r.from) / s <= most) ?? steps[steps.length - 1];
  const zone = new Date(r.from).getTimezoneOffset() * 60_000;
  const out: number[] = [];
  for (let t = Math.ceil((r.from - zone) / step) * step + zone; t < r.to; t += step) out.push(t);
  return out;
}
