// The table of threads, which selects the threads that every tab shows.

import { el } from "../page/dom";
import { commandLine, count, percent, value } from "../page/format";
import type { ThreadSums, ViewHeader } from "./answers";
import type { App } from "./app";
import { Chance } from "../flame/chance";
import { Grid } from "./grid";
import type { Match } from "./match";
import type { Pane } from "./pane";
import type { Menu } from "./menu";
import { CHANCE, delta } from "./change";
import { gauge } from "./methodcells";
import { Grown } from "./wire";

type Key = "name" | "id" | "kind" | "weight" | "samples" | "kernel" | "before" | "change";

// Sums are the sums of threads over the samples that pass the filters, for one or for both that
// are compared.
interface Sums { readonly weight: Float64Array; readonly samples: Float64Array; readonly sum: number }

const NO_TALLY = { weight: 0, effective: 0 };
const NONE: Sums = { weight: new Float64Array(0), samples: new Float64Array(0), sum: 0 };

export class ThreadsPane implements Pane {
  readonly root: HTMLElement;
  private readonly grid: Grid;
  private readonly field = el("input", { type: "search", placeholder: "Search threads", "aria-label": "Search threads by name or number", spellcheck: "false", autocomplete: "off" });
  private readonly status = el("span", { class: "pane-title", "aria-live": "polite" });
  private order: number[] = []; // rows of threads: app.threads.rows
  private by: Key;
  private descending = true;
  private is: Sums = NONE; // by row
  private was: Sums = NONE; // the side that is compared with
  private chance: Chance | null = null; // of two that are compared
  private most = 0; // the share that the bars are relative to

  private only = ""; // the process whose threads are listed; "": all are

  // If there are many processes: those whose threads can be chosen together, and are then listed.
  private readonly processes = el("select", { "aria-label": "Choose the threads of a process", change: () => {
    this.only = this.processes.value;
    this.app.set({ threads: new Set(this.only ? this.app.header.threads.flatMap((_, t) => (this.processOf(t) === this.only ? [t] : [])) : []) });
  } });

  constructor(private readonly app: App, menu: Menu) {
    const { compared } = app;
    const { pair } = app.header;
    this.by = compared ? "change" : "weight";
    const kernel = app.header.kernelCPU.some((v) => v > 0);
    const many = this.many;
    const two = <T>(of: (list: readonly number[]) => T, m: Match): T[] => (pair ? [of(m.before), of(m.after)] : [of(m.all)]);
    const used = (list: readonly number[]): string => {
      const ns = list.reduce((a, t) => a + app.header.kernelCPU[t], 0);
      return ns ? value(ns, "nanoseconds") : "";
    };
    const numbers = (list: readonly number[]): string => {
      const x = app.header.threads[list[0]];
      return !x ? "–" : list.length > 1 ? `${list.length} threads` : many && !pair ? `${x.pid} / ${x.tid}` : String(x.tid);
    };
    const arrow = (list: readonly string[]): string => (list.some(Boolean) ? list.map((s) => s || "–").join(" → ") : "");
    this.grid = new Grid({
      label: "Threads. Space chooses a row, Enter it alone, m says what can be done with it.", empty: "No thread is left: no sample passes the filters, or the search finds nothing.",
      columns: [
        { id: "chosen", label: "", title: "Threads that count; none chosen: all", width: "2rem" },
        ...(compared ? [
          { id: "change", label: "±", title: "By how many percentage points its share went up or down", numeric: true, sortable: true, width: "5rem" },
          { id: "before", label: "Before", title: `Its share ${pair ? "of the first recording" : "of the stretch of time that is compared with"}`, numeric: true, sortable: true, width: "6.5rem" },
          { id: "beforeValue", label: "", numeric: true, width: "5.5rem", spare: true },
        ] : []),
        { id: "weight", label: compared ? "After" : "Share", title: "Of what passes all filters but that of threads", numeric: true, sortable: true, width: "6.5rem" },
        { id: "value", label: "", numeric: true, width: "5.5rem", spare: true },
        { id: "samples", label: "Samples", title: compared ? "Before → after" : undefined, numeric: true, sortable: true, width: compared ? "8rem" : "5.5rem", spare: true },
        { id: "name", label: "Thread", title: pair ? "Threads of one name on both sides are one row" : undefined, sortable: true, width: "minmax(12rem, 2fr)" },
        { id: "id", label: many && !pair ? "PID / TID" : "TID", title: pair ? "Before → after" : undefined, numeric: true, sortable: true, width: pair ? "9rem" : "8rem", spare: true },
        { id: "kind", label: "Kind", title: "What the thread is for", sortable: true, width: "6rem", spare: true },
        ...(kernel ? [{ id: "kernel", label: "CPU by the kernel", title: `CPU time that the kernel counted over the whole recording${pair ? ", before → after" : ""}`, numeric: true, sortable: true, width: pair ? "10rem" : "9rem", spare: true }] : []),
        { id: "only", label: "", width: "5rem" },
      ],
      count: () => this.order.length,
      row: (i) => {
        const r = this.order[i];
        const m = app.threads.rows[r];
        const x = app.header.threads[m.first];
        const { is, was } = this;
        return { cells: [
          { kind: "check", label: `Count ${x.name}`, on: m.all.some((t) => app.state.threads.has(t)) },
          ...(compared ? [delta(this.change(r), this.chance?.explains(was.weight[r] ?? 0, is.weight[r])), gauge(was.weight[r] ?? 0, was.sum, this.most * was.sum), value(was.weight[r] ?? 0, app.unit)] : []),
          gauge(is.weight[r], is.sum, this.most * is.sum), value(is.weight[r], app.unit),
          compared ? `${count(was.samples[r] ?? 0)} → ${count(is.samples[r])}` : count(is.samples[r]),
          { kind: "thread", title: x.os && x.os !== x.name ? `${x.name}\n${x.os}` : x.name, name: pair ? app.threads.rowName(m) : app.threads.label(m.first), instead: pair ? "" : ` · ${x.tid}` },
          arrow(two(numbers, m)), x.kind ?? "", ...(kernel ? [arrow(two(used, m))] : []), { kind: "press", label: "Only" },
        ] };
      },
      check: (i) => this.toggle(this.order[i]),
      press: (i) => {
        const { all } = app.threads.rows[this.order[i]];
        const alone = app.state.threads.size === all.length && all.every((t) => app.state.threads.has(t));
        app.set({ threads: new Set(alone ? [] : all) });
      },
      act: (i) => this.toggle(this.order[i]),
      menu: (i, x, y) => menu.openThread(app.threads.rows[this.order[i]].first, x, y),
      sort: (id) => {
        this.descending = id === this.by ? !this.descending : id !== "name" && id !== "kind" && id !== "id";
        this.by = id as Key;
        this.refresh(true);
      },
    });
    const bar = el("div", { class: "pane-bar" }, this.field,
      el("button", { type: "button", title: "Choose those that the search finds", click: () => app.set({ threads: new Set(this.order.flatMap((r) => app.threads.rows[r].all)) }) }, "Choose found"),
      el("button", { type: "button", click: () => app.set({ threads: new Set() }) }, "All threads"), many ? this.processes : "", this.status);
    this.root = el("div", { class: "pane" }, bar, this.grid.root, compared ? el("p", { class: "remarks soft" }, `${CHANCE}.`) : "");
    this.field.addEventListener("input", () => this.refresh(true));
  }

  // many reports whether there are processes to choose from.
  private get many(): boolean {
    const h = this.app.header;
    return (h.parts ?? [h]).some((p) => p.processes.length > 1);
  }

  // processOf is the process of a thread: its number, or for two recordings its command, which is
  // all that the two have in common.
  private processOf(t: number): string {
    const h = this.app.header;
    const { pid } = h.threads[t];
    if (!h.parts) return String(pid);
    if (this.commandsOf !== h) {
      this.commandsOf = h;
      this.commands = h.parts.map((p) => new Map(p.processes.map((x) => [x.pid, commandLine(x.command)])));
    }
    return this.commands[t < h.second ? 0 : 1].get(pid) || `process ${pid}`;
  }

  private commandsOf: ViewHeader | null = null;
  private commands: readonly ReadonlyMap<number, string>[] = [];

  // change is by how much the share of a row rose.
  private change(r: number): number {
    const { is, was } = this;
    return (is.sum > 0 ? is.weight[r] / is.sum : 0) - (was.sum > 0 ? was.weight[r] / was.sum : 0);
  }

  private toggle(r: number): void {
    const { all } = this.app.threads.rows[r];
    const threads = new Set(this.app.state.threads);
    const on = all.some((t) => threads.has(t));
    for (const t of all) {
      if (on) threads.delete(t);
      else threads.add(t);
    }
    this.app.set({ threads });
  }

  update(fresh: boolean): void {
    if (!fresh) return this.refresh(false);
    const { app } = this;
    const { base } = app.state;
    const generation = app.generation;
    const sides: ("before" | "after")[] = app.compared ? ["before", "after"] : ["after"];
    const asked = (side: "before" | "after"): Promise<ThreadSums> => {
      const stretch = side === "before" && !app.header.pair ? base : null;
      const q = app.questions.query(stretch ? ["threads", "from", "to"] : ["threads"]);
      if (stretch) {
        q.set("from", String(stretch[0]));
        q.set("to", String(stretch[1]));
      }
      return app.threads.sums(q, side);
    };
    const known = (side: "before" | "after"): ThreadSums => ({ weight: app.chosen.threadWeight, samples: app.chosen.threadCount, tally: app.difference.tallies?.[side === "before" ? 0 : 1] ?? NO_TALLY });
    const there = !app.state.threads.size && (!app.compared || app.header.pair);
    Promise.all(sides.map((side) => (there ? known(side) : asked(side)))).then((list) => {
      if (generation !== app.generation) return;
      this.is = this.added(list[list.length - 1], "after");
      if (list.length > 1) {
        this.was = this.added(list[0], "before");
        this.chance = new Chance(list[0].tally, list[1].tally);
      }
      this.show();
    }, (e: Error) => e instanceof Grown || app.onError(e.message));
  }

  // added adds threads up by row.
  private added(t: ThreadSums, side: "before" | "after"): Sums {
    const matches = this.app.threads.rows;
    const weight = Float64Array.from(matches, (m) => m[side].reduce((a, x) => a + t.weight[x], 0));
    return { weight, samples: Float64Array.from(matches, (m) => m[side].reduce((a, x) => a + t.samples[x], 0)), sum: weight.reduce((a, b) => a + b, 0) };
  }

  private show(): void {
    const largest = (s: Sums): number => (s.sum > 0 ? s.weight.reduce((a, b) => Math.max(a, b), 0) / s.sum : 0);
    this.most = Math.max(largest(this.is), largest(this.was));
    this.refresh(false);
  }

  // tellProcesses lists the processes with their shares, the largest first.
  private tellProcesses(): void {
    const { app, is, was } = this;
    const { processes, parts } = app.header;
    const sums = new Map<string, [before: number, after: number]>();
    app.threads.rows.forEach((m, r) => {
      const key = this.processOf(m.first), sum = sums.get(key) ?? [0, 0];
      sums.set(key, [sum[0] + (parts ? was.weight[r] ?? 0 : 0), sum[1] + is.weight[r]]);
    });
    const commands = new Map(processes.map((p) => [String(p.pid), p.command]));
    const of = (key: string): string => (parts ? key : `${commandLine(commands.get(key) ?? "") || "process"}`).slice(0, 60) + (parts ? "" : ` · ${key}`);
    const share = ([before, after]: readonly number[]): string => `${parts ? `${percent(before, was.sum)} → ` : ""}${percent(after, is.sum)}`;
    const size = ([before, after]: readonly number[]): number => (was.sum > 0 ? before / was.sum : 0) + (is.sum > 0 ? after / is.sum : 0);
    const list = [...sums].filter(([, s]) => s[0] + s[1] > 0).sort((a, b) => size(b[1]) - size(a[1]) || (a[0] < b[0] ? -1 : 1));
    this.processes.replaceChildren(el("option", { value: "" }, `${count(list.length)} processes`), ...list.map(([key, s]) => el("option", { value: key }, `${share(s)}  ${of(key)}`)));
    this.processes.value = this.only;
  }

  private refresh(top: boolean): void {
    const { app } = this;
    const h = app.header;
    const q = this.field.value.toLowerCase();
    if (!app.state.threads.size) this.only = "";
    const matches = app.threads.rows;
    const { is, was } = this;
    if (is.weight.length !== matches.length) return; // the numbers are not here yet
    const has = (t: number): boolean => (!this.only || this.processOf(t) === this.only) && (!q || `${h.threads[t].name} ${h.threads[t].os} ${h.threads[t].tid}`.toLowerCase().includes(q));
    this.order = matches.map((_, r) => r).filter((r) => (is.samples[r] > 0 || (was.samples[r] ?? 0) > 0 || matches[r].all.some((t) => app.state.threads.has(t))) && matches[r].all.some(has));
    const text = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
    const x = (r: number): ViewHeader["threads"][number] => h.threads[matches[r].first];
    const used = (r: number): number => matches[r].after.reduce((a, t) => a + h.kernelCPU[t], 0);
    const by: Record<Key, (a: number, b: number) => number> = {
      name: (a, b) => text(x(a).name, x(b).name),
      id: (a, b) => x(a).pid - x(b).pid || x(a).tid - x(b).tid,
      kind: (a, b) => text(x(a).kind ?? "", x(b).kind ?? ""),
      weight: (a, b) => is.weight[a] - is.weight[b],
      samples: (a, b) => is.samples[a] - is.samples[b],
      kernel: (a, b) => used(a) - used(b),
      before: (a, b) => (was.weight[a] ?? 0) - (was.weight[b] ?? 0),
      change: (a, b) => Math.abs(this.change(a)) - Math.abs(this.change(b)),
    };
    this.order.sort((a, b) => (this.descending ? -1 : 1) * by[this.by](a, b) || a - b);
    this.grid.sorted(this.by, this.descending);
    if (this.many) this.tellProcesses();
    const chosen = matches.map((_, r) => r).filter((r) => matches[r].all.some((t) => app.state.threads.has(t)));
    this.status.textContent = `${count(this.order.length)} ${h.pair ? "name" : "thread"}${this.order.length === 1 ? "" : "s"}${h.pair ? " of threads" : ""}${chosen.length ? ` · ${chosen.length} chosen, ${percent(chosen.reduce((a, r) => a + is.weight[r], 0), is.sum)}` : ""}`;
    this.grid.refresh(top);
  }

  // matches reports whether the search finds a row, by the names of its threads.
  private matches(re: RegExp, r: number): boolean {
    return this.app.threads.rows[r].all.some((t) => re.test(this.app.model.threadName(t)));
  }

  next(dir: -1 | 1): boolean {
    const re = this.app.pattern;
    return !!re && this.grid.step(dir, (i) => this.matches(re, this.order[i]));
  }

  found(): string {
    const re = this.app.pattern;
    if (!re) return "";
    const n = this.order.filter((r) => this.matches(re, r)).length;
    return n === 0 ? "no match" : `${count(n)} thread${n === 1 ? "" : "s"}`;
  }

  focus(): void {
    this.grid.focus();
  }
}
