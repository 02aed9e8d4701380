// What can be done with a method, wherever it stands.

import { el } from "../page/dom";
import type { App } from "./app";
import { exactly } from "./state";

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

  // open shows it for the method of a symbol; stack is the text of the stack it
  // was opened on.
  open(symbol: number, x: number, y: number, stack = ""): void {
    const { app } = this;
    if (symbol < 0) return;
    const name = app.nameOf(symbol);
    const method = symbol < app.methods.of.length && app.methods.of[symbol] >= 0;
    const item = (label: string, act: () => void): HTMLElement =>
      el("button", { type: "button", role: "menuitem", tabindex: -1, click: () => {
        this.close();
        act();
      } }, label);
    const { state } = app;
    const add = (list: readonly string[]): string[] => [...list.filter((e) => e !== exactly(name)), exactly(name)];
    this.back = document.activeElement;
    this.root.replaceChildren(
      el("div", { class: "menu-title", title: name }, name),
      ...(method ? [
        item("Focus: only stacks with it", () => app.set({ focus: add(state.focus), zoom: 0 })),
        item("Leave out stacks with it", () => app.set({ ignore: add(state.ignore), zoom: 0 })),
        item("Who calls it", () => app.go("callers", { of: name })),
        item("Find it in the flame graph", () => app.go("flame", { query: exactly(name), zoom: 0 })),
        item("Show it in the method list", () => app.go("methods", { query: exactly(name) })),
      ] : []),
      item("Copy the name", () => this.copy(name)),
      ...(stack ? [item("Copy the stack", () => this.copy(stack))] : []));
    this.root.hidden = false;
    const box = this.root.getBoundingClientRect();
    this.root.style.left = `${Math.max(4, Math.min(x, innerWidth - box.width - 4))}px`;
    this.root.style.top = `${Math.max(4, Math.min(y, innerHeight - box.height - 4))}px`;
    this.root.querySelector("button")!.focus();
  }
}
