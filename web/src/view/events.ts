// The events that were sampled, and what threads were doing at the samples.

import { el, keepFocus } from "../page/dom";
import { count, value } from "../page/format";
import type { App } from "./app";
import { drawn } from "./cells";
import type { Pane } from "./pane";
import { Passages } from "./passages";
import { CHANCE, delta } from "./change";
import { gauge } from "./methodcells";

// became is the change of an amount, in percent of what it was.
function became(after: number, before: number): string {
  if (before <= 0) return after > 0 ? "new" : "";
  const d = (100 * (after - before)) / before;
  return `${d > 0 ? "+" : d < 0 ? "−" : "±"}${Math.abs(d).toFixed(1)} %`;
}

export class EventsPane implements Pane {
  readonly root = el("div", { class: "pane page", tabindex: 0 });

  constructor(private readonly app: App) {}

  update(): void {
    const { app } = this;
    const { header: h, state, chosen } = app;
    const table = (label: string, head: readonly string[], rows: readonly (readonly (Node | string)[])[]): HTMLElement =>
      el("table", { "aria-label": label }, el("thead", {}, el("tr", {}, ...head.map((t) => el("th", { scope: "col" }, t)))),
        el("tbody", {}, ...rows.map((r) => el("tr", {}, ...r.map((c) => el("td", {}, c))))));
    const events = h.events.map((e, i) => {
      const radio = el("input", { type: "radio", name: "event", "aria-label": `Show ${e.name}`, change: () => app.set({ event: i, zoom: 0 }) });
      radio.checked = i === state.event;
      const period = (p: number): string => (p ? value(p, e.unit) : "varies");
      if (!h.parts) return [radio, e.name, count(h.sums[i].samples), value(h.sums[i].weight, e.unit), period(e.period)];
      const [b, a] = h.parts;
      return [radio, e.name, count(b.sums[i].samples), count(a.sums[i].samples), value(b.sums[i].weight, e.unit), value(a.sums[i].weight, e.unit), became(a.sums[i].weight, b.sums[i].weight),
        ...[b, a].map((x) => (x.sums[i].samples ? period(x.periods[i]) : "not recorded"))];
    });
    const gone = chosen.before?.states.filter((b) => !chosen.states.some((s) => s.state === b.state && s.syscall === b.syscall)).map((b) => ({ ...b, weight: 0, samples: 0 })) ?? [];
    const states = [...chosen.states, ...gone].map((s) => {
      const box = el("input", { type: "checkbox", "aria-label": `Only threads that are ${s.state}`, change: () => {
        const states = new Set(state.states);
        if (!states.delete(s.state)) states.add(s.state);
        app.set({ states, zoom: 0 });
      } });
      box.checked = state.states.has(s.state);
      const was = chosen.before?.states.find((b) => b.state === s.state && b.syscall === s.syscall)?.weight ?? 0;
      if (!chosen.before) return [box, s.state, s.syscall, drawn(gauge(s.weight, chosen.chosen.weight)), value(s.weight, app.unit), count(s.samples)];
      return [box, s.state, s.syscall, drawn(delta(app.difference.of(s.weight, was), app.difference.byChance(s.weight, was))), drawn(gauge(was, chosen.before.chosen.weight)), value(was, app.unit),
        drawn(gauge(s.weight, chosen.chosen.weight)), value(s.weight, app.unit)];
    });
    keepFocus(this.root, () => this.root.replaceChildren(
      el("h2", {}, "Events"), el("p", { class: "soft" }, "What was sampled. Every view shows one of them."),
      h.parts ? table("Events", ["", "Event", "Samples before", "after", "In all before", "after", "±", "A sample stands for, before", "after"], events)
        : table("Events", ["", "Event", "Samples", "In all", "A sample stands for"], events),
      el("h2", {}, "States"), el("p", { class: "soft" }, `What threads were doing, of what the filters leave. Choose states to show only those.${chosen.before ? ` Shares are of each; ± is by how many percentage points they went up or down. ${CHANCE}.` : ""}`),
      states.length ? table("States", ["", "State", "System call", ...(chosen.before ? ["±", "Before", "", "After", ""] : ["Share", "", "Samples"])], states) : el("p", {}, "Nothing is left.")));
  }

  private readonly passages = new Passages(this.root);

  next(dir: -1 | 1): boolean {
    return this.passages.next(dir, this.app.pattern);
  }

  found(): string {
    return this.passages.found(this.app.pattern);
  }

  focus(): void {
    this.root.querySelector("input")?.focus();
  }
}
