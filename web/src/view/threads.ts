// The table of threads: which of them everything shows.

import { el } from "../page/dom";
import { count, percent, value } from "../page/format";
import type { App } from "./app";
import { Grid } from "./grid";
import type { Pane } from "./pane";
import type { Menu } from "./menu";
import { gauge, points } from "./tables";
import { ask, Grown } from "./wire";

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
        const box = el("input", { type: "checkbox", "aria-label": `Count ${x.name}`, tabindex: -1, change: () => this.toggle(t) });
        box.checked = app.state.threads.has(t);
        const only = el("button", { type: "button", class: "quiet only", tabindex: -1, click: () => app.set({ threads: new Set([t]) }) }, "Only");
        return { checked: box.checked, cells: [
          box, gauge(this.weight[t], this.sum, this.most), value(this.weight[t], app.unit), count(this.samples[t]),
          ...(stretch ? [percent(this.was?.[t] ?? 0, this.wasSum), el("span", { class: this.change(t) > 0 ? "more" : this.change(t) < 0 ? "less" : "soft" }, points(this.change(t)))] : []),
          el("span", { title: x.os && x.os !== x.name ? `${x.name}\n${x.os}` : x.name }, x.name || x.os || "thread", el("span", { class: "instead soft" }, ` · ${x.tid}`)),
          many ? `${x.pid} / ${x.tid}` : String(x.tid), h.threadKinds[t], ...(kernel ? [h.kernelCPU[t] ? value(h.kernelCPU[t], "nanoseconds") : ""] : []), only,
        ] };
      },
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
      el("button", { type: "button", click: () => app.set({ threads: new Set() }) }, "All threads"), this.status);
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
      ask(app.path("counts", q)).then((m) => {
        if (generation !== app.generation) return;
        this.was = m.f64("threadWeight");
        this.wasSum = this.was.reduce((a, b) => a + b, 0);
        this.refresh(false);
      }, (e: Error) => e instanceof Grown || app.onError(e.message));
    }
    if (!app.state.threads.size) {
      this.take(app.chosen.threadWeight, app.chosen.threadCount);
      return;
    }
    const generation = app.generation;
    ask(app.path("counts", app.query(["threads"]))).then((m) => {
      if (generation === app.generation) this.take(m.f64("threadWeight"), m.f64("threadCount"));
    }, (e: Error) => e instanceof Grown || app.onError(e.message));
  }

  private take(weight: Float64Array, samples: Float64Array): void {
    this.weight = weight;
    this.samples = samples;
    this.sum = weight.reduce((a, b) => a + b, 0);
    this.most = weight.reduce((a, b) => Math.max(a, b), 0);
    this.refresh(false);
  }

  private refresh(top: boolean): void {
    const { app } = this;
    const h = app.header;
    const q = this.field.value.toLowerCase();
    const found = (t: number): boolean => !q || `${h.threads[t].name} ${h.threads[t].os} ${h.threads[t].tid}`.toLowerCase().includes(q);
    this.order = h.threads.map((_, t) => t).filter((t) => (this.samples[t] > 0 || (this.was?.[t] ?? 0) > 0 || app.state.threads.has(t)) && found(t));
    const text = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
    const by: Record<Key, (a: number, b: number) => number> = {
      name: (a, b) => text(h.threads[a].name, h.threads[b].name),
      id: (a, b) => h.threads[a].pid - h.threads[b].pid || h.threads[a].tid - h.threads[b].tid,
      kind: (a, b) => text(h.threadKinds[a], h.threadKinds[b]),
      weight: (a, b) => this.weight[a] - this.weight[b],
      samples: (a, b) => this.samples[a] - this.samples[b],
      kernel: (a, b) => h.kernelCPU[a] - h.kernelCPU[b],
      change: (a, b) => Math.abs(this.change(a)) - Math.abs(this.change(b)),
    };
    this.order.sort((a, b) => (this.descending ? -1 : 1) * by[this.by](a, b) || a - b);
    this.grid.sorted(this.by, this.descending);
    const n = app.state.threads.size;
    this.status.textContent = `${count(this.order.length)} thread${this.order.length === 1 ? "" : "s"}${n ? ` · ${n} chosen, ${percent([...app.state.threads].reduce((a, t) => a + this.weight[t], 0), this.sum)}` : ""}`;
    this.grid.refresh(top);
  }

  focus(): void {
    this.grid.focus();
  }
}
