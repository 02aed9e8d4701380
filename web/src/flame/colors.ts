// The colours of the graph. Kinds differ in hue and in lightness, so that people who see fewer
// hues can tell them apart: blues and greens are managed code, the brighter the better compiled;
// ochre and orange are code outside of it.

// NAMES are the kinds that have a colour of their own.
const NAMES = ["unknown", "kernel", "native", "interpreted", "compiled", "C1", "C2", "inlined", "stub", "native method", "AOT", "no stack"];

export const KINDS = NAMES.length;

// LIKE are the kinds that have the colour of another one: what a runtime's compilers make with as
// much optimization as another runtime's.
const LIKE: Record<string, string> = { "Tier-0": "C1", "Tier-0 instrumented": "C1", OSR: "C2", "Tier-1": "C2", ReadyToRun: "AOT" };

// colorsOf returns the colour number of each kind. A kind that this page does not know has the
// colour of unknown kinds, and its own name.
export function colorsOf(kinds: readonly string[]): Uint8Array {
  return Uint8Array.from(kinds, (name) => Math.max(0, NAMES.indexOf(LIKE[name] ?? name)));
}

// LEGEND is the order of the colours in the legend.
export const LEGEND = [6, 5, 7, 4, 3, 10, 9, 8, 2, 1, 0, 11];

export interface Theme {
  readonly name: "light" | "dark";
  readonly background: string;
  readonly fill: readonly string[][]; // [kind][shade]
  readonly text: string;
  readonly dim: string;
  readonly match: string;
  readonly matchText: string;
  readonly faded: readonly string[]; // [kind], while something else is searched for
  readonly fadedText: string;
  readonly root: string;
  readonly hatch: string;
  readonly focus: string;
  readonly strong: readonly string[]; // the same for areas without text
  readonly change: readonly string[]; // from vanished through unchanged to new, CHANGES steps
  // The same as pixels, 0xAABBGGRR.
  readonly fillPixel: Uint32Array; // [kind * SHADES + shade]
  readonly fadedPixel: Uint32Array; // [kind]
  readonly backgroundPixel: number;
  readonly rootPixel: number;
  readonly matchPixel: number;
  readonly changePixel: Uint32Array;
}

// CHANGES is the number of steps from vanished to new.
export const CHANGES = 21;

type HSL = readonly [h: number, s: number, l: number];

// Found by a search for the largest distance between any two, seen with all and
// with two of the three sorts of cone, under which text is readable on all;
// test/colors.test.ts holds them to it.
//  unknown        kernel         native         interpreted    compiled       C1
//  C2             inlined        stub           native method  AOT            no stack
const light: HSL[] = [
  [206, 11, 86], [23, 75, 61], [47, 73, 66], [260, 68, 80], [158, 45, 65], [210, 54, 80],
  [152, 48, 48], [136, 60, 77], [317, 50, 66], [54, 44, 67], [212, 66, 58], [0, 0, 60],
];
const dark: HSL[] = [
  [221, 11, 32], [4, 68, 46], [46, 55, 30], [256, 39, 51], [172, 35, 33], [199, 51, 37],
  [159, 46, 26], [136, 28, 35], [316, 39, 41], [46, 28, 26], [221, 39, 44], [0, 0, 24],
];

export const SHADES = 3;

function css([h, s, l]: HSL, add = 0): string {
  return `hsl(${h} ${s}% ${l + add}%)`;
}

// pixel returns a colour as a canvas stores it in memory.
function pixel([h, s, l]: HSL, add = 0): number {
  const light = (l + add) / 100;
  const a = (s / 100) * Math.min(light, 1 - light);
  const part = (n: number): number => {
    const k = (n + h / 30) % 12;
    return Math.round(255 * (light - a * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return (0xff000000 | (part(4) << 16) | (part(8) << 8) | part(0)) >>> 0;
}

function hexPixel(hex: string): number {
  const v = parseInt(hex.slice(1), 16);
  return (0xff000000 | ((v & 0xff) << 16) | (v & 0xff00) | (v >> 16)) >>> 0;
}

// mix returns the colour between two pixels, 0 for a and 1 for b.
export function mix(a: number, b: number, t: number): number {
  let out = 0xff000000;
  for (let shift = 0; shift < 24; shift += 8) {
    const from = (a >>> shift) & 0xff;
    out |= Math.round(from + (((b >>> shift) & 0xff) - from) * t) << shift;
  }
  return out >>> 0;
}

type Plain = Omit<Theme, "change" | "strong" | "changePixel" | "fill" | "faded" | "fillPixel" | "fadedPixel" | "backgroundPixel" | "rootPixel" | "matchPixel">;

function theme(plain: Plain, kinds: readonly HSL[], fade: (c: HSL) => HSL): Theme {
  const steps = [-2.5, 0, 2.5];
  // Less is blue and more is orange, which everybody can tell apart; unchanged is grey.
  const changes = Array.from({ length: CHANGES }, (_, i): HSL => {
    const d = (2 * i) / (CHANGES - 1) - 1;
    const l = plain.name === "light" ? 90 - 22 * Math.abs(d) : 24 + 12 * Math.abs(d);
    return [d < 0 ? 214 : 26, 80 * Math.sqrt(Math.abs(d)), l];
  });
  const strong = changes.map(([h, s], i): HSL => {
    const d = Math.abs((2 * i) / (CHANGES - 1) - 1);
    return [h, s, plain.name === "light" ? 91 - 46 * d : 20 + 44 * d];
  });
  return {
    ...plain,
    change: changes.map((c) => css(c)),
    strong: strong.map((c) => css(c)),
    changePixel: Uint32Array.from(changes, (c) => pixel(c)),
    fill: kinds.map((c) => steps.map((s) => css(c, s))),
    faded: kinds.map((c) => css(fade(c))),
    fillPixel: Uint32Array.from(kinds.flatMap((c) => steps.map((s) => pixel(c, s)))),
    fadedPixel: Uint32Array.from(kinds, (c) => pixel(fade(c))),
    backgroundPixel: hexPixel(plain.background),
    rootPixel: hexPixel(plain.root),
    matchPixel: hexPixel(plain.match),
  };
}

export const LIGHT: Theme = theme({
  name: "light",
  background: "#fbfbfa",
  text: "#15181c",
  dim: "rgb(21 24 28 / 0.62)",
  match: "#a3195b",
  matchText: "#ffffff",
  fadedText: "#5d646e",
  root: "#e6e7e8",
  hatch: "rgb(0 0 0 / 0.30)",
  focus: "#0b0d10",
}, light, (c) => [c[0], c[1] * 0.45, 90 + c[2] * 0.04]);

export const DARK: Theme = theme({
  name: "dark",
  background: "#14161a",
  text: "#f6f7f9",
  dim: "rgb(246 247 249 / 0.68)",
  match: "#f06aa7",
  matchText: "#1a0710",
  fadedText: "#98a0ab",
  root: "#2b2f36",
  hatch: "rgb(0 0 0 / 0.42)",
  focus: "#ffffff",
}, dark, (c) => [c[0], c[1] * 0.4, 15 + c[2] * 0.12]);

// shades gives every symbol one of a few shades by its name, so that neighbours
// of a kind can be told apart and keep their shade from page to page.
export function shades(names: readonly string[]): Uint8Array {
  const out = new Uint8Array(names.length);
  for (let i = 0; i < names.length; i++) {
    let h = 0x811c9dc5;
    const s = names[i];
    for (let k = 0; k < s.length; k++) h = Math.imul(h ^ s.charCodeAt(k), 0x01000193);
    out[i] = ((h ^ (h >>> 15)) >>> 0) % SHADES;
  }
  return out;
}
