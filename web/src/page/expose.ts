// What scripts and tests may ask of the page in one file.

import type { Chart } from "./chart";
import type { Model } from "./model";
import { PairModel } from "./pair";
import type { State } from "./state";

// expose lets scripts and tests ask the page what it shows.
export function expose(model: Model, chart: Chart, state: () => State): void {
  const pair = model instanceof PairModel ? model : null;
  const view = {
    nodes: () => model.tree.n,
    rows: () => model.layout.rows,
    state: () => ({ ...state(), hidden: [...state().hidden] }),
    // node returns a node by the names on the path to it, or -1.
    node(path: readonly string[]): number {
      let at = 0;
      for (const name of path) {
        let c = at + 1;
        while (c < model.tree.end[at] && model.nameOf(c) !== name) c = model.tree.end[c];
        if (c >= model.tree.end[at]) return -1;
        at = c;
      }
      return at;
    },
    frame: (i: number) => ({
      name: model.nameOf(i), kind: model.data.header.kinds[model.data.kind[model.tree.sym[i]]] ?? "", depth: model.tree.depth[i],
      self: model.values.self[i], total: model.values.total[i], samples: model.values.samples[i],
      kinds: model.kindsIn(i).map((k) => ({ name: model.data.header.kinds[k.kind], total: k.total })),
    }),
    sums: () => {
      let self = 0;
      for (const v of model.values.self) self += v;
      return { self, total: model.values.total[0], samples: model.values.samples[0] };
    },
    // sides is the weight of a node in each of two recordings that are compared.
    sides: (i: number) => pair && {
      base: pair.sides[0].total[i], baseSelf: pair.sides[0].self[i], new: pair.sides[1].total[i], newSelf: pair.sides[1].self[i], change: pair.change[i], numbers: pair.numbers(i).map((f) => f.text),
    },
    matched: () => chart.match && { nodes: chart.match.nodes, total: chart.match.total },
    // redraw draws at once, n times, and returns the milliseconds of each.
    redraw(n = 1): number[] {
      return Array.from({ length: n }, () => {
        const start = performance.now();
        chart.paint();
        chart.canvas.getContext("2d")!.getImageData(0, 0, 1, 1); // waits until all is painted
        return performance.now() - start;
      });
    },
    show: (i: number) => chart.show(i, false),
    select: (i: number) => chart.select(i),
    rectangles: () => chart.rectangles,
  };
  (window as unknown as { candid: typeof view }).candid = view;
}
