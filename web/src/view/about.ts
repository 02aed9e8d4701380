// How the recording was made, and how far it can be trusted.

import { el } from "../page/dom";
import { count, percent, seconds, value, when } from "../page/format";
import { quality } from "../page/header";
import type { App } from "./app";
import type { Pane } from "./pane";
import { ask, Grown } from "./wire";

interface Account { thread: number; kernelShare: number | null; expected: number | null; disagrees: boolean; samples: number }

export class AboutPane implements Pane {
  readonly root = el("div", { class: "pane page about" });
  private readonly accounts = el("div", {});
  private asked = -1;

  constructor(private readonly app: App) {}

  update(): void {
    const { app } = this;
    const h = app.header;
    const facts: [string, string][] = [["File", h.name], ["Command", h.command], ["Host", h.host], ["Start", when(h.start)], ["Duration", seconds(h.duration)],
      ["Engine", h.engine], ["How", h.describe], ["candid", h.candid]];
    const list = (rows: readonly [string, string][]): HTMLElement =>
      el("dl", {}, ...rows.filter(([, v]) => v).flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, v)]));
    const whole = app.chosen.chosen.samples === app.chosen.all.samples;
    this.root.replaceChildren(
      el("h2", {}, "Recording"), list(facts),
      el("h2", {}, "How far the stacks can be trusted"),
      quality({ quality: h.quality, lost: h.lost, throttled: h.throttled, notes: [] }),
      ...(app.chosen.before ? [el("p", { class: "soft" }, "Of what is compared with:"), quality({ quality: app.chosen.before.quality, lost: 0, throttled: 0, notes: [] })] : []),
      ...(whole && !app.chosen.before ? [] : [el("p", { class: "soft" }, "Of what the filters leave:"), quality({ quality: app.chosen.quality, lost: 0, throttled: 0, notes: [] })]),
      el("dl", {}, ...[
        ["complete", "reach the thread's first frame, nothing was guessed"], ["stitched", "complete, but a part was read after the sample was taken"],
        ["heuristic", "complete, with at least one frame that is a guess; such frames are hatched"],
        ["truncated", "deeper than what was copied; they stand under a frame that says so"], ["broken", "their outer part could not be found; they stand under a frame that says so"],
      ].flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, v)])),
      h.quality.reasons.length ? el("p", {}, `Why stacks are cut: ${h.quality.reasons.map((r) => `${r.name} ${count(r.samples)}`).join(", ")}.`) : "",
      el("h2", {}, "Losses"),
      el("p", {}, h.lost || h.throttled
        ? `${count(h.lost)} samples were lost (${percent(h.lost, h.lost + h.quality.samples)}): a full buffer dropped them, and nothing here counts them. Sampling was throttled ${count(h.throttled)} times.`
        : "No sample was lost, and sampling was never throttled."),
      el("h2", {}, "What recording cost"), ...this.cost(),
      ...(h.notes.length ? [el("h2", {}, "Notes"), el("ul", {}, ...h.notes.map((n) => el("li", {}, n)))] : []),
      el("h2", {}, "Processes"), el("ul", {}, ...h.processes.map((p) => el("li", {}, `${p.pid} · ${p.command}${p.runtime ? ` · ${p.runtime}` : ""}`))),
      el("h2", {}, "Samples against the kernel's account"), this.accounts);
    if (this.asked !== app.state.event) {
      this.asked = app.state.event;
      void this.account();
    }
  }

  // cost says what recording took from the target and from the machine.
  private cost(): HTMLElement[] {
    const { cost: c, sums } = this.app.header;
    const samples = c.samples || sums.reduce((a, s) => a + s.samples, 0);
    const ns = (v: number): string => value(v, "nanoseconds");
    const rows: [string, string][] = [
      ["To the target", c.copying ? `${ns(c.copying)} copying stacks${c.targetCPU ? `, ${percent(c.copying, c.targetCPU)} of the ${ns(c.targetCPU)} of CPU time that it used` : ""}` : ""],
      ["candid's own CPU", c.ownCPU ? `${ns(c.ownCPU)}${samples ? `, ${ns(c.ownCPU / samples)} a sample` : ""}` : ""],
      ["candid's memory", c.memory ? `${value(c.memory, "bytes")} at its peak` : ""],
      ["First sample", c.firstWalked ? `walked ${ns(c.firstWalked)} after attaching began` : ""],
    ];
    if (c.samples) rows.push(["Of", `the whole recording, of which this is a part: ${count(c.samples)} samples in ${ns(c.recorded)}`]);
    if (this.app.header.growing) return [el("p", { class: "soft" }, "It is told when the recording ends.")];
    if (rows.every(([, v]) => !v)) return [el("p", { class: "soft" }, "Not recorded: the file does not hold what recording it cost.")];
    return [el("dl", {}, ...rows.flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, v || "not recorded")]))];
  }

  // account compares each thread's samples with the CPU time that the kernel
  // counted for it: where they disagree by more than chance explains, it says so.
  private async account(): Promise<void> {
    const { app } = this;
    try {
      const q = app.query(["from", "to", "threads", "states", "focus", "ignore"]);
      const m = await ask<{ threads: Account[] }>(app.path("about", q));
      const known = m.head.threads.filter((t) => t.expected !== null);
      if (!known.length) {
        this.accounts.replaceChildren(el("p", { class: "soft" }, "This recording does not hold what the kernel counted for each thread, or the event is not CPU time: there is nothing to compare with."));
        return;
      }
      const wrong = known.filter((t) => t.disagrees);
      const rows = (wrong.length ? wrong : known).slice(0, 30);
      this.accounts.replaceChildren(
        el("p", {}, wrong.length
          ? `${wrong.length} of ${known.length} threads have more or fewer samples than their CPU time explains, by more than three standard deviations:`
          : `The samples of all ${count(known.length)} threads are as many as their CPU time explains, within three standard deviations.`),
        el("table", { "aria-label": "Samples against CPU time" }, el("thead", {}, el("tr", {}, ...["Thread", "Samples", "Expected", "CPU by the kernel"].map((t) => el("th", { scope: "col" }, t)))),
          el("tbody", {}, ...rows.map((t) => el("tr", { class: t.disagrees ? "warn" : undefined },
            el("td", {}, app.model.threadName(t.thread)), el("td", {}, count(t.samples)), el("td", {}, count(Math.round(t.expected ?? 0))), el("td", {}, value(app.header.kernelCPU[t.thread], "nanoseconds")))))));
    } catch (e) {
      this.asked = -1;
      if (!(e instanceof Grown)) app.onError(e instanceof Error ? e.message : String(e));
    }
  }

  focus(): void {
    this.root.focus();
  }
}
