import assert from "node:assert/strict";
import { test } from "node:test";
import { DARK, LIGHT, mix, shades } from "../src/flame/colors";
import { draw, rowOf, rowTop, type Canvas, type Scene, type View } from "../src/flame/draw";
import { parse } from "../src/flame/label";
import { layout } from "../src/flame/layout";
import { match } from "../src/flame/search";
import { fromDepth } from "../src/flame/tree";

class Recorder implements Canvas {
  fillStyle = "";
  strokeStyle = "";
  lineWidth = 1;
  globalAlpha = 1;
  rects: [string, number, number, number, number][] = [];
  texts: string[] = [];
  fillRect(x: number, y: number, w: number, h: number): void { this.rects.push([this.fillStyle, x, y, w, h]); }
  strokeRect(): void {}
  fillText(s: string): void { this.texts.push(s); }
}

// wide makes a root with n children of the same width.
function wide(n: number): Scene {
  const depth = new Int32Array(n + 1).fill(1);
  depth[0] = 0;
  const sym = new Int32Array(n + 1);
  sym[0] = -1;
  const total = new Float64Array(n + 1).fill(1);
  total[0] = n;
  const tree = fromDepth(depth, sym);
  return {
    tree, layout: layout(tree, total), kind: Uint8Array.of(6), shade: shades(["a.B.c"]), names: [parse("a.B.c", true)], rootName: "all",
    guessed: new Uint8Array(n + 1), groups: 1, match: null, change: null, theme: LIGHT, charWidth: 7, zoomed: 0, selected: -1, hovered: -1,
  };
}

const view: View = { x0: 0, x1: 10, width: 1000, height: 200, scroll: 0, flame: false, rowHeight: 20 };

test("each frame is drawn once, with its name", () => {
  const c = new Recorder();
  assert.equal(draw(c, wide(10), view, "hatch", () => {}), 11);
  assert.equal(c.texts.filter((t) => t.includes("B.c")).length, 10);
  assert.ok(c.texts.includes("all"));
});

test("a guess is hatched by its share", () => {
  const s = wide(2);
  s.guessed[1] = 255;
  s.guessed[2] = 127;
  const c = new Recorder();
  draw(c, s, { ...view, x1: 2 }, "hatch", () => {});
  const hatched = c.rects.filter((r) => r[0] === "hatch").map((r) => Math.round(r[3]));
  assert.deepEqual(hatched, [499, 249]);
});

test("narrow frames fill every pixel, and none costs a rectangle", () => {
  const n = 200_000;
  const s = wide(n);
  let covered = 0;
  let rows = 0;
  const rects = draw(new Recorder(), s, { ...view, x1: n }, "hatch", (p, w, r) => {
    rows = r;
    for (let x = 0; x < w; x++) if (p[w + x]) covered++;
  });
  assert.equal(rects, 1);
  assert.equal(rows, 2);
  assert.equal(covered, 1000);
});

test("one match among thousands of narrow frames is seen", () => {
  const n = 200_000;
  const s = wide(n);
  s.tree.sym[123_456] = 1;
  const two: Scene = { ...s, kind: Uint8Array.of(6, 6), shade: Uint8Array.of(0, 0), names: [s.names[0], s.names[0]], groups: 2 };
  const m = match(two.tree, two.layout, Uint8Array.of(0, 1));
  let hits: number[] = [];
  draw(new Recorder(), { ...two, match: m }, { ...view, x1: n }, "hatch", (p, w) => {
    hits = [...p.subarray(w)].flatMap((v, x) => (v === LIGHT.matchPixel ? [x] : []));
  });
  assert.deepEqual(hits, [Math.floor((123_455 / n) * 1000)]);
});

test("rows lie where a pointer finds them", () => {
  for (const flame of [true, false]) {
    for (const scroll of [0, 13, 700]) {
      for (let row = 0; row < 100; row++) {
        const v = { ...view, flame, scroll };
        const y = rowTop(v, 100, row);
        assert.equal(rowOf(v, 100, y + 0.5), row);
        assert.equal(rowOf(v, 100, y + 19.5), row);
      }
    }
  }
});

test("pixels have the colours of the rectangles", () => {
  assert.equal(LIGHT.backgroundPixel, 0xfffafbfb);
  assert.equal(mix(0xff000000, 0xffffffff, 0.5), 0xff808080);
  for (const t of [LIGHT, DARK]) {
    const [h, s, l] = /hsl\((\S+) (\S+)% (\S+)%\)/.exec(t.fill[6][1])!.slice(1).map(Number);
    const p = t.fillPixel[6 * 3 + 1];
    const [r, g, b] = [p & 255, (p >> 8) & 255, (p >> 16) & 255];
    const max = Math.max(r, g, b);
    const min = Math.min(r, g, b);
    assert.ok(Math.abs((max + min) / 5.1 - l) < 0.6);
    assert.ok(Math.abs(((max - min) / (255 - Math.abs(max + min - 255))) * 100 - s) < 1);
    assert.equal(max, g);
    assert.ok(h > 120 && h < 180);
  }
});
