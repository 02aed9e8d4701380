// The choice between the two sides of a comparison.

import { segmented } from "../page/dom";
import type { App } from "./app";

// sideSwitch chooses which of two that are compared sets the width of the graphs.
export function sideSwitch(app: App): { root: HTMLElement; set(v: "before" | "after"): void } {
  return segmented<"before" | "after">("Side", [
    { value: "before", label: "Before", title: "As wide as they were before: what is gone is there" },
    { value: "after", label: "After", title: "As wide as they are after: what is new is there" },
  ], (v) => app.set({ before: v === "before" }));
}
