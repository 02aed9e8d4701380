import assert from "node:assert/strict";
import { test } from "node:test";
import { addUp, fromDepth, type Cells } from "../src/flame/tree";
import { gather, mergeTiers, settle } from "../src/flame/tiers";

// Symbols: a interpreted 0, a C2 1, b interpreted 2, b C1 3, b C2 4, c 5.
const KEY = Int32Array.of(0, 0, 1, 1, 1, 2);
const KIND = Uint8Array.of(3, 6, 3, 5, 6, 6);

function cells(at: readonly (readonly [node: number, weight: number])[]): Cells {
  const n = at.length;
  return {
    n, node: Int32Array.from(at, (a) => a[0]), thread: new Int32Array(n), event: new Int32Array(n),
    count: new Float64Array(n).fill(1), weight: Float64Array.from(at, (a) => a[1]),
  };
}

test("frames of one function are one, whatever code they ran", () => {
  //        root a-int b-int c  b-C1 a-C2 b-C2 c  c
  const depth = [0, 1, 2, 3, 2, 1, 2, 3, 2], sym = [-1, 0, 2, 5, 3, 1, 4, 5, 5];
  const fine = fromDepth(Int32Array.from(depth), Int32Array.from(sym));
  const v = addUp(fine, cells([[2, 1], [3, 4], [4, 8], [5, 2], [6, 16], [7, 32], [8, 3]]), 0, Uint8Array.of(1));
  const m = mergeTiers(fine, KEY, v.samples)!;
  assert.deepEqual([...m.tree.depth], [0, 1, 2, 3, 2]);
  const values = gather(m, v);
  settle(m, fine, v.total, KIND);
  assert.deepEqual([...values.total], [66, 66, 61, 36, 3]);
  assert.deepEqual([...values.self], [0, 2, 25, 36, 3]);
  assert.deepEqual([...values.samples], [7, 7, 5, 2, 1]);
  assert.deepEqual([...m.tree.sym], [-1, 1, 4, 5, 5], "C2 is what most of a and of b ran in");
  assert.deepEqual([...m.to], [0, 1, 2, 3, 2, 1, 2, 3, 4]);
  assert.deepEqual([...m.members.subarray(m.first[2], m.first[3])], [2, 4, 6]);

  // Of other samples another kind is the dominant one.
  settle(m, fine, addUp(fine, cells([[4, 8], [6, 7]]), 0, Uint8Array.of(1)).total, KIND);
  assert.deepEqual([...m.tree.sym], [-1, 0, 3, 5, 5]);
});

test("a tree in which nothing is to be merged stays", () => {
  const fine = fromDepth(Int32Array.of(0, 1, 2, 2), Int32Array.of(-1, 0, 2, 5));
  assert.equal(mergeTiers(fine, KEY, [3, 3, 1, 1]), null);
});

test("children come in the order of what they are together", () => {
  // c 5 is heavier than either b, and lighter than both.
  const fine = fromDepth(Int32Array.of(0, 1, 2, 2, 2), Int32Array.of(-1, 0, 5, 2, 4));
  const m = mergeTiers(fine, KEY, [10, 10, 4, 3, 3])!;
  assert.deepEqual([...m.to], [0, 1, 3, 2, 2]);
  assert.deepEqual([...m.tree.parent], [-1, 0, 1, 1]);
});

test("a large tree keeps every sum", () => {
  let seed = 1;
  const random = (n: number): number => (seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) % n;
  const depth = [0], sym = [-1];
  for (let d = 0; depth.length < 200_000; ) {
    d = Math.max(1, Math.min(60, random(4) ? d + 1 : d - random(8)));
    depth.push(d);
    sym.push(random(6));
  }
  const fine = fromDepth(Int32Array.from(depth), Int32Array.from(sym));
  const v = addUp(fine, cells(Array.from({ length: 50_000 }, () => [random(depth.length), random(9) + 1] as const).sort((a, b) => a[0] - b[0])), 0, Uint8Array.of(1));
  const m = mergeTiers(fine, KEY, v.samples)!;
  const values = gather(m, v);
  assert.equal(values.self.reduce((a, b) => a + b, 0), v.total[0]);
  const seen = new Set<string>();
  for (let i = 1; i < m.tree.n; i++) {
    let below = values.self[i];
    for (let c = i + 1; c < m.tree.end[i]; c = m.tree.end[c]) below += values.total[c];
    assert.equal(values.total[i], below);
    const k = `${m.tree.parent[i]} ${KEY[m.tree.sym[i]]}`;
    assert.ok(!seen.has(k), "two children of one function");
    seen.add(k);
  }
  for (let i = 1; i < fine.n; i++) assert.equal(m.to[fine.parent[i]], m.tree.parent[m.to[i]]);
});
