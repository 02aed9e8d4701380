import assert from "node:assert/strict";
import test from "node:test";
import { earlier, read, shown, ticks, within, write } from "../src/store/range";

const stored = { from: 1_000_000_000_000, to: 1_000_604_800_000 };

test("an address is read as it was written", () => {
  const s = { from: 1_000_000_100_000, to: 1_000_000_200_000, view: { from: 1_000_000_000_000, to: 1_000_000_300_000 }, service: "a/b #1&x=y", all: false, against: "yesterday" as const, capture: "20010909T014640.000Z-a%2Fb.jfr.zst" };
  assert.deepEqual(read(write(s, stored), stored), s);
});

test("an address that says nothing is the last hour of all services", () => {
  const s = read("", stored);
  assert.deepEqual([s.from, s.to, s.service, s.against, s.view], [stored.to - 3_600_000, stored.to, "", "", stored]);
});

test("an address that means nothing is put right", () => {
  const s = read("#from=9&to=3&begin=x&end=-1&against=tomorrow", stored);
  assert.deepEqual([s.from, s.to, s.against, s.view], [stored.from, stored.to, "", stored]);
});

test("ranges stay within what is stored", () => {
  assert.deepEqual(within({ from: stored.from - 50, to: stored.from + 50 }, stored), { from: stored.from, to: stored.from + 100 });
  assert.deepEqual(within({ from: stored.to - 50, to: stored.to + 50 }, stored), { from: stored.to - 100, to: stored.to });
  assert.deepEqual(within({ from: 0, to: 2e12 }, stored), stored);
});

test("a comparison is with the same time by the calendar", () => {
  const noon = new Date(2026, 2, 30, 12).getTime();
  assert.equal(earlier({ from: noon, to: noon + 1000 }, "yesterday"), new Date(2026, 2, 29, 12).getTime());
  assert.equal(earlier({ from: noon, to: noon + 1000 }, "last-week"), new Date(2026, 2, 23, 12).getTime());
  assert.equal(earlier({ from: noon, to: noon + 1000 }, "before"), noon - 1000);
});

test("a service's name is one part of the address", () => {
  const s = { from: 1, to: 2, view: stored, service: "a/b #1", all: false, against: "" as const, capture: "" };
  assert.equal(shown(s), "show/1-2/-/%3Da%2Fb%20%231/");
  assert.equal(shown({ ...s, capture: "t-a%2Fb.jfr.zst" }), "capture/t-a%252Fb.jfr.zst/");
});

test("marks are at round times", () => {
  const list = ticks({ from: stored.from, to: stored.from + 3_600_000 }, 8);
  assert.ok(list.length >= 4 && list.length <= 8);
  assert.ok(list.every((t) => t % 600_000 === 0));
});
