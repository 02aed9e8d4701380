// The zoomed node and those that tabs hold, which are found again by the names on the path to them when
// the tree changes.

import type { Tree } from "../flame/tree";
import { nodeAt, wayOf } from "../flame/way";
import type { State } from "./state";

type Way = string[] | null; // [] leads to the root; null: no node
type Name = (symbol: number) => string;

// Held is a node that a tab keeps.
export interface Held { get(): number; set(node: number): void }

interface Shown { readonly state: State; readonly tree: Tree; readonly starts: Uint8Array }

export class HeldNodes {
  list: Held[] = [];

  constructor(private readonly app: Shown) {}

  // ways are the paths to the zoomed node and to the held ones.
  ways(name: Name): Way[] {
    const { state, tree } = this.app;
    return [state.zoom, ...this.list.map((h) => h.get())].map((i) => (i > 0 ? wayOf(tree, name, i) : i === 0 ? [] : null));
  }

  // find sets the held nodes to where the ways lead now, and returns the one to zoom to, -1 if it does
  // not exist.
  find(ways: readonly Way[], name: Name): number {
    const { tree, starts } = this.app;
    const [zoom, ...held] = ways.map((w) => (w?.length === 0 ? 0 : w ? nodeAt(tree, name, starts, w) : -1));
    this.list.forEach((h, k) => h.set(held[k] ?? -1));
    return zoom;
  }
}
