// How the recording was made, and how far it can be trusted.

import { el } from "../page/dom";
import { count, percent, seconds, value, when } from "../page/format";
import { ROUGH } from "../page/detail";
import { quality } from "../page/header";
import type { Cost, Count, Part } from "./answers";
import type { App } from "./app";
import type { Pane } from "./pane";
import { Passages } from "./passages";
import { ask, Grown } from "./wire";

interface Account { thread: number; kernelShare: number | null; expected: number | null; disagrees: boolean; samples: number }

const SIDES = ["Before", "After"] as const;
const NO_COST = "Not recorded: the file does not hold what recording it cost.";

function list(rows: readonly (readonly [string, string])[]): HTMLElement {
  return el("dl", {}, ...rows.filter(([, v]) => v).flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, v)]));
}

function facts(h: Pick<Part, "name" | "command" | "host" | "start" | "duration" | "engine" | "describe" | "candid">): [string, string][] {
  return [["File", h.name], ["Command", h.command], ["Host", h.host], ["Start", when(h.start)], ["Duration", seconds(h.duration)],
    ["Engine", h.engine], ["How", h.describe], ["candid", h.candid]];
}

function losses(h: Pick<Part, "lost" | "throttled" | "quality">): string {
  return h.lost || h.throttled
    ? `${count(h.lost)} samples were lost (${percent(h.lost, h.lost + h.quality.samples)}): a full buffer dropped them, and nothing here counts them. Sampling was throttled ${count(h.throttled)} times.`
    : "No sample was lost, and sampling was never throttled.";
}

function costs(c: Cost, sums: readonly Count[]): [string, string][] {
  const samples = c.samples || sums.reduce((a, s) => a + s.samples, 0);
  const ns = (v: number): string => value(v, "nanoseconds");
  return [
    ["To the target", c.copying ? `${ns(c.copying)} copying stacks${c.targetCPU ? `, ${percent(c.copying, c.targetCPU)} of the ${ns(c.targetCPU)} of CPU time that it used` : ""}` : ""],
    ["candid's own CPU", c.ownCPU ? `${ns(c.ownCPU)}${samples ? `, ${ns(c.ownCPU / samples)} a sample` : ""}` : ""],
    ["candid's memory", c.memory ? `${value(c.memory, "bytes")} at its peak` : ""],
    ["First sample", c.firstWalked ? `walked ${ns(c.firstWalked)} after attaching began` : ""],
    ["Of", c.samples ? `the whole recording, of which this is a part: ${count(c.samples)} samples in ${ns(c.recorded)}` : ""],
  ];
}

export class AboutPane implements Pane {
  readonly root = el("div", { class: "pane page about", tabindex: 0 });
  private readonly accounts = el("div", {});
  private asked = -1;
  private readonly passages = new Passages(this.root);

  constructor(private readonly app: App) {}

  next(dir: -1 | 1): boolean {
    return this.passages.next(dir, this.app.pattern);
  }

  found(): string {
    return this.passages.found(this.app.pattern);
  }

  update(): void {
    const { app } = this;
    const h = app.header;
    const [before, after] = h.parts ?? [];
    const whole = app.chosen.chosen.samples === app.chosen.all.samples;
    const trust = (q: Part["quality"], lost = 0, throttled = 0): HTMLElement => quality({ quality: q, lost, throttled, notes: [] });
    const said = (text: string): HTMLElement => el("p", { class: "soft" }, text);
    const reasons = (q: Part["quality"]): string => q.reasons.map((r) => `${r.name} ${count(r.samples)}`).join(", ");
    const was = app.chosen.before;
    this.root.replaceChildren(
      el("h2", {}, before ? "Recordings" : "Recording"),
      before ? this.beside("Recordings", [facts(before), facts(after)]) : list(facts({ ...h, name: h.name })),
      el("h2", {}, "How far the stacks can be trusted"),
      ...(before ? [said("Before:"), trust(before.quality, before.lost, before.throttled), said("After:"), trust(after.quality, after.lost, after.throttled)] : [trust(h.quality, h.lost, h.throttled)]),
      ...(was && (!before || !whole || was.chosen.samples !== was.all.samples) ? [said("Of what the filters leave of what is compared with:"), trust(was.quality)] : []),
      ...(whole && !(was && !before) ? [] : [said("Of what the filters leave:"), trust(app.chosen.quality)]),
      list([
        ["complete", "reach the thread's first frame, nothing was guessed"], ["stitched", "complete, but a part was read after the sample was taken"],
        ["unnamed", "complete, but which method a frame runs is not known"],
        ["heuristic", "complete, with at least one frame that is a guess; such frames are hatched"],
        ["truncated", "deeper than what was copied; they stand under a frame that says so"], ["broken", "their outer part could not be found; they stand under a frame that says so"],
      ]),
      ...(before ? [before, after].map((p, i) => (reasons(p.quality) ? el("p", {}, `Why stacks are cut, ${SIDES[i].toLowerCase()}: ${reasons(p.quality)}.`) : ""))
        : [reasons(h.quality) ? el("p", {}, `Why stacks are cut: ${reasons(h.quality)}.`) : ""]),
      ...(h.coarse.some(Boolean) ? [el("p", {}, el("b", {}, "(coarse): "), ROUGH)] : []),
      el("h2", {}, "Losses"),
      ...(before ? [before, after].map((p, i) => el("p", {}, el("b", {}, `${SIDES[i]}: `), losses(p))) : [el("p", {}, losses(h))]),
      el("h2", {}, "What recording cost"), ...this.cost(),
      ...(before
        ? [before, after].flatMap((p, i) => (p.notes.length ? [el("h2", {}, `Notes, ${SIDES[i].toLowerCase()}`), el("ul", {}, ...p.notes.map((n) => el("li", {}, n)))] : []))
        : h.notes.length ? [el("h2", {}, "Notes"), el("ul", {}, ...h.notes.map((n) => el("li", {}, n)))] : []),
      ...(before ? [before, after] : [h]).flatMap((p, i) => [el("h2", {}, before ? `Processes, ${SIDES[i].toLowerCase()}` : "Processes"),
        el("ul", {}, ...p.processes.map((x) => el("li", {}, `${x.pid} · ${x.command}${x.runtime ? ` · ${x.runtime}` : ""}`)))]),
      el("h2", {}, "Samples against the kernel's account"), this.accounts);
    if (this.asked !== app.state.event) {
      this.asked = app.state.event;
      void this.account();
    }
  }

  // beside shows the same facts of both in adjacent columns.
  private beside(label: string, [before, after]: readonly (readonly [string, string][])[]): HTMLElement {
    return el("table", { class: "beside", "aria-label": label }, el("thead", {}, el("tr", {}, ...["", ...SIDES].map((t) => el("th", { scope: "col" }, t)))),
      el("tbody", {}, ...before.map(([name, v], i) => [name, v, after[i][1]]).filter(([, a, b]) => a || b).map(([name, a, b]) =>
        el("tr", { class: a !== b ? "differs" : undefined }, el("th", { scope: "row" }, name), el("td", {}, a), el("td", {}, b)))));
  }

  // cost says what the recording cost the target and the machine.
  private cost(): HTMLElement[] {
    const { header: h } = this.app;
    if (h.parts) {
      const both = h.parts.map((p) => costs(p.cost, p.sums));
      return both.every((rows) => rows.every(([, v]) => !v)) ? [el("p", { class: "soft" }, NO_COST)] : [this.beside("What recording cost", both)];
    }
    if (h.growing) return [el("p", { class: "soft" }, "It is told when the recording ends.")];
    const rows = costs(h.cost, h.sums);
    if (rows.every(([, v]) => !v)) return [el("p", { class: "soft" }, NO_COST)];
    return [list(rows.map(([k, v]) => [k, v || (k === "Of" ? "" : "not recorded")]))];
  }

  // account compares each thread's samples with the CPU time that the kernel counted for it, and
  // says where they disagree by more than chance explains.
  private async account(): Promise<void> {
    const { app } = this;
    try {
      const parts = app.header.parts ? ["before", "after"] : [""];
      const answers = await Promise.all(parts.map((side) => {
        const q = app.questions.query(["from", "to", "threads", "states", "focus", "ignore"]);
        if (side) q.set("side", side);
        return ask<{ threads: Account[] }>(app.questions.path("about", q));
      }));
      this.accounts.replaceChildren(...answers.flatMap((m, i) => [parts[i] ? el("p", {}, el("b", {}, `${SIDES[i]}: `)) : "", ...this.accounted(m.head.threads, SIDES[parts[i] ? i : -1])]));
    } catch (e) {
      this.asked = -1;
      if (!(e instanceof Grown)) app.onError(e instanceof Error ? e.message : String(e));
    }
  }

  private accounted(threads: readonly Account[], side = ""): HTMLElement[] {
    const { app } = this;
    const known = threads.filter((t) => t.expected !== null);
    if (!known.length) return [el("p", { class: "soft" }, "This recording does not hold what the kernel counted for each thread, or the event is not CPU time: there is nothing to compare with.")];
    const wrong = known.filter((t) => t.disagrees);
    const rows = (wrong.length ? wrong : known).slice(0, 30);
    return [
      el("p", {}, wrong.length
        ? `${wrong.length} of ${known.length} threads have more or fewer samples than their CPU time explains, by more than three standard deviations:`
        : `The samples of all ${count(known.length)} threads are as many as their CPU time explains, within three standard deviations.`),
      el("table", { "aria-label": `Samples against CPU time${side && `, ${side.toLowerCase()}`}` }, el("thead", {}, el("tr", {}, ...["Thread", "Samples", "Expected", "CPU by the kernel"].map((t) => el("th", { scope: "col" }, t)))),
        el("tbody", {}, ...rows.map((t) => el("tr", { class: t.disagrees ? "warn" : undefined },
          el("td", {}, app.model.threadName(t.thread)), el("td", {}, count(t.samples)), el("td", {}, count(Math.round(t.expected ?? 0))), el("td", {}, value(app.header.kernelCPU[t.thread], "nanoseconds"))))))];
  }

  focus(): void {
    this.root.focus();
  }
}
