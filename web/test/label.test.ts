import assert from "node:assert/strict";
import { test } from "node:test";
import { DARK, KINDS, LEGEND, LIGHT, shades } from "../src/flame/colors";
import { columns, fit, parse } from "../src/flame/label";
import { percent, value } from "../src/page/format";
import { initial, parseRanges, ranges, read, write } from "../src/page/state";

const parts = (full: string, managed: boolean): string[] => {
  const n = parse(full, managed);
  return [full.slice(0, n.short), full.slice(n.short, n.method), full.slice(n.method, n.end), full.slice(n.end)];
};

test("the parts of a name", () => {
  assert.deepEqual(parts("java.util.HashMap.get", true), ["java.util.", "HashMap.", "get", ""]);
  assert.deepEqual(parts("Main.main", true), ["", "Main.", "main", ""]);
  assert.deepEqual(parts("main", true), ["", "", "main", ""]);
  assert.deepEqual(parts("std::vector<std::pair<int, A>, B>::push_back(int const&)", false), ["std::", "vector<std::pair<int, A>, B>::", "push_back", "(int const&)"]);
  assert.deepEqual(parts("Monitor::lock(Thread*)", false), ["", "Monitor::", "lock", "(Thread*)"]);
  assert.deepEqual(parts("int ns::f<A>(int)", false), ["int ", "ns::", "f<A>", "(int)"]);
  assert.deepEqual(parts("StubRoutines (1)", false), ["", "", "StubRoutines (1)", ""]);
  assert.deepEqual(parts("Reference Handler stub", false), ["", "", "Reference Handler stub", ""]);
  assert.deepEqual(parts("do_syscall_64", false), ["", "", "do_syscall_64", ""]);
  assert.deepEqual(parts("(anonymous namespace)::f(int)", false), ["", "(anonymous namespace)::", "f", "(int)"]);
  assert.deepEqual(parts("encoding/binary.(*littleEndian).Uint32", false), ["encoding/", "binary.(*littleEndian).", "Uint32", ""]);
  assert.deepEqual(parts("github.com/a/b.v2/pkg.(*T[go.shape.int,a/b.C]).M.func1.2", false), ["github.com/a/b.v2/", "pkg.(*T[go.shape.int,a/b.C]).", "M.func1.2", ""]);
  assert.deepEqual(parts("slices.partitionOrdered[go.shape.uint64]", false), ["", "slices.", "partitionOrdered[go.shape.uint64]", ""]);
  assert.deepEqual(parts("internal/runtime/maps.ctrlGroup.matchH2", false), ["internal/runtime/", "maps.ctrlGroup.", "matchH2", ""]);
  assert.deepEqual(parts("main.main.gowrap1", false), ["", "main.", "main.gowrap1", ""]);
  for (const c of ["libc.so.6+0x9ced0", "libstdc++.so.6.0.30+0x1", "a.out+0x401000", "jna123.tmp+0xf"]) {
    for (const managed of [true, false]) assert.deepEqual(parts(c, managed), ["", "", c, ""]);
    assert.deepEqual(fit(parse(c, false), 40), { dim: "", text: c });
  }
  assert.deepEqual(parts("/opt/lib.d/libx.so.1+0x2f", false), ["/opt/lib.d/", "", "libx.so.1+0x2f", ""]);
  for (const c of ["memcpy.cold", "f.part.0", "g.constprop.0.isra.0", "counter.12"]) assert.deepEqual(parts(c, false), ["", "", c, ""]);
  for (const odd of ["a.(*b", "a.()", "x/y", "/", "a.b/", "[x].y", "", ".", "::", "a::", "<>", "(((", ">>>", "operator<", "....", "a.", "日本.語"]) {
    for (const managed of [true, false]) assert.equal(parts(odd, managed).join(""), odd);
  }
});

test("a label never takes more room than there is", () => {
  const names = ["java.util.concurrent.ThreadPoolExecutor.runWorker", "std::vector<int>::push_back(int const&)", "main", "[truncated: x]"];
  for (const full of names) {
    for (let n = 0; n < 60; n++) {
      const l = fit(parse(full, full.includes("java")), n);
      assert.ok((l.dim + l.text).length <= n, `${full} in ${n}: ${l.dim}${l.text}`);
      if (n >= 3) assert.notEqual(l.text, "");
    }
  }
  const name = parse("java.util.HashMap.get", true);
  assert.deepEqual(fit(name, 30), { dim: "java.util.", text: "HashMap.get" });
  assert.deepEqual(fit(name, 18), { dim: "….util.", text: "HashMap.get" });
  assert.deepEqual(fit(name, 12), { dim: "", text: "HashMap.get" });
  assert.deepEqual(fit(name, 4), { dim: "", text: "get" });
  assert.equal(columns("日本a"), 5);
});

test("numbers", () => {
  assert.equal(percent(1, 3), "33.3 %");
  assert.equal(percent(3, 3), "100 %");
  assert.equal(percent(99_999, 100_000), "> 99.99 %");
  assert.equal(percent(1, 1e6), "< 0.01 %");
  assert.equal(percent(0, 0), "0 %");
  assert.equal(value(1_500_000_000, "nanoseconds"), "1.50 s");
  assert.equal(value(2048, "bytes"), "2.00 KiB");
  assert.equal(value(12345, "count"), "12,345");
});

test("the address brings the state back", () => {
  const base = initial("none");
  const limits = { threads: 20, events: 2, kinds: KINDS };
  const s = { zoom: 17, query: "a|b &=#", kind: 3, flame: false, split: "thread" as const, event: 1, hidden: new Set([1, 2, 3, 9]), side: "new" as const, starts: true, tiers: true };
  assert.deepEqual(read("#" + write(s, base), base, limits), s);
  assert.equal(write(base, base), "");
  assert.deepEqual(read("#zoom=-1&kind=99&event=7&split=x&without=1-999999999.z", base, limits), { ...base, hidden: new Set(Array.from({ length: 19 }, (_, i) => i + 1)) });
  assert.equal(ranges([1, 2, 3, 9]), "1-3.9");
  assert.deepEqual(parseRanges("", 5), new Set());
});

test("every kind has its colours and its place in the legend", () => {
  for (const t of [LIGHT, DARK]) {
    assert.equal(t.fill.length, KINDS);
    assert.equal(new Set(t.fill.flat()).size, t.fill.flat().length);
  }
  assert.deepEqual([...LEGEND].sort((a, b) => a - b), Array.from({ length: KINDS }, (_, i) => i));
  assert.deepEqual(shades(["a", "a"])[0], shades(["a", "a"])[1]);
});
