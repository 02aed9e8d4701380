// What was sampled by, and what threads were doing when they were.

import { el } from "../page/dom";
import { count, percent, value } from "../page/format";
import type { App } from "./app";
import { drawn } from "./cells";
import type { Pane } from "./pane";
import { gauge, points } from "./tables";

export class EventsPane implements Pane {
  readonly root = el("div", { class: "pane page" });

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
      return [radio, e.name, count(h.sums[i].samples), value(h.sums[i].weight, e.unit), e.period ? value(e.period, e.unit) : "varies"];
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
      return [box, s.state, s.syscall, drawn(gauge(s.weight, chosen.chosen.weight)), value(s.weight, app.unit), count(s.samples),
        ...(chosen.before ? [percent(was, chosen.before.chosen.weight), points(app.change(s.weight, was))] : [])];
    });
    this.root.replaceChildren(
      el("h2", {}, "Events"), el("p", { class: "soft" }, "What was sampled. Every view shows one of them."),
      table("Events", ["", "Event", "Samples", "In all", "A sample stands for"], events),
      el("h2", {}, "States"), el("p", { class: "soft" }, "What threads were doing, of what the filters leave. Choose states to show only those."),
      states.length ? table("States", ["", "State", "System call", "Share", "", "Samples", ...(chosen.before ? ["Before", "±"] : [])], states) : el("p", {}, "Nothing is left."));
  }

  focus(): void {
    this.root.querySelector("input")?.focus();
  }
}
