// The look of a lane of the timeline: its picture, its label, and the band between two that are
// compared.

import { DARK, LIGHT } from "../flame/colors";
import { el } from "../page/dom";
import { unequal, type Pairing } from "./match";
import { points } from "./change";

const PICTURES = 120; // number of lanes whose pictures are kept: as many as large screens show

export interface Lane { readonly key: string; readonly weight: Float32Array; readonly state: Uint8Array }

// Look is what a lane's picture depends on besides the lane.
export interface Look { readonly width: number; readonly height: number; readonly full: number; readonly theme: string; readonly scale: number; readonly down: boolean }

// Band is the difference between the cells of two lanes.
export interface Band { readonly by: Float64Array; readonly chance: Uint8Array }

// Pictures are the pictures of lanes, kept while they are visible.
export class Pictures {
  private readonly kept = new Map<Lane, { readonly look: Look; readonly canvas: HTMLCanvasElement }>(); // the oldest first

  // of returns the picture of a lane. It stays the same while lanes are scrolled.
  of(lane: Lane, look: Look, colors: readonly string[]): HTMLCanvasElement {
    const last = this.kept.get(lane);
    if (last && (Object.keys(look) as (keyof Look)[]).every((k) => last.look[k] === look[k])) return last.canvas;
    let canvas = last?.canvas;
    if (!last && this.kept.size >= PICTURES) { // a canvas costs more than what is drawn on it
      const [[oldest, p]] = this.kept;
      this.kept.delete(oldest);
      canvas = p.canvas;
    }
    canvas ??= el("canvas");
    const w = Math.max(1, Math.round(look.width * look.scale)), h = Math.max(1, Math.round(look.height * look.scale));
    if (canvas.width !== w) canvas.width = w;
    if (canvas.height !== h) canvas.height = h;
    const g = canvas.getContext("2d")!;
    g.clearRect(0, 0, w, h);
    const n = lane.weight.length;
    const bw = w / n;
    for (let b = 0; b < n; b++) {
      const v = lane.weight[b];
      if (v <= 0) continue;
      g.fillStyle = colors[lane.state[b]];
      const tall = Math.max(2 * look.scale, Math.min(1, v / look.full) * (h - 2 * look.scale));
      g.fillRect(b * bw, look.down ? 0 : h - tall, bw + 0.3, tall);
    }
    this.kept.set(lane, { look, canvas });
    return canvas;
  }
}

// drawBand draws the difference between two lanes.
export function drawBand(g: CanvasRenderingContext2D, band: Band | null, strongest: number, x: number, y: number, width: number, height: number, theme: "light" | "dark"): void {
  g.fillStyle = theme === "dark" ? DARK.change[10] : LIGHT.change[10];
  g.fillRect(x, y, width, height);
  if (!band) return;
  const colors = (theme === "dark" ? DARK : LIGHT).strong;
  const { by, chance } = band;
  const w = width / by.length;
  const middle = (colors.length - 1) / 2;
  for (let c = 0; c < by.length; c++) {
    const step = Math.round((strongest > 0 ? by[c] / strongest : 0) * middle);
    if (!step || chance[c]) continue;
    g.fillStyle = colors[middle + step];
    g.fillRect(x + c * w, y, w + 0.3, height);
  }
}

// differenceKey explains the colours from less to more.
export function differenceKey(p: Pairing, strongest: number, dark: boolean, where: string): (Node | string)[] {
  const colors = (dark ? DARK : LIGHT).strong;
  const middle = (colors.length - 1) / 2;
  const steps = [-1, -0.5, 0, 0.5, 1].map((d) => {
    const swatch = el("i", { "aria-hidden": "true" });
    swatch.style.background = colors[middle + Math.round(d * middle)];
    return swatch;
  });
  const how = "Blue is less, orange is more, grey is what chance explains: by how many percentage points of all that is shown of each, as on the other tabs."
    + (unequal(p) ? " The two are of different length: shares are made comparable by it, so a cell says how much more or less than usual of its own." : "")
    + " Both are laid out from their beginnings.";
  return [el("span", { title: how }, `${points(-strongest)} less`), ...steps, el("span", { title: how }, `${points(strongest)} more ${where}; grey: chance`)];
}

// label is a thread's name, with its number if there is room.
export function label(g: CanvasRenderingContext2D, full: string, name: string, width: number): string {
  return !name || g.measureText(full).width <= width ? clip(g, full, width) : clip(g, name, width);
}

// clip shortens text to a width. The end stays: threads of a pool differ there.
export function clip(g: CanvasRenderingContext2D, s: string, width: number): string {
  if (g.measureText(s).width <= width) return s;
  const shorter = (n: number): string => (n < 8 ? s.slice(0, n) + "…" : `${s.slice(0, n - (n >> 1))}…${s.slice(-(n >> 1))}`);
  let n = s.length;
  while (n > 1 && g.measureText(shorter(n)).width > width) n = Math.min(n - 1, Math.ceil(n * 0.95));
  return shorter(n);
}

// sum is the sum of some bins of a lane.
export function sum(l: Lane | null, from: number, to: number): number {
  let out = 0;
  if (l) for (let b = from; b < to; b++) out += l.weight[b];
  return out;
}
