import assert from "node:assert/strict";
import { test } from "node:test";
import { DARK, KINDS, LIGHT, SHADES, type Theme } from "../src/flame/colors";

type RGB = [number, number, number];

const linear = (v: number): number => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
const rgb = (p: number): RGB => [p & 255, (p >>> 8) & 255, (p >>> 16) & 255].map((v) => linear(v / 255)) as RGB;
const css = (hex: string): RGB => [1, 3, 5].map((i) => linear(parseInt(hex.slice(i, i + 2), 16) / 255)) as RGB;
const luminance = ([r, g, b]: RGB): number => 0.2126 * r + 0.7152 * g + 0.0722 * b;
const contrast = (a: RGB, b: RGB): number => {
  const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
  return (x + 0.05) / (y + 0.05);
};

// How colours look without one sort of cone, after Machado, Oliveira and
// Fernandes, 2009.
const SIGHT: Record<string, number[]> = {
  full: [1, 0, 0, 0, 1, 0, 0, 0, 1],
  protan: [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
  deutan: [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
};

function lab(c: RGB, m: number[]): RGB {
  const [r, g, b] = [0, 3, 6].map((i) => Math.min(1, Math.max(0, m[i] * c[0] + m[i + 1] * c[1] + m[i + 2] * c[2])));
  const f = (t: number): number => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116);
  const x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505);
  const y = f(0.2126 * r + 0.7152 * g + 0.0722 * b);
  const z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

function closest(t: Theme, sight: string): { distance: number; pair: string } {
  let best = { distance: Infinity, pair: "" };
  for (let a = 0; a < KINDS; a++) {
    for (let b = 0; b < a; b++) {
      const [p, q] = [a, b].map((k) => lab(rgb(t.fillPixel[k * SHADES + 1]), SIGHT[sight]));
      const distance = Math.hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
      if (distance < best.distance) best = { distance, pair: `${a} and ${b}` };
    }
  }
  return best;
}

for (const t of [LIGHT, DARK]) {
  test(`${t.name}: kinds can be told apart with fewer cones`, () => {
    for (const sight of Object.keys(SIGHT)) {
      const c = closest(t, sight);
      assert.ok(c.distance > 10, `${sight}: kinds ${c.pair} are ${c.distance.toFixed(1)} apart`);
    }
  });
  test(`${t.name}: names can be read on every colour`, () => {
    const ink = css(t.text);
    t.fillPixel.forEach((p, i) => {
      const c = contrast(rgb(p), ink);
      assert.ok(c >= 4.5, `kind ${Math.floor(i / SHADES)}: contrast ${c.toFixed(2)}`);
    });
    t.fadedPixel.forEach((p, k) => {
      const c = contrast(rgb(p), css(t.fadedText));
      assert.ok(c >= 4.5, `faded kind ${k}: contrast ${c.toFixed(2)}`);
    });
    assert.ok(contrast(css(t.match), css(t.matchText)) >= 4.5);
  });
}
