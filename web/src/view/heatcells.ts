// The cells of the heatmap: their colours, and which of them differ by chance.

import type { Chance } from "../flame/chance";

// heat is the colour of a share of the maximum. Lightness alone shows the amount; the square root
// keeps small amounts visible.
export function heat(v: number, dark: boolean): string {
  if (v === 0) return dark ? "#1f242b" : "#eceef0";
  const s = Math.sqrt(v);
  return dark ? `hsl(${40 - 25 * s} 75% ${22 + 48 * s}%)` : `hsl(${45 - 30 * s} 80% ${88 - 50 * s}%)`;
}

// withinChance marks the cells whose difference chance explains. A cell that differs by less than chance
// may be in a column that differs by more: a difference that lasts so long is not chance. If samples are
// so few that no cell and no column is significant, two columns may be, or four and so on. sides are the
// weights before and after, by cell; each column has so many rows.
export function withinChance(chance: Chance, sides: readonly Float32Array[], columns: number, rows: number, difference: (cell: number) => number): Uint8Array {
  const [b, a] = sides;
  const grey = new Uint8Array(b.length);
  const was = new Float64Array(columns + 1), is = new Float64Array(columns + 1), by = new Float64Array(columns + 1); // up to a column
  for (let x = 0; x < columns; x++) {
    [was[x + 1], is[x + 1], by[x + 1]] = [was[x], is[x], by[x]];
    for (let i = x * rows; i < (x + 1) * rows; i++) {
      was[x + 1] += b[i];
      is[x + 1] += a[i];
      by[x + 1] += difference(i);
    }
  }
  const same = (): boolean => grey.length > 0 && grey.every((g, i) => g > 0 || difference(i) === 0);
  for (let wide = 1; wide === 1 || (wide < columns && same()); wide *= 2) {
    for (let x = 0; x < columns; x += wide) {
      const end = Math.min(columns, x + wide);
      const stretch = chance.explains(was[end] - was[x], is[end] - is[x]) ? 0 : by[end] - by[x];
      for (let i = x * rows; i < end * rows; i++) grey[i] = difference(i) * stretch > 0 || !chance.explains(b[i], a[i]) ? 0 : 1;
    }
  }
  return grey;
}
