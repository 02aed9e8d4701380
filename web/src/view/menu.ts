// The actions for a method, wherever it is shown.

import { el } from "../page/dom";
import type { App, Place } from "./app";
import { threadsOf } from "./match";
import { exactly, type Tab } from "./state";

export class Menu {
  readonly root = el("div", { class: "menu", role: "menu", "aria-label": "With this method", hidden: true });
  private back: Element | null = null;

  constructor(private readonly app: App, private readonly copy: (text: string) => void) {
    addEventListener("pointerdown", (e) => {
      if (!this.root.hidden && !this.root.contains(e.target as Node)) this.close();
    });
    this.root.addEventListener("keydown", (e) => {
      const items = [...this.root.querySelectorAll("button")];
      const i = items.indexOf(document.activeElement as HTMLButtonElement);
      if (e.key === "Escape" || e.key === "Tab") this.close();
      else if (e.key === "ArrowDown") items[(i + 1) % items.length].focus();
      else if (e.key === "ArrowUp") items[(i + items.length - 1) % items.length].focus();
      else if (e.key === "Home") items[0].focus();
      else if (e.key === "End") items[items.length - 1].focus();
      else return;
      e.preventDefault();
      e.stopPropagation();
    });
  }

  close(): void {
    if (this.root.hidden) return;
    this.root.hidden = true;
    if (this.back instanceof HTMLElement) this.back.focus();
  }

  // open shows the menu for the method of a symbol; stack is the text of the stack on which it
  // was opened, and place the frame, if it was one.
  open(symbol: number, x: number, y: number, stack = "", place: Place = { node: -1, group: -1 }): void {
    const { app } = this;
    if (symbol < 0) return;
    const { node } = place;
    const name = app.nameOf(symbol);
    const method = symbol < app.methods.of.length && app.methods.of[symbol] >= 0;
    const item = this.item;
    const { state } = app;
    const with_ = (list: readonly string[], e: string): string[] => [...list.filter((x) => x !== e), e];
    const add = (list: readonly string[]): string[] => with_(list, exactly(name));
    const n = app.model.names[symbol];
    const pack = method && n.short > 1 ? name.slice(0, n.short).replace(/\.$/, "") : "";
    const module = method ? app.model.data.funcs[symbol].module : "";
    this.show(name, x, y, [
      ...(method ? [
        item("Focus: only stacks with it", () => app.set({ focus: add(state.focus), zoom: 0 })),
        item("Leave out stacks with it", () => app.set({ ignore: add(state.ignore), zoom: 0 })),
        item("Merge it into its callers", () => app.set({ merge: add(state.merge) })),
        item("Show its recursion as one frame", () => app.set({ recursion: add(state.recursion) })),
        item("Show all recursion as one frame", () => app.set({ recursion: ["."] })),
        ...(pack ? [item(`Show package ${pack} as one frame`, () => app.set({ collapse: with_(state.collapse, `package ${pack}`) }))] : []),
        ...(module ? [item(`Show ${module} as one frame`, () => app.set({ collapse: with_(state.collapse, `module ${module}`) }))] : []),
        el("div", { class: "menu-title", role: "presentation" }, "Show it in"),
        item("Flame graph", () => (node > 0 && place.group < 0 && state.split === "none" ? app.go("flame", { zoom: app.model.nodeOf(node, state.tiers), query: "" }) : app.go("flame", { query: exactly(name), zoom: 0 }))),
        item("Call tree", () => {
          const there = node > 0 ? Promise.resolve(node) : app.sums.heaviest(app.methods.of[symbol]).catch(() => -1);
          void there.then((node) => {
            app.reveal = { node, group: place.group };
            app.go("tree");
          });
        }),
        item("Methods", () => app.go("methods", { query: exactly(name) })),
        item("Callers", () => app.go("callers", { of: name, sandwich: false })),
        item("Callers and callees (sandwich)", () => app.go("callers", { of: name, sandwich: true })),
        ...(app.header.timed ? [
          item("Timeline: when it ran, by thread", () => app.go("timeline", { focus: add(state.focus), zoom: 0 })),
          item("Heatmap: when it ran", () => app.go("heatmap", { focus: add(state.focus), zoom: 0 })),
        ] : []),
        item("Threads: which ran it", () => app.go("threads", { focus: add(state.focus), zoom: 0 })),
        el("div", { class: "menu-line", role: "separator" }),
      ] : []),
      item("Copy the name", () => this.copy(name)),
      ...(stack ? [item("Copy the stack", () => this.copy(stack))] : [])]);
  }

  // openThread shows the actions for a thread.
  openThread(t: number, x: number, y: number): void {
    const { app, item } = this;
    const only = { threads: new Set(app.threads.alike(t)), zoom: 0 };
    const views: [Tab, string][] = [["flame", "Flame graph"], ["tree", "Call tree"], ["methods", "Methods"], ["callers", "Callers"], ["timeline", "Timeline"], ["heatmap", "Heatmap"], ["events", "Events and states"]];
    this.show(app.model.threadName(t), x, y, [
      el("div", { class: "menu-title", role: "presentation" }, "Only this thread in"),
      ...views.filter(([v]) => app.header.timed || (v !== "timeline" && v !== "heatmap")).map(([v, label]) => item(label, () => app.go(v, v === "callers" ? { ...only, of: "" } : only))),
      el("div", { class: "menu-line", role: "separator" }),
      app.header.processes.length > 1 ? item("All threads of its process", () => app.set({ threads: threadsOf(app.header, app.header.threads[t].pid), zoom: 0 })) : "",
      item("Leave it out", () => {
        const rest = new Set(app.state.threads.size ? app.state.threads : app.header.threads.keys());
        for (const x of app.threads.alike(t)) rest.delete(x);
        app.set({ threads: rest, zoom: 0 });
      }),
      item("Copy the name", () => this.copy(app.model.threadName(t)))]);
  }

  private readonly item = (label: string, act: () => void): HTMLElement =>
    el("button", { type: "button", role: "menuitem", tabindex: -1, click: () => {
      this.close();
      act();
    } }, label);

  private show(title: string, x: number, y: number, items: readonly (HTMLElement | "")[]): void {
    this.back = document.activeElement;
    this.root.replaceChildren(el("div", { class: "menu-title", title }, title), ...items);
    this.root.hidden = false;
    const box = this.root.getBoundingClientRect();
    this.root.style.left = `${Math.max(4, Math.min(x, innerWidth - box.width - 4))}px`;
    this.root.style.top = `${Math.max(4, Math.min(y, innerHeight - box.height - 4))}px`;
    this.root.querySelector("button")!.focus();
  }
}
