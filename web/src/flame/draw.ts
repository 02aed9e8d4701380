// Drawing: from typed arrays to rectangles on a canvas. Only visible rows are processed, and in
// each row only frames at least a pixel wide: narrower ones are found by binary search, one
// search for each pixel.

import { mix, SHADES, type Theme } from "./colors";
import { firstAfter, type Layout } from "./layout";
import { fit, type Name } from "./label";
import { anyIn, countRow, type Match } from "./search";
import type { Tree } from "./tree";

export interface View {
  readonly x0: number; // the visible range, in the unit of the values
  readonly x1: number;
  readonly width: number; // of the canvas, in CSS pixels
  readonly height: number;
  readonly scroll: number; // how far down, in CSS pixels
  readonly flame: boolean; // the root is at the bottom
  readonly rowHeight: number;
}

export interface Scene {
  readonly tree: Tree;
  readonly layout: Layout;
  readonly kind: Uint8Array; // by symbol: the number of its colour
  readonly shade: Uint8Array; // by symbol
  readonly names: readonly Name[]; // by symbol
  readonly rootName: string;
  readonly guessed: Uint8Array; // by node: share that is heuristic, 0 to 255
  readonly groups: number; // symbols from here on are roots of groups
  readonly match: Match | null;
  readonly change: Uint8Array | null; // by node: step of the theme's changes; null: nothing is compared
  readonly theme: Theme;
  readonly charWidth: number;
  readonly zoomed: number; // the node that the view shows
  readonly selected: number; // node with the keyboard's focus, or -1
  readonly hovered: number; // node under the pointer, or -1
}

// The part of CanvasRenderingContext2D that is used, so that tests can replace it.
export interface Canvas {
  fillStyle: string | CanvasPattern | CanvasGradient;
  strokeStyle: string | CanvasPattern | CanvasGradient;
  lineWidth: number;
  globalAlpha: number;
  fillRect(x: number, y: number, w: number, h: number): void;
  strokeRect(x: number, y: number, w: number, h: number): void;
  fillText(s: string, x: number, y: number, maxWidth?: number): void;
}

// Stamp puts an image on the canvas and stretches each of its rows of pixels (0xAABBGGRR, 0 for
// none) to the height of a row of frames.
export type Stamp = (pixels: Uint32Array, width: number, rows: number, y: number, rowHeight: number) => void;

// NARROW is the width, in pixels, under which frames are drawn together.
export const NARROW = 1;

// rowTop returns the upper edge of a row on the canvas.
export function rowTop(v: View, rows: number, row: number): number {
  if (!v.flame) return row * v.rowHeight - v.scroll;
  const content = Math.max(rows * v.rowHeight, v.height);
  return content - (row + 1) * v.rowHeight - v.scroll;
}

// rowOf returns the row at a height on the canvas; it may not exist.
export function rowOf(v: View, rows: number, y: number): number {
  if (!v.flame) return Math.floor((y + v.scroll) / v.rowHeight);
  const content = Math.max(rows * v.rowHeight, v.height);
  return Math.ceil((content - v.scroll - y) / v.rowHeight) - 1;
}

interface Text { readonly i: number; readonly x: number; readonly y: number; readonly w: number; readonly ink: number }

const INK = 0, FADED = 1, MATCHED = 2;

// draw paints the scene and returns how many rectangles that took.
export function draw(c: Canvas, s: Scene, v: View, hatch: string | CanvasPattern, stamp: Stamp): number {
  const { layout: l, tree, theme, match } = s;
  c.globalAlpha = 1;
  c.fillStyle = theme.background;
  c.fillRect(0, 0, v.width, v.height);
  if (l.rows === 0 || v.x1 <= v.x0) return 0;

  const scale = v.width / (v.x1 - v.x0);
  const a = rowOf(v, l.rows, 0);
  const b = rowOf(v, l.rows, v.height);
  const top = Math.max(0, Math.min(a, b));
  const bottom = Math.min(l.rows - 1, Math.max(a, b));
  // Rectangles are collected by colour: changing the colour costs more than a
  // rectangle.
  const byColour = new Map<string, number[]>();
  const put = (colour: string, x: number, y: number, w: number): void => {
    let list = byColour.get(colour);
    if (!list) byColour.set(colour, (list = []));
    list.push(x, y, w);
  };
  const texts: Text[] = [];
  const hatched: number[] = [];
  const minText = 3 * s.charWidth + 8;
  // Narrow frames go into an image, a pixel wide and high for each: tens of thousands of
  // rectangles would take longer than everything else.
  const span = Math.ceil(v.width);
  const seen = bottom - top + 1;
  if (seen <= 0) return 0;
  const pixels = new Uint32Array(span * seen);

  for (let row = top; row <= bottom; row++) {
    const y = rowTop(v, l.rows, row);
    const hi = l.rowStart[row + 1];
    const line = (v.flame ? bottom - row : row - top) * span;
    if (match) countRow(match, tree, l, row);
    let k = firstAfter(l, l.rowStart[row], hi, v.x0);
    while (k < hi) {
      const i = l.rowNodes[k];
      const left = (l.x[i] - v.x0) * scale;
      if (left >= v.width) break;
      const right = (l.right[k] - v.x0) * scale;
      const sym = tree.sym[i];
      if (right - left >= NARROW) {
        const x = Math.max(0, left);
        const w = Math.min(v.width, right) - x;
        let ink = INK;
        if (match) ink = sym >= 0 && match.symbols[sym] ? MATCHED : FADED;
        put(colourOf(s, i, sym, ink), x, y, w > 3 ? w - 1 : w > 1.5 ? w - 0.5 : w);
        if (w > minText) texts.push({ i, x, y, w, ink });
        if (w > 2 && s.guessed[i]) hatched.push(x, y, Math.max(2, (w - 1) * Math.min(1, s.guessed[i] / 255)));
        k++;
        continue;
      }
      // One pixel for all frames that begin in it: in the colour of the frame at its middle, or of a
      // match if there is one among them.
      const px = Math.floor(left);
      const edge = v.x0 + (px + 1) / scale;
      let next = firstAfter(l, k + 1, hi, edge);
      // A narrow frame that reaches over the edge belongs to the next pixel.
      if (next <= k) next = k + 1;
      const hit = match && anyIn(match, row, k, next);
      const mid = l.rowNodes[Math.min(next - 1, firstAfter(l, k, next, v.x0 + (px + 0.5) / scale))];
      const first = l.x[i];
      const filled = Math.min(1, (l.right[next - 1] - first) * scale);
      if (px >= 0) pixels[line + px] = hit ? theme.matchPixel : mix(theme.backgroundPixel, pixelOf(s, mid, tree.sym[mid]), Math.max(0.25, filled));
      k = next;
    }
  }

  const h = v.rowHeight - 1;
  const upper = rowTop(v, l.rows, v.flame ? bottom : top);
  stamp(pixels, span, seen, upper, v.rowHeight);
  c.fillStyle = theme.background;
  for (let r = 0; r < seen; r++) c.fillRect(0, upper + r * v.rowHeight + h, v.width, 1);
  let rects = 0;
  for (const [colour, list] of byColour) {
    c.fillStyle = colour;
    for (let k = 0; k < list.length; k += 3) c.fillRect(list[k], list[k + 1], list[k + 2], h);
    rects += list.length / 3;
  }
  if (hatched.length) {
    c.fillStyle = hatch;
    for (let k = 0; k < hatched.length; k += 3) c.fillRect(hatched[k], hatched[k + 1], hatched[k + 2], h);
  }
  write(c, s, v, texts);
  if (s.hovered >= 0 && s.hovered !== s.selected) outline(c, s, v, s.hovered, 1, scale);
  if (s.selected >= 0) outline(c, s, v, s.selected, 2, scale);
  return rects;
}

function colourOf(s: Scene, i: number, sym: number, ink: number): string {
  if (ink === MATCHED) return s.theme.match;
  if (s.change && ink === INK && sym >= 0) return s.theme.change[s.change[i]];
  if (sym < 0 || sym >= s.groups) return s.theme.root;
  const kind = s.kind[sym];
  return ink === FADED ? s.theme.faded[kind] : s.theme.fill[kind][s.shade[sym]];
}

function pixelOf(s: Scene, i: number, sym: number): number {
  if (s.change && !s.match && sym >= 0) return s.theme.changePixel[s.change[i]];
  if (sym < 0 || sym >= s.groups) return s.theme.rootPixel;
  return s.match ? s.theme.fadedPixel[s.kind[sym]] : s.theme.fillPixel[s.kind[sym] * SHADES + s.shade[sym]];
}

// write draws the names, first all dim text, then all other text.
function write(c: Canvas, s: Scene, v: View, texts: readonly Text[]): void {
  const { theme } = s;
  const baseline = v.rowHeight / 2;
  const late: { t: string; x: number; y: number; w: number; ink: number }[] = [];
  c.fillStyle = theme.dim;
  for (const t of texts) {
    const sym = s.tree.sym[t.i];
    const room = t.w - 9;
    const n = Math.floor(room / s.charWidth);
    const name = sym < 0 ? { full: s.rootName, short: 0, method: 0, end: s.rootName.length } : s.names[sym];
    const label = fit(name, n);
    if (label.text === "") continue;
    const x = t.x + 4;
    const y = t.y + baseline;
    let shift = 0;
    if (label.dim) {
      shift = label.dim.length * s.charWidth;
      if (t.ink === INK) c.fillText(label.dim, x, y, room);
      else late.push({ t: label.dim, x, y, w: room, ink: t.ink });
    }
    late.push({ t: label.text, x: x + shift, y, w: room - shift, ink: t.ink });
  }
  for (const ink of [INK, FADED, MATCHED]) {
    c.fillStyle = ink === INK ? theme.text : ink === FADED ? theme.fadedText : theme.matchText;
    for (const t of late) if (t.ink === ink) c.fillText(t.t, t.x, t.y, t.w);
  }
}

function outline(c: Canvas, s: Scene, v: View, i: number, width: number, scale: number): void {
  const left = Math.max(0, (s.layout.x[i] - v.x0) * scale);
  const right = Math.min(v.width, (s.layout.x[i] + s.layout.total[i] - v.x0) * scale);
  if (right <= 0 || left >= v.width) return;
  const y = rowTop(v, s.layout.rows, s.tree.depth[i]);
  c.strokeStyle = s.theme.focus;
  c.lineWidth = width;
  c.strokeRect(left + width / 2, y + width / 2, Math.max(1, right - left - width - 0.5), v.rowHeight - 1 - width);
}
