// The pattern of frames that are guessed.

import type { Theme } from "../flame/colors";

export function hatching(context: CanvasRenderingContext2D, theme: Theme): CanvasPattern | string {
  const ratio = devicePixelRatio || 1;
  const side = Math.round(7 * ratio);
  const tile = document.createElement("canvas");
  tile.width = tile.height = side;
  const t = tile.getContext("2d")!;
  t.strokeStyle = theme.hatch;
  t.lineWidth = 1.6 * ratio;
  t.beginPath();
  for (const o of [-side, 0, side]) {
    t.moveTo(o - 1, side + 1);
    t.lineTo(o + side + 1, -1);
  }
  t.stroke();
  const p = context.createPattern(tile, "repeat");
  p?.setTransform(new DOMMatrix().scale(1 / ratio));
  return p ?? "transparent";
}
