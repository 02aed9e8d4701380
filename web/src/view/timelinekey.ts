// What the colours of the timeline mean.

import { el } from "../page/dom";
import type { App } from "./app";
import { points } from "./change";
import { differenceKey } from "./lanes";
import { STATE_COLORS } from "./time";

export class TimelineKey {
  readonly states = el("div", { class: "states" });
  readonly scale = el("span", { class: "heat-key" }); // explains the colours of the difference
  private scaleIs = "";

  constructor(private readonly app: App) {}

  tell(strongest: number, theme: "light" | "dark"): void {
    this.explain(strongest, theme);
    const present = [...new Set(this.app.chosen.states.map((s) => s.state))];
    this.states.replaceChildren(...present.map((s) => {
      const swatch = el("i", { class: "swatch" });
      swatch.style.background = STATE_COLORS[theme][s] ?? "";
      return el("span", { class: "fact" }, swatch, ` ${s}`);
    }));
  }

  // oneSample is the share of the total that one sample makes.
  get oneSample(): number {
    const { chosen } = this.app;
    const counts = [chosen.before?.chosen ?? chosen.chosen, chosen.chosen];
    return Math.max(...counts.map((c) => (c.samples > 0 ? 1 / c.samples : 0)));
  }

  // explain says what the colours of the difference mean.
  private explain(strongest: number, theme: "light" | "dark"): void {
    const p = this.app.pairing;
    const text = p ? `${points(strongest)} ${p.sides ? "" : "s"} ${theme} ${JSON.stringify(p.of)}` : "";
    if (text === this.scaleIs) return;
    this.scaleIs = text;
    this.scale.replaceChildren(...(p ? differenceKey(p, strongest, theme === "dark", "(points, between the lanes)") : []));
  }
}
