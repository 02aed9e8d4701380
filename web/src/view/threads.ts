// The table of threads: which of them everything shows.

import { el } from "../page/dom";
import { commandLine, count, percent, value } from "../page/format";
import type { App } from "./app";
import { Grid } from "./grid";
import type { Pane } from "./pane";
import type { Menu } from "./menu";
import { delta, gauge } from "./tables";
import { Grown } from "./wire";

type Key = "name" | "id" | "kind" | "weight" | "samples" | "kernel" | "change";

export class ThreadsPane implements Pane {
  readonly root: HTMLElement;
  private readonly grid: Grid;
  private readonly field = el("input", { type: "search", placeholder: "Search threads", "aria-label": "Search threads by name or number", spellcheck: "false", autocomplete: "off" });
  private readonly status = el("span", { class: "pane-title", "aria-live": "polite" });
  private order: number[] = [];
  private by: Key = "weight";
  private descending = true;
  private weight: Float64Array;
  private samples: Float64Array;
  private sum = 0;
  private most = 0; // what the bars are relative to

  private only = -1; // the process whose threads are listed; -1: all are

  // Of many processes: those whose threads can be chosen together, and are listed then.
  private readonly processes = el("select", { "aria-label": "Choose the threads of a process", change: () => {
    this.only = this.processes.value ? Number(this.processes.value) : -1;
    this.app.set({ threads: this.processes.value ? this.app.threadsOfProcess(Number(this.processes.value)) : new Set() });
  } });

  private was: Float64Array | null = null; // weight in the other stretch of time
  private wasSum = 0;

  constructor(private readonly app: App, menu: Menu) {
    const n = app.header.threads.length;
    const stretch = !app.header.pair && app.compared;
    this.weight = new Float64Array(n);
    this.samples = new Float64Array(n);
    const kernel = app.header.kernelCPU.some((v) => v > 0);
    const many = app.header.processes.length > 1;
    this.grid = new Grid({
      label: "Threads", empty: "No thread is left: no sample passes the filters, or the search finds nothing.",
      columns: [
        { id: "chosen", label: "", title: "Threads that count; none chosen: all", width: "2rem" },
        { id: "weight", label: "Share", title: "Of what passes all filters but that of threads", numeric: true, sortable: true, width: "6.5rem" },
        { id: "value", label: "", numeric: true, width: "5.5rem", spare: true },
        { id: "samples", label: "Samples", numeric: true, sortable: true, width: "5.5rem", spare: true },
        ...(stretch ? [{ id: "before", label: "Before", title: "Its share of the other stretch of time", numeric: true, width: "5rem" }, { id: "change", label: "±", title: "By how many percentage points its share went up or down", numeric: true, sortable: true, width: "5.5rem" }] : []),
        { id: "name", label: "Thread", sortable: true, width: "minmax(14rem, 2fr)" },
        { id: "id", label: many ? "PID / TID" : "TID", numeric: true, sortable: true, width: "8rem", spare: true },
        { id: "kind", label: "Kind", title: "What the thread is for", sortable: true, width: "6rem", spare: true },
        ...(kernel ? [{ id: "kernel", label: "CPU by the kernel", title: "CPU time that the kernel counted over the whole recording", numeric: true, sortable: true, width: "9rem", spare: true }] : []),
        { id: "only", label: "", width: "5rem" },
      ],
      count: () => this.order.length,
      row: (i) => {
        const t = this.order[i];
        const h = app.header;
        const x = h.threads[t];
        return { cells: [
          { kind: "check", label: `Count ${x.name}`, on: app.state.threads.has(t) }, gauge(this.weight[t], this.sum, this.most), value(this.weight[t], app.unit), count(this.samples[t]),
          ...(stretch ? [percent(this.was?.[t] ?? 0, this.wasSum), delta(this.change(t))] : []),
          { kind: "thread", title: x.os && x.os !== x.name ? `${x.name}\n${x.os}` : x.name, name: x.name || x.os || "thread", instead: ` · ${x.tid}` },
          many ? `${x.pid} / ${x.tid}` : String(x.tid), h.threads[t].kind ?? "", ...(kernel ? [h.kernelCPU[t] ? value(h.kernelCPU[t], "nanoseconds") : ""] : []), { kind: "press", label: "Only" },
        ] };
      },
      check: (i) => this.toggle(this.order[i]),
      press: (i) => app.set({ threads: new Set([this.order[i]]) }),
      act: (i) => this.toggle(this.order[i]),
      menu: (i, x, y) => menu.openThread(this.order[i], x, y),
      sort: (id) => {
        this.descending = id === this.by ? !this.descending : id !== "name" && id !== "kind" && id !== "id";
        this.by = id as Key;
        this.refresh(true);
      },
    });
    const bar = el("div", { class: "pane-bar" }, this.field,
      el("button", { type: "button", title: "Choose those that the search finds", click: () => app.set({ threads: new Set(this.order) }) }, "Choose found"),
      el("button", { type: "button", click: () => app.set({ threads: new Set() }) }, "All threads"), many ? this.processes : "", this.status);
    this.root = el("div", { class: "pane" }, bar, this.grid.root);
    this.field.addEventListener("input", () => this.refresh(true));
  }

  // change is by how much a thread's share went up.
  private change(t: number): number {
    return (this.sum > 0 ? this.weight[t] / this.sum : 0) - (this.wasSum > 0 && this.was ? this.was[t] / this.wasSum : 0);
  }

  private toggle(t: number): void {
    const threads = new Set(this.app.state.threads);
    if (!threads.delete(t)) threads.add(t);
    this.app.set({ threads });
  }

  update(fresh: boolean): void {
    if (!fresh) return this.refresh(false);
    const { app } = this;
    const { base } = app.state;
    if (base && !app.header.pair) {
      const q = app.query(["threads", "from", "to"]);
      q.set("from", String(base[0]));
      q.set("to", String(base[1]));
      const generation = app.generation;
      app.threadSums(q).then((t) => {
        if (generation !== app.generation) return;
        this.was = t.weight;
        this.wasSum = this.was.reduce((a, b) => a + b, 0);
        this.refresh(false);
      }, (e: Error) => e instanceof Grown || app.onError(e.message));
    }
    if (!app.state.threads.size) {
      this.take(app.chosen.threadWeight, app.chosen.threadCount);
      return;
    }
    const generation = app.generation;
    app.threadSums(app.query(["threads"])).then((t) => {
      if (generation === app.generation) this.take(t.weight, t.samples);
    }, (e: Error) => e instanceof Grown || app.onError(e.message));
  }

  private take(weight: Float64Array, samples: Float64Array): void {
    this.weight = weight;
    this.samples = samples;
    this.sum = weight.reduce((a, b) => a + b, 0);
    this.most = weight.reduce((a, b) => Math.max(a, b), 0);
    this.refresh(false);
  }

  // tellProcesses lists the processes with their shares, the largest first.
  private tellProcesses(): void {
    const { app } = this;
    const { threads, processes } = app.header;
    const weight = new Map<number, number>(processes.map((p) => [p.pid, 0]));
    threads.forEach((t, i) => weight.set(t.pid, (weight.get(t.pid) ?? 0) + this.weight[i]));
    const commands = new Map(processes.map((p) => [p.pid, p.command]));
    const list = [...weight].filter(([, w]) => w > 0).sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    this.processes.replaceChildren(el("option", { value: "" }, `${count(list.length)} processes`),
      ...list.map(([pid, w]) => el("option", { value: pid }, `${percent(w, this.sum)}  ${(commandLine(commands.get(pid) ?? "") || "process").slice(0, 60)} · ${pid}`)));
    this.processes.value = this.only >= 0 ? String(this.only) : "";
  }

  private refresh(top: boolean): void {
    const { app } = this;
    const h = app.header;
    const q = this.field.value.toLowerCase();
    if (!app.state.threads.size) this.only = -1;
    const found = (t: number): boolean => (this.only < 0 || h.threads[t].pid === this.only) && (!q || `${h.threads[t].name} ${h.threads[t].os} ${h.threads[t].tid}`.toLowerCase().includes(q));
    this.order = h.threads.map((_, t) => t).filter((t) => (this.samples[t] > 0 || (this.was?.[t] ?? 0) > 0 || app.state.threads.has(t)) && found(t));
    const text = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
    const by: Record<Key, (a: number, b: number) => number> = {
      name: (a, b) => text(h.threads[a].name, h.threads[b].name),
      id: (a, b) => h.threads[a].pid - h.threads[b].pid || h.threads[a].tid - h.threads[b].tid,
      kind: (a, b) => text(h.threads[a].kind ?? "", h.threads[b].kind ?? ""),
      weight: (a, b) => this.weight[a] - this.weight[b],
      samples: (a, b) => this.samples[a] - this.samples[b],
      kernel: (a, b) => h.kernelCPU[a] - h.kernelCPU[b],
      change: (a, b) => Math.abs(this.change(a)) - Math.abs(this.change(b)),
    };
    this.order.sort((a, b) => (this.descending ? -1 : 1) * by[this.by](a, b) || a - b);
    this.grid.sorted(this.by, this.descending);
    if (h.processes.length > 1) this.tellProcesses();
    const n = app.state.threads.size;
    this.status.textContent = `${count(this.order.length)} thread${this.order.length === 1 ? "" : "s"}${n ? ` · ${n} chosen, ${percent([...app.state.threads].reduce((a, t) => a + this.weight[t], 0), this.sum)}` : ""}`;
    this.grid.refresh(top);
  }

  focus(): void {
    this.grid.focus();
  }
}
