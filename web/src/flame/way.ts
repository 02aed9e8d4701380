// The place of a node of one tree in another tree of the same recording, by the names on the path
// to it.

import type { Tree } from "./tree";

type NameOf = (symbol: number) => string;

// wayOf is the names on the path to a node, null if there is no path.
export function wayOf(tree: Tree, name: NameOf, node: number): string[] | null {
  if (node <= 0 || node >= tree.n) return node === 0 ? [] : null;
  const out: string[] = [];
  for (let i = node; i > 0; i = tree.parent[i]) out.push(name(tree.sym[i]));
  return out.reverse();
}

// nodeAt is the node at the end of a path, -1 if it does not exist. starts says for each symbol
// whether threads start by it: a path may have such frames where the tree has none, or lack them
// where it has them.
export function nodeAt(tree: Tree, name: NameOf, starts: Uint8Array, way: readonly string[] | null): number {
  if (!way) return -1;
  let at = below(tree, name, 0, way);
  if (at >= 0) return at;
  const begins = new Set<string>();
  starts.forEach((yes, s) => yes && begins.add(name(s)));
  const first = way.findIndex((w) => !begins.has(w));
  if (first > 0) return below(tree, name, 0, way.slice(first));
  for (let i = 1; i < tree.n; ) {
    if (!starts[tree.sym[i]]) {
      i = tree.end[i];
      continue;
    }
    if ((at = below(tree, name, i, way)) >= 0) return at;
    i++;
  }
  return -1;
}

// below is the node at the end of a path from another node, -1 if it does not exist.
function below(tree: Tree, name: NameOf, at: number, way: readonly string[]): number {
  for (const next of way) {
    let c = at + 1;
    while (c < tree.end[at] && name(tree.sym[c]) !== next) c = tree.end[c];
    if (c >= tree.end[at]) return -1;
    at = c;
  }
  return at;
}
