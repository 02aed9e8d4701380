// The keys of the graph.

import { heaviestChild, neighbour } from "../flame/layout";
import type { Model } from "./model";

// Keyed is what keys do something with: a Chart.
export interface Keyed {
  readonly model: Model;
  readonly selected: number;
  readonly zoom: number;
  readonly flame: boolean;
  readonly on: { zoomed(node: number): void };
  select(node: number): void;
  show(node: number): void;
  scroll(by: number): void;
  scale(by: number, place: number): void;
  pan(by: number): void;
}

// pressed does what a key means in the graph and reports whether it means anything.
export function pressed(chart: Keyed, key: string): boolean {
  const { tree, layout: l } = chart.model;
  const at = chart.selected;
  const outward = chart.flame ? "ArrowDown" : "ArrowUp";
  const inward = chart.flame ? "ArrowUp" : "ArrowDown";
  switch (key) {
    case outward:
    case inward:
    case "ArrowLeft":
    case "ArrowRight": {
      if (at < 0) {
        chart.select(chart.zoom);
        return true;
      }
      let to = -1;
      if (key === outward) to = tree.parent[at];
      else if (key === inward) to = heaviestChild(l, tree, at);
      else to = neighbour(l, tree, at, key === "ArrowLeft" ? -1 : 1);
      if (to >= 0) chart.select(to);
      return true;
    }
    case "Enter":
    case " ":
      if (at >= 0) {
        chart.show(at);
        chart.on.zoomed(at);
      }
      return true;
    case "Backspace": {
      const up = tree.parent[chart.zoom];
      if (up >= 0) {
        chart.show(up);
        chart.on.zoomed(up);
      }
      return true;
    }
    case "Home":
      chart.select(0);
      return true;
    case "PageUp":
    case "PageDown":
      chart.scroll(key === "PageUp" ? -0.9 : 0.9);
      return true;
    case "+":
    case "=":
      chart.scale(1 / 1.5, 0.5);
      return true;
    case "-":
      chart.scale(1.5, 0.5);
      return true;
    case "<":
    case ",":
      chart.pan(-0.2);
      return true;
    case ">":
    case ".":
      chart.pan(0.2);
      return true;
  }
  return false;
}
