// The path from the root to the zoomed frame.

import { el } from "./dom";
import { percent } from "./format";
import type { Model } from "./model";

const ENDS = 4; // of a long path this many are shown from each end

export class Crumbs {
  readonly root = el("nav", { class: "crumbs", "aria-label": "Zoomed to" });

  constructor(private readonly model: Model, private readonly go: (node: number) => void) {}

  show(zoom: number): void {
    const { tree, values, names } = this.model;
    const path: number[] = [];
    for (let i = zoom; i > 0; i = tree.parent[i]) path.push(i);
    path.reverse();
    const list = el("ol", {});
    const add = (i: number): void => {
      const last = i === zoom;
      const n = names[tree.sym[i]];
      const text = i === 0 ? "all" : n.full.slice(n.short, n.end);
      list.append(el("li", {}, last
        ? el("span", { class: "here", "aria-current": "true", title: this.model.nameOf(i) }, text)
        : el("button", { type: "button", title: this.model.nameOf(i), click: () => this.go(i) }, text)));
    };
    add(0);
    path.forEach((i, k) => {
      if (path.length > 2 * ENDS + 1 && k >= ENDS && k < path.length - ENDS) {
        if (k === ENDS) {
          list.append(el("li", { class: "gap" }, el("span", { title: path.slice(ENDS, -ENDS).map((j) => this.model.nameOf(j)).slice(0, 60).join("\n") }, `… ${path.length - 2 * ENDS} …`)));
        }
        return;
      }
      add(i);
    });
    this.root.replaceChildren(list);
    this.root.classList.toggle("whole", zoom === 0);
    if (zoom > 0) {
      this.root.append(el("span", { class: "share" }, `${percent(values.total[zoom], values.total[0])} of all`),
        el("button", { type: "button", class: "reset", title: "Show all (Escape)", click: () => this.go(0) }, "Reset zoom"));
    }
    list.scrollLeft = list.scrollWidth; // if it is too long, its end is shown
  }
}
