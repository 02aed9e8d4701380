// The part above every tab: search, filters as chips, and how much of the recording they leave.

import { compile } from "../flame/search";
import { el, keepFocus, segmented } from "../page/dom";
import { count, percent, value } from "../page/format";
import { kindChoices, labelOf, ofKind } from "../page/kinds";
import type { App } from "./app";
import { readable, type Tab } from "./state";
import { spanText } from "./time";

// FORMATS are the files that are offered, and the tools that open them.
const FORMATS: [format: string, label: string, opens: string][] = [
  ["jfr", "JFR", "JMC, IntelliJ, candid"], ["pprof", "pprof", "go tool pprof, Pyroscope, Parca"], ["speedscope", "speedscope", "speedscope.app"], ["firefox", "Firefox Profiler", "profiler.firefox.com"],
  ["collapsed", "Collapsed stacks", "flamegraph.pl, scripts"], ["otlp", "OpenTelemetry", "collectors"], ["html", "One HTML file", "any browser"], ["json", "Report as JSON", "scripts"], ["text", "Report as text", "reading"],
];

// OF_STACKS are the tabs that show callers and callees.
const OF_STACKS: readonly Tab[] = ["flame", "tree", "methods", "callers"];

export class Bar {
  readonly root: HTMLElement;
  readonly takeaway: readonly HTMLElement[]; // saving and copying what is shown
  readonly field = el("input", {
    type: "search", id: "search", placeholder: "Search (regular expression)", "aria-label": "Search by regular expression", "aria-describedby": "found", spellcheck: "false", autocomplete: "off",
  });
  private readonly found = el("output", { id: "found", class: "found", for: "search", "aria-live": "polite" });
  private readonly chips = el("div", { class: "chips", role: "list", "aria-label": "Filters" });
  private readonly shown = el("span", { class: "shown", "aria-live": "polite" });
  private readonly events: HTMLSelectElement;
  private readonly states: HTMLSelectElement;
  private readonly kinds: { root: HTMLElement; set(v: string): void };
  private readonly exports = el("div", { class: "menu", role: "menu", "aria-label": "Save what is shown as a file", hidden: true });
  private readonly steppers: readonly HTMLButtonElement[];
  private typing = 0;
  private readonly hottest = el("span", { class: "hottest" });
  private thinking = 0;
  private offers: HTMLElement | null = null; // actions on the matches of the search

  constructor(private readonly app: App, private readonly next: (dir: -1 | 1) => void, copyLink: () => void) {
    const h = app.header;
    this.events = el("select", { "aria-label": "Event", change: () => app.set({ event: Number(this.events.value), zoom: 0 }) }, ...h.events.map((e, i) => el("option", { value: i }, e.name)));
    this.states = el("select", { "aria-label": "Thread states", change: () => app.set({ states: new Set(this.states.value ? this.states.value.split(",") : []), zoom: 0 }) },
      el("option", { value: "" }, "Any state"), el("option", { value: "sleeping,blocked,parked,waiting,disk" }, "waiting at all"), ...h.states.map((s) => el("option", { value: s }, s)));
    const kinds = kindChoices(h.threads);
    this.kinds = segmented("Kinds of threads", kinds, (kind) => app.set({ threads: kind ? ofKind(app.header.threads, kind) : new Set(), zoom: 0 }));
    const save = el("button", { type: "button", "aria-haspopup": "menu", title: "Save what is shown as a file", click: () => {
      this.exports.hidden = !this.exports.hidden;
      if (this.exports.hidden) return;
      this.exports.replaceChildren(...FORMATS.map(([f, label, opens]) => {
        const q = app.questions.query();
        q.set("format", f);
        return el("a", { role: "menuitem", href: app.questions.path("export", q), download: "", click: () => (this.exports.hidden = true) }, label, el("span", { class: "opens" }, opens));
      }));
      this.exports.querySelector("a")!.focus();
      const at = save.getBoundingClientRect();
      const room = document.documentElement.clientWidth - this.exports.offsetWidth;
      this.exports.style.left = `${Math.max(0, Math.min(at.right - this.exports.offsetWidth, room - 8))}px`;
      this.exports.style.top = `${at.bottom + 4}px`;
    } }, "Export");
    this.exports.addEventListener("keydown", (e) => {
      const items = [...this.exports.querySelectorAll("a")];
      const i = items.indexOf(document.activeElement as HTMLAnchorElement);
      if (e.key === "Escape") {
        this.exports.hidden = true;
        save.focus();
      } else if (e.key === "ArrowDown") items[(i + 1) % items.length].focus();
      else if (e.key === "ArrowUp") items[(i + items.length - 1) % items.length].focus();
      else return;
      e.preventDefault();
      e.stopPropagation();
    });
    addEventListener("pointerdown", (e) => {
      if (!this.exports.hidden && !this.exports.contains(e.target as Node) && e.target !== save) this.exports.hidden = true;
    });
    const step = (dir: -1 | 1, sign: string, title: string): HTMLButtonElement => el("button", { type: "button", class: "quiet step", title, "aria-label": title, click: () => this.next(dir) }, sign);
    this.steppers = [step(-1, "‹", "Previous match (Shift+N)"), step(1, "›", "Next match (N)")];
    this.takeaway = [el("button", { type: "button", title: "Copy the address of exactly this view; it works as long as candid view runs", click: copyLink }, "Copy link"), el("span", { class: "holder" }, save, this.exports)];
    this.root = el("div", { class: "bar-area" },
      el("div", { class: "tools", role: "toolbar", "aria-label": "Search and filters" },
        el("div", { class: "search" }, this.field, ...this.steppers, this.found),
        kinds.length ? this.kinds.root : "", h.events.length > 1 ? this.events : "", this.states),
      el("div", { class: "chip-line" }, this.shown, this.hottest, this.chips));
    this.field.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = window.setTimeout(() => this.typed(), 80);
    });
    this.field.addEventListener("keydown", (e) => {
      if (e.key === "Enter") {
        this.typed();
        this.next(e.shiftKey ? -1 : 1);
      } else if (e.key === "Escape") {
        if (this.field.value) {
          this.field.value = "";
          this.typed();
        }
        this.field.blur();
      } else return;
      e.preventDefault();
      e.stopPropagation();
    });
  }

  private typed(): void {
    if (this.field.value !== this.app.state.query) this.app.set({ query: this.field.value });
  }

  update(): void {
    const { app } = this;
    const { state, chosen } = app;
    if (document.activeElement !== this.field) this.field.value = state.query;
    this.events.value = String(state.event);
    const states = [...state.states].join(",");
    this.states.hidden = !app.hasStates && !state.states.size;
    this.states.value = [...this.states.options].find((o) => o.value.split(",").sort().join(",") === states.split(",").sort().join(","))?.value ?? "";
    this.kinds.set(state.threads.size ? app.threads.kind || "some" : "");
    const at = [...this.chips.querySelectorAll("button")].indexOf(document.activeElement as HTMLButtonElement);
    keepFocus(this.chips, () => this.chips.replaceChildren(...this.list()), () => {
      const buttons = this.chips.querySelectorAll("button");
      return buttons[Math.min(at, buttons.length - 1)] ?? this.field;
    });
    const part = chosen.chosen, all = chosen.all;
    const whole = part.samples === all.samples && part.weight === all.weight;
    const b = chosen.before;
    this.shown.replaceChildren(...(b
      ? [el("b", {}, "Before: "), `${value(b.chosen.weight, app.unit)}, ${count(b.chosen.samples)} samples (${percent(b.chosen.weight, b.all.weight)} of all)`, el("b", {}, " · After: "),
        `${value(part.weight, app.unit)}, ${count(part.samples)} samples (${percent(part.weight, all.weight)} of all). Shares are of each.`]
      : whole
      ? [`All: ${app.eventName}${value(all.weight, app.unit)}, ${count(all.samples)} samples`]
      : [el("b", {}, `Shown: ${percent(part.weight, all.weight)}`), ` of all · ${value(part.weight, app.unit)} of ${value(all.weight, app.unit)}, ${count(part.samples)} samples`]));
    clearTimeout(this.thinking);
    if (chosen.before || !part.samples) this.hottest.replaceChildren();
    else this.thinking = window.setTimeout(() => void this.heat(), 250); // it takes as long as a table does
    this.shown.dataset.samples = String(part.samples);
    this.shown.dataset.weight = String(part.weight);
  }

  // heat names the method in which most of the time was spent; if most of it was waiting, the
  // methods with the longest waits, as reports do.
  private async heat(): Promise<void> {
    const { app } = this;
    if (!this.root.isConnected || app.busy) return;
    const { generation } = app;
    const sums = await app.sums.ask().catch(() => null);
    if (!sums || generation !== app.generation || !this.root.isConnected) return;
    app.sums.known = { generation, sums: sums.now };
    const waits = app.unit === "nanoseconds" && app.hasStates ? await app.waits().catch(() => []) : [];
    if (generation !== app.generation || !this.root.isConnected) return;
    if (waits.length) {
      this.hottest.replaceChildren(waits.length > 1 ? "Longest waits: " : "Longest wait: ", ...waits.flatMap((w, i) => [`${i ? " · " : ""}${w.state} ${value(w.weight, app.unit)} in `, this.caller(w.method)]));
      return;
    }
    const { self } = sums.now;
    let best = -1;
    for (let m = 0; m < self.length; m++) if (self[m] > 0 && (best < 0 || self[m] > self[best])) best = m;
    if (best < 0) return this.hottest.replaceChildren();
    this.hottest.replaceChildren("Hottest: ", this.caller(best), ` ${percent(self[best], app.chosen.chosen.weight)}`);
  }

  // caller is a method's name that links to its callers.
  private caller(method: number): HTMLElement {
    const { app } = this;
    const n = app.model.names[app.methods.symbol[method]];
    return el("button", { type: "button", class: "quiet", title: `${n.full}\nShow who calls it`, click: () => app.go("callers", { of: n.full, sandwich: false }) }, n.full.slice(n.short, n.end));
  }

  // tell shows the result of the search: found is what the tab says.
  tell(found: string): void {
    const { app } = this;
    const { error } = compile(app.state.query);
    this.field.setAttribute("aria-invalid", String(!!error));
    this.found.classList.toggle("none", found === "no match");
    this.found.textContent = error ?? found;
    if (this.offers) this.offers.hidden = found === "no match"; // either nothing would be left, or nothing would change
  }

  // steps enables or disables the buttons that go from match to match.
  steps(on: boolean): void {
    for (const b of this.steppers) b.disabled = !on;
  }

  private list(): HTMLElement[] {
    const { app } = this;
    const { state, header: h } = app;
    const chip = (what: string, text: string, remove: () => void): HTMLElement =>
      el("span", { class: "chip", role: "listitem" }, el("span", { class: "what" }, what), el("span", { class: "text", title: text }, text),
        el("button", { type: "button", class: "quiet", "aria-label": `Remove the filter: ${what} ${text}`, title: "Remove", click: remove }, "✕"));
    const out: HTMLElement[] = [];
    if (state.base && !h.pair) out.push(chip("compared with", spanText(...state.base), () => app.set({ base: null })));
    if (state.from || state.to) out.push(chip(state.base && !h.pair ? "after" : "time", spanText(state.from, state.to || h.end), () => app.set({ from: 0, to: 0 })));
    if (state.threads.size) {
      const names = [...state.threads];
      const pid = app.threads.process;
      const process = h.processes.findIndex((p) => p.pid === pid);
      if (process >= 0) out.push(chip("process", app.model.processName(process), () => app.set({ threads: new Set() })));
      else if (app.threads.kind) out.push(chip("threads", labelOf(app.threads.kind), () => app.set({ threads: new Set() })));
      else out.push(chip("threads", names.length === 1 ? app.model.threadName(names[0]) : `${count(names.length)} of ${count(h.threads.length)}`, () => app.set({ threads: new Set() })));
    }
    if (state.states.size) out.push(chip("state", [...state.states].join(", "), () => app.set({ states: new Set() })));
    for (const f of state.focus) out.push(chip("focus", readable(f), () => app.set({ focus: state.focus.filter((x) => x !== f), zoom: 0 })));
    for (const f of state.ignore) out.push(chip("without", readable(f), () => app.set({ ignore: state.ignore.filter((x) => x !== f), zoom: 0 })));
    for (const f of state.merge) out.push(chip("merged", readable(f), () => app.set({ merge: state.merge.filter((x) => x !== f) })));
    for (const f of state.collapse) out.push(chip("one frame", f, () => app.set({ collapse: state.collapse.filter((x) => x !== f) })));
    for (const f of state.recursion) out.push(chip("recursion", f === "." ? "of every method" : readable(f), () => app.set({ recursion: state.recursion.filter((x) => x !== f) })));
    if (state.kind >= 0) out.push(chip("highlight", h.kinds[state.kind], () => app.set({ kind: -1 })));
    if (state.query && app.pattern) {
      const re = state.query;
      out.push(this.offers = el("span", { class: "offers" },
        el("button", { type: "button", class: "quiet", title: "Keep only stacks with a function that the search finds", click: () => app.set({ focus: [...state.focus, goPattern(re)], query: "", zoom: 0 }) }, "Keep only these"),
        el("button", { type: "button", class: "quiet", title: "Leave out stacks with a function that the search finds", click: () => app.set({ ignore: [...state.ignore, goPattern(re)], query: "", zoom: 0 }) }, "Leave these out")));
    }
    if ((state.from || state.to) && !h.pair) {
      const now: [number, number] = [state.from, state.to || h.end];
      out.push(el("span", { class: "offers" }, state.base
        ? el("button", { type: "button", class: "quiet", title: "Take the one for the other", click: () => app.set({ base: now, from: state.base![0], to: state.base![1], zoom: 0 }) }, "Swap")
        : el("button", { type: "button", class: "quiet", title: "Keep this stretch of time as what another one is compared with: then drag over the other", click: () => app.set({ base: now, from: 0, to: 0, zoom: 0 }) }, "Compare with another stretch…")));
    } else if (state.base && !h.pair) out.push(el("span", { class: "soft" }, "now with all of the recording: drag over the time to choose what to compare"));
    const several = out.filter((e) => e.classList.contains("chip")).length > 1;
    if (h.starts && OF_STACKS.includes(state.tab)) {
      const fold = state.starts ? el("button", { type: "button", class: "quiet", click: () => app.set({ starts: false }) }, "Fold thread starts") : chip("folded", "thread starts", () => app.set({ starts: true }));
      fold.title = "The frames by which every thread and program starts: start_thread, JavaThread::run and such. Folded, stacks begin with what a thread is there for; no sample is left out, and files that are exported have all frames. (u)";
      fold.classList.add("starts");
      out.unshift(fold);
    }
    if (h.skid && OF_STACKS.includes(state.tab)) {
      const late = state.raw ? chip("raw", "late samples", () => app.set({ raw: false })) : el("button", { type: "button", class: "quiet", click: () => app.set({ raw: true }) }, "Late samples where they came");
      late.title = "A timer's interrupt that comes while the kernel has interrupts off is delivered where it enables them again, so such samples count for the function before. Raw, they are shown where they came, as candid report --raw does. (w)";
      late.classList.add("raw");
      out.unshift(late);
    }
    if (several) {
      out.push(el("button", { type: "button", class: "quiet", click: () => app.set({ from: 0, to: 0, threads: new Set(), states: new Set(), focus: [], ignore: [], merge: [], collapse: [], recursion: [], base: null, kind: -1, zoom: 0 }) }, "Clear all"));
    }
    return out;
  }
}

// goPattern is a search in the syntax that candid reads: there case always matters, here only if
// there is a capital letter.
export function goPattern(text: string): string {
  return /\p{Lu}/u.test(text.replace(/\\./g, "")) ? text : `(?i)${text}`;
}
