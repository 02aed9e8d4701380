import assert from "node:assert/strict";
import { test } from "node:test";
import { fromDepth } from "../src/flame/tree";
import { goPattern } from "../src/view/bar";
import { methodsOf, sumsOf } from "../src/view/methods";
import { OpenRows, Rows, type Known } from "../src/view/rows";
import { commandLine } from "../src/page/format";
import { half } from "../src/view/sandwich";
import { exactly, initial, read, recordingOf, readable, write } from "../src/view/state";
import { spanText, ticks, time } from "../src/view/time";
import { decode } from "../src/view/wire";

// root ─ a(0) ─ b(1) ─ a(0)
//      │      └ b'(2), the method b in other code
//      └ b(1)
const tree = fromDepth(Int32Array.of(0, 1, 2, 3, 2, 1), Int32Array.of(-1, 0, 1, 0, 2, 1));

test("sums of methods, as candid sends them", () => {
  const columns: Record<string, unknown> = {
    method: Uint32Array.of(0, 2), self: Float64Array.of(30, 70), total: Float64Array.of(60, 90), count: Uint32Array.of(3, 7), samples: Uint32Array.of(6, 9), node: Uint32Array.of(1, 5), kind: Uint8Array.of(6, 5), remark: Uint8Array.of(0, 2),
  };
  const get = (name: string): never => columns[name] as never;
  const s = sumsOf({ head: {}, u8: get, u32: get, i32: get, f32: get, f64: get, has: (name) => name in columns }, 3);
  assert.deepEqual([[...s.self], [...s.total], [...s.count], [...s.samples], [...s.kind], [...s.remark], [...s.node]], [[30, 0, 70], [60, 0, 90], [3, 0, 7], [6, 0, 9], [6, 0, 5], [0, 0, 2], [1, -1, 5]]);
});

const knownAs = (names: string[], of: number[], threads: number): Known => ({ names: names.map((full) => ({ full, short: 0, method: 0, end: full.length })), methods: methodsOf(Int32Array.from(of)), threads });

// table is what candid sends of rows: depth, symbol, and whether they are open.
function table(known: Known, list: [number, number, boolean][]): Rows {
  const n = list.length;
  const columns: Record<string, unknown> = {
    depth: Uint32Array.from(list, (r) => r[0]), symbol: Uint32Array.from(list, (r) => r[1]), flags: Uint8Array.from(list, (r) => (r[2] ? 1 : 2)), remark: new Uint8Array(n), place: new Int32Array(n),
    self: new Float64Array(n), total: new Float64Array(n), samples: new Uint32Array(n),
  };
  const get = (name: string): never => columns[name] as never;
  return new Rows({ head: { more: false, shown: -1 }, u8: get, u32: get, i32: get, f32: get, f64: get, has: (name) => name in columns }, known);
}

test("rows that are open stay open, by their names where the symbols are others", () => {
  const known = knownAs(["a", "b", "b", "c", "thread 1"], [0, 1, 1, 2], 1); // b in two kinds of code
  const rows = table(known, [[0, 0, true], [1, 1, true], [2, 3, false], [1, 4, false], [0, 3, false]]);
  assert.deepEqual([rows.way(2), rows.find(["a", "b", "c"]), rows.find(["a", "thread 1"]), rows.find(["c"]), rows.find(["b"])], [[0, 1, 2], 2, 3, 4, -1]);
  const open = new OpenRows(known);
  assert.ok(!open.any);
  open.take(rows);
  assert.ok(open.any);
  assert.deepEqual(open.write(new Set()), { text: "0.0_1.1", unfold: [], n: 2 });
  const c = open.at(rows, 4);
  c.open = true;
  assert.deepEqual(open.write(new Set([c])), { text: "0.0_1.1_0.3", unfold: [2], n: 3 });
  open.at(rows, 0).open = false; // what is below it is not seen, and comes back with it
  assert.deepEqual(open.write(new Set()).text, "0.3");
  open.at(rows, 0).open = true;

  // The recording has grown: threads come after more symbols.
  const grown = knownAs(["a", "b", "b", "c", "d", "thread 1", "thread 2"], [0, 1, 1, 2, 3], 2);
  assert.ok(rows.fit(grown));
  assert.deepEqual([...rows.symbol], [0, 1, 3, 5, 3]);
  open.fit(grown);
  assert.deepEqual(open.write(new Set()).text, "0.0_1.1_0.3");

  // It has been read anew: b is the name of two methods, and there is no c.
  const other = knownAs(["b", "a", "b"], [0, 1, 2], 0);
  assert.ok(!rows.fit(other));
  open.fit(other);
  assert.deepEqual(open.write(new Set()).text.split("_").sort(), ["0.1", "1.0", "1.2"]);
  open.fit(grown);
  assert.deepEqual(open.write(new Set()).text.split("_").sort(), ["0.0", "0.3", "1.1"]);
});

test("half of a sandwich, as candid sends it", () => {
  const columns: Record<string, Uint32Array | Float64Array> = {
    "callees.depth": Uint32Array.of(0, 1, 2, 1), "callees.origin": Uint32Array.of(1, 2, 3, 0xffffffff), "callees.folded": Uint32Array.of(0, 0, 0, 7), "callees.after": Float64Array.of(90, 50, 20, 40), "callees.before": Float64Array.of(9, 5, 2, 4),
  };
  const get = (name: string): never => columns[name] as never;
  const h = half({ head: {}, u8: get, u32: get, i32: get, f32: get, f64: get, has: (name) => name in columns }, "callees", tree.sym, 99);
  assert.deepEqual([[...h.tree.sym], [...h.tree.origin], [...h.tree.parent], [...h.tree.end]], [[-1, 1, 0, 99], [1, 2, 3, -1], [-1, 0, 1, 0], [4, 3, 3, 4]]);
  assert.deepEqual([[...h.after], [...h.before!]], [[90, 50, 20, 40], [9, 5, 2, 4]]);
});

test("the address brings the view back", () => {
  const limits = { served: 3, threads: 9, events: 2, first: 0, whole: false, kinds: 12, states: ["running", "sleeping"], end: 1e10 };
  const s = { ...initial(), tab: "threads" as const, from: 5, to: 900, threads: new Set([1, 2, 3, 7]), states: new Set(["sleeping"]), focus: ["^a\\.b$", "c&d=#"], ignore: ["x y"], event: 1, query: "q", of: "m" };
  assert.deepEqual(read("#" + write(s, limits), limits), s);
  assert.equal(write(initial(), limits), "");
  // Where event 0 has no samples another is shown, and the address says what is asked for beside it.
  const later = { ...limits, first: 1 };
  assert.deepEqual([read("", later).event, read("#event=0", later).event, read("#event=9", later).event], [1, 0, 1]);
  assert.deepEqual([write({ ...initial(), event: 1 }, later), write(initial(), later)], ["", "event=0"]);
  // Large recordings show how threads start where the address does not say.
  const large = { ...limits, whole: true };
  assert.deepEqual([read("", large).starts, read("#starts=fold", large).starts, read("#starts=shown", limits).starts, read("#starts=fold", limits).starts], [true, false, true, false]);
  assert.deepEqual([write({ ...initial(), starts: true }, large), write(initial(), large), write({ ...initial(), starts: true }, limits)], ["", "starts=fold", "starts=shown"]);
  const bad = read("#tab=x&from=9&to=3&threads=99&states=asleep&event=7&recording=-1&kind=-3", limits);
  assert.deepEqual(bad, initial());
});

test("the address says what is compared", () => {
  const of = (hash: string): number[] => [recordingOf(hash, 3).recording, recordingOf(hash, 3).against];
  assert.deepEqual([of(""), of("#recording=2&against=0"), of("#against=1"), of("#recording=9"), of("#recording=1&against=1"), of("#against=3"), of("#against=-1"), of("#against=x&recording=1.5")],
    [[0, -1], [2, 0], [0, 1], [2, -1], [1, -1], [0, -1], [0, -1], [0, -1]]);
});

test("names as expressions", () => {
  for (const name of ["a.B$C.<init>", "operator()(int*)", "^x$", "[k]|{}", "back\\slash", "plain"]) {
    assert.ok(new RegExp(exactly(name)).test(name));
    assert.ok(!new RegExp(exactly(name)).test("x" + name));
    assert.equal(readable(exactly(name)), name);
  }
  assert.equal(readable("^a.*b$"), "^a.*b$");
  assert.equal(goPattern("hashmap"), "(?i)hashmap");
  assert.equal(goPattern("HashMap"), "HashMap");
});

test("what was profiled, in short", () => {
  for (const [command, short] of [
    ["/opt/jdk/bin/java -Xmx2g -XX:+UseG1GC -Da=b -cp a.jar:b.jar -jar /srv/app.jar --port 1", "java -jar /srv/app.jar --port 1"],
    ["/usr/bin/java -m jdk.compiler/com.sun.tools.javac.Main -d out", "java -m jdk.compiler/com.sun.tools.javac.Main -d out"],
    ["java -Xmx1g Main", "java Main"], ["java -XX:+UnlockDiagnosticVMOptions -cp classes:lib/* Main 20", "java Main 20"], ["java", "java"], ["jdk/java -Xmx1g Main", "jdk/java -Xmx1g Main"], ["/usr/bin/java -Xmx1g", "java -Xmx1g"], ["/bin/ls -l /tmp", "ls -l /tmp"],
    ["", ""], ["the whole machine", "the whole machine"], ["a/b", "a/b"], ["/", "/"], ["<b>x</b> y", "<b>x</b> y"], ["C:\\jdk\\java.exe -Xmx1g Main", "java.exe Main"],
  ]) assert.equal(commandLine(command), short);
});

test("times", () => {
  assert.deepEqual(ticks({ from: 0, to: 10e9 }, 5).map((t) => t.text), ["0 s", "2 s", "4 s", "6 s", "8 s", "10 s"]);
  assert.equal(ticks({ from: 0, to: 3600e9 }, 6).length, 7);
  assert.ok(ticks({ from: 0, to: 1 }, 10).length <= 11);
  assert.equal(time(3_725e9, 1e9), "1:02:05");
  assert.equal(spanText(1e9, 3.5e9), "1.00 s – 3.50 s");
  assert.equal(spanText(0, 20e6), "0.0000 s – 0.0200 s");
});

test("a message", () => {
  const json = JSON.stringify({ head: { x: 1 }, columns: [{ name: "a", type: "u8", length: 2, at: 0 }, { name: "b", type: "f64", length: 1, at: 8 }] });
  const length = Math.ceil((4 + json.length) / 8) * 8 - 4;
  const buffer = new ArrayBuffer(4 + length + 16);
  new DataView(buffer).setUint32(0, length, true);
  new Uint8Array(buffer, 4).set(new TextEncoder().encode(json.padEnd(length)));
  new Uint8Array(buffer, 4 + length).set([7, 8]);
  new Float64Array(buffer, 4 + length + 8, 1)[0] = 2.5;
  const m = decode<{ x: number }>(buffer);
  assert.equal(m.head.x, 1);
  assert.deepEqual([...m.u8("a")], [7, 8]);
  assert.deepEqual([...m.f64("b")], [2.5]);
  assert.throws(() => m.u32("c"));
});
