// The list of threads: which of them the graph adds up.

import { el } from "./dom";
import { percent } from "./format";
import type { Model } from "./model";

const ROW = 26; // px at the usual font size; the list is drawn only where it is visible

export class Threads {
  readonly root: HTMLDialogElement;
  private readonly list = el("div", { class: "rows" });
  private readonly scroller: HTMLElement;
  private readonly filter: HTMLInputElement;
  private readonly status = el("span", { class: "status", "aria-live": "polite" });
  private order: number[] = [];
  private shown: number[] = [];
  private hidden = new Set<number>();
  private event = 0;

  constructor(private readonly model: Model, private readonly changed: (hidden: Set<number>) => void) {
    this.filter = el("input", { type: "search", placeholder: "Filter by name or number", "aria-label": "Filter threads", input: () => this.refilter() });
    this.scroller = el("div", { class: "scroller", tabindex: 0, role: "group", "aria-label": "Threads", scroll: () => this.paint() }, this.list);
    const all = (on: boolean) => () => {
      for (const t of this.shown) on ? this.hidden.delete(t) : this.hidden.add(t);
      this.apply();
    };
    this.root = el("dialog", { class: "threads", "aria-label": "Threads" },
      el("div", { class: "head" }, el("h2", {}, "Threads"), this.status,
        el("button", { type: "button", class: "quiet close", "aria-label": "Close", click: () => this.root.close() }, "✕")),
      el("div", { class: "tools" }, this.filter,
        el("button", { type: "button", click: all(true) }, "All"), el("button", { type: "button", click: all(false) }, "None")),
      this.scroller);
    this.root.addEventListener("click", (e) => e.target === this.root && this.root.close());
  }

  open(hidden: Set<number>, event: number): void {
    this.hidden = new Set(hidden);
    this.event = event;
    const w = this.model.threadWeight[event] ?? new Float64Array(0);
    this.order = Array.from(w, (_, i) => i).sort((a, b) => w[b] - w[a] || a - b);
    if (!this.root.open) this.root.showModal();
    this.refilter();
    this.filter.focus();
  }

  private refilter(): void {
    const q = this.filter.value.toLowerCase();
    this.shown = q ? this.order.filter((t) => this.model.threadName(t).toLowerCase().includes(q)) : this.order;
    this.scroller.scrollTop = 0;
    this.paint();
  }

  private apply(): void {
    this.paint();
    this.changed(new Set(this.hidden));
  }

  private paint(): void {
    const w = this.model.threadWeight[this.event];
    const sum = w?.reduce((a, b) => a + b, 0) ?? 0;
    const max = this.order.length ? w[this.order[0]] : 0;
    const row = (ROW * (parseFloat(getComputedStyle(document.documentElement).fontSize) || 16)) / 16;
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / row) - 4);
    const last = Math.min(this.shown.length, first + Math.ceil((this.scroller.clientHeight || 400) / row) + 8);
    this.list.style.height = `${this.shown.length * row}px`;
    this.list.replaceChildren(...this.shown.slice(first, last).map((t, k) => {
      const box = el("input", { type: "checkbox" });
      box.checked = !this.hidden.has(t);
      box.addEventListener("change", () => {
        if (box.checked) this.hidden.delete(t);
        else this.hidden.add(t);
        this.apply();
      });
      const only = el("button", { type: "button", class: "quiet only", title: "Show this thread only" }, "only");
      only.addEventListener("click", (e) => {
        e.preventDefault();
        this.hidden = new Set(this.order.filter((o) => o !== t));
        this.apply();
      });
      const gauge = el("i", { class: "gauge" });
      gauge.style.width = `${max ? (100 * w[t]) / max : 0}%`;
      const r = el("label", { class: "row" }, gauge, box, el("span", { class: "thread" }, this.model.threadName(t)), only, el("span", { class: "share" }, percent(w[t], sum)));
      r.style.top = `${(first + k) * row}px`;
      r.style.height = `${row}px`;
      return r;
    }));
    const n = this.order.length;
    this.status.textContent = `${n - this.hidden.size} of ${n}`;
  }
}
