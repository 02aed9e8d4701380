import assert from "node:assert/strict";
import { test } from "node:test";
import { deepestCovering, firstAfter, heaviestChild, layout, neighbour, nodeAt } from "../src/flame/layout";
import { compile, match, matching, step, within } from "../src/flame/search";
import { foldStarts } from "../src/flame/starts";
import { addUp, fromDepth, split, type Cells } from "../src/flame/tree";

// root ─ a(0) ─ b(1) ─ a(0)
//      │      └ c(2)
//      └ b(1)
const depth = Int32Array.of(0, 1, 2, 3, 2, 1);
const sym = Int32Array.of(-1, 0, 1, 0, 2, 1);
const tree = fromDepth(depth, sym);
const cells: Cells = {
  n: 6,
  node: Int32Array.of(1, 3, 3, 4, 5, 5), thread: Int32Array.of(0, 0, 1, 1, 0, 0), event: Int32Array.of(0, 0, 0, 0, 0, 1),
  count: Float64Array.of(1, 2, 3, 4, 5, 6), weight: Float64Array.of(10, 20, 30, 40, 50, 60),
};
const all = Uint8Array.of(1, 1);

test("parents and ends follow from the depth", () => {
  assert.deepEqual([...tree.parent], [-1, 0, 1, 2, 1, 0]);
  assert.deepEqual([...tree.end], [6, 5, 4, 4, 5, 6]);
  assert.throws(() => fromDepth(Int32Array.of(0, 2), Int32Array.of(-1, 0)));
  assert.throws(() => fromDepth(Int32Array.of(0, 0), Int32Array.of(-1, 0)));
});

test("adding up", () => {
  const v = addUp(tree, cells, 0, all);
  assert.deepEqual([...v.self], [0, 10, 0, 50, 40, 50]);
  assert.deepEqual([...v.total], [150, 100, 50, 50, 40, 50]);
  assert.deepEqual([...v.samples], [15, 10, 5, 5, 4, 5]);
  assert.deepEqual([...addUp(tree, cells, 0, Uint8Array.of(0, 1)).total], [70, 70, 30, 30, 40, 0]);
  assert.deepEqual([...addUp(tree, cells, 1, all).total], [60, 0, 0, 0, 0, 60]);
});

test("splitting by thread loses nothing", () => {
  const s = split(tree, cells, Int32Array.of(0, 1), [1, 0], 3);
  assert.deepEqual([...s.tree.sym], [-1, 4, 0, 1, 0, 2, 3, 0, 1, 0, 1]);
  assert.deepEqual([...s.tree.depth], [0, 1, 2, 3, 4, 3, 1, 2, 3, 4, 2]);
  const v = addUp(s.tree, s.cells, 0, all);
  assert.deepEqual([...v.total], [150, 70, 70, 30, 30, 40, 80, 30, 20, 20, 50]);
});

test("layout, and finding in it", () => {
  const l = layout(tree, addUp(tree, cells, 0, all).total);
  assert.deepEqual([...l.x], [0, 0, 0, 0, 50, 100]);
  assert.equal(l.rows, 4);
  assert.deepEqual([...l.rowNodes], [0, 1, 5, 2, 4, 3]);
  assert.equal(nodeAt(l, 1, 99), 1);
  assert.equal(nodeAt(l, 1, 100), 5);
  assert.equal(nodeAt(l, 2, 95), -1);
  assert.equal(nodeAt(l, 9, 0), -1);
  assert.equal(firstAfter(l, l.rowStart[2], l.rowStart[3], 50), l.rowStart[2] + 1);
  assert.equal(neighbour(l, tree, 1, 1), 5);
  assert.equal(neighbour(l, tree, 1, -1), -1);
  assert.equal(heaviestChild(l, tree, 1), 2);
  assert.equal(heaviestChild(l, tree, 3), -1);
  assert.equal(deepestCovering(l, tree, 0, 50), 3);
  assert.equal(deepestCovering(l, tree, 10, 70), 1);
  assert.equal(deepestCovering(l, tree, 40, 120), 0);
});

test("what has no value takes no room", () => {
  const l = layout(tree, addUp(tree, cells, 1, all).total);
  assert.deepEqual([...l.rowNodes], [0, 5]);
  assert.equal(l.rows, 2);
  assert.equal(layout(tree, new Float64Array(tree.n)).rows, 0);
});

test("a search counts each stack once", () => {
  const l = layout(tree, addUp(tree, cells, 0, all).total);
  const a = match(tree, l, matching(["a", "b", "c"], /a/));
  assert.equal(a.total, 100); // not 150: the inner a is in it
  assert.equal(a.nodes, 2);
  const b = matching(["a", "b", "c"], /b/);
  assert.equal(match(tree, l, b).total, 100);
  assert.equal(within(tree, l, b, 1), 50);
  assert.equal(within(tree, l, b, 3), 50); // it lies in a b
  assert.equal(step(tree, l, b, 0, 1), 2);
  assert.equal(step(tree, l, b, 2, 1), 5);
  assert.equal(step(tree, l, b, 5, 1), 2);
  assert.equal(step(tree, l, b, 2, -1), 5);
  assert.equal(step(tree, l, new Uint8Array(3), 0, 1), -1);
});

test("expressions", () => {
  assert.ok(compile("hashmap").re!.test("java.util.HashMap"));
  assert.ok(!compile("HashMAP").re!.test("java.util.HashMap"));
  assert.ok(compile("a{").re!.test("a{"));
  assert.ok(compile("(").error);
  assert.equal(compile("").re, undefined);
});

test("what starts threads is folded, once for all ways to one function", () => {
  // 0 start_thread, 1 unnamed in the VM, 2 run, 3 work, 4 exit of the kernel
  const marks = Uint8Array.of(1 | 2, 1 | 4, 4, 4, 0);
  // root ─ 0 ─ 1 ─ 0 ─ 2 ─ 3(4)      (run, by a start without a name that leads to one)
  //      │   ├ 2 ─ 3(5)               (the same another way)
  //      │   ├ 1 ─ 3(6)               (leads to none: it is what the thread is there for)
  //      │   └ 4(1)                   (stays)
  //      └ 3(2)
  const t = fromDepth(Int32Array.of(0, 1, 2, 3, 4, 5, 2, 3, 2, 3, 2, 1), Int32Array.of(-1, 0, 1, 0, 2, 3, 2, 3, 1, 3, 4, 3));
  const own = [0, 0, 0, 0, 0, 4, 0, 5, 0, 6, 1, 2];
  const samples = Float64Array.from(own);
  for (let i = t.n - 1; i > 0; i--) samples[t.parent[i]] += samples[i];
  const f = foldStarts(t, marks, samples)!;
  const ended = new Float64Array(f.tree.n);
  own.forEach((v, i) => (ended[f.to[i]] += v));
  assert.deepEqual(Array.from(f.tree.sym, (s, i) => [f.tree.depth[i], s, ended[i]]), [
    [0, -1, 0], [1, 2, 0], [2, 3, 9], [1, 1, 0], [2, 3, 6], [1, 3, 2], [1, 0, 0], [2, 4, 1],
  ]);
  assert.deepEqual([...f.from], [0, 6, 7, 8, 9, 11, 1, 10]);
  assert.equal(foldStarts(f.tree, marks, Float64Array.from(f.tree.sym, () => 1)), null);
});
