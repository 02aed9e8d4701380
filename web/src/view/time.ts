// Time along the x axis: ticks, and choosing a stretch of it.

export interface Span { readonly from: number; readonly to: number } // ns

// ticks returns round times within a span, about n of them.
export function ticks(s: Span, n: number): { at: number; text: string }[] {
  const width = s.to - s.from;
  if (width <= 0 || n < 1) return [];
  const rough = width / n;
  const unit = [1e3, 1e6, 1e9, 60e9, 3600e9].filter((u) => u <= rough).pop() ?? 1;
  const steps = unit >= 60e9 ? [1, 2, 5, 10, 15, 30, 60, 120, 240, 480, 1440] : [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
  const size = unit * (steps.find((k) => k * unit >= rough) ?? steps[steps.length - 1]);
  const out: { at: number; text: string }[] = [];
  for (let t = Math.ceil(s.from / size) * size; t <= s.to && out.length < 1000; t += size) out.push({ at: t, text: time(t, size) });
  return out;
}

// time formats a moment of the recording; precision is the smallest difference that it has to
// show.
export function time(ns: number, precision = 1e6): string {
  if (precision >= 60e9 || ns >= 600e9) {
    const s = Math.floor(ns / 1e9);
    const two = (v: number): string => String(v).padStart(2, "0");
    const h = Math.floor(s / 3600);
    const rest = precision < 1e9 ? ((ns % 1e9) / 1e9).toFixed(precision < 1e6 ? 6 : 3).slice(1) : "";
    return `${h ? `${h}:${two(Math.floor((s % 3600) / 60))}` : Math.floor(s / 60)}:${two(s % 60)}${rest}`;
  }
  const digits = Math.max(0, Math.min(9, 9 - Math.floor(Math.log10(precision))));
  return `${(ns / 1e9).toFixed(digits)} s`;
}

// spanText formats a stretch of time with as many digits as it needs.
export function spanText(from: number, to: number): string {
  const p = 10 ** Math.max(3, Math.min(9, Math.floor(Math.log10(Math.max(1, to - from))) - 2));
  return `${time(from, p)} – ${time(to, p)}`;
}

export interface BrushOptions {
  window(): Span; // the span that the element shows
  chosen(): Span | null;
  choose(s: Span | null, final: boolean): void;
  left?(): number; // where the time begins on the element, in pixels
}

// brush lets the pointer and the keyboard choose a stretch of time on an element.
export function brush(e: HTMLElement, o: BrushOptions): void {
  const left = (): number => o.left?.() ?? 0;
  const at = (x: number): number => {
    const box = e.getBoundingClientRect();
    const w = o.window();
    const share = (x - box.left - left()) / Math.max(1, box.width - left());
    return Math.round(w.from + Math.max(0, Math.min(1, share)) * (w.to - w.from));
  };
  let start = -1;
  let grip = 0; // for a moved selection: where it was grabbed
  let moved: Span | null = null;
  let x0 = 0;
  const spanOf = (x: number): Span => {
    const t = at(x);
    const w = o.window();
    if (moved) {
      const d = Math.max(w.from - moved.from, Math.min(w.to - moved.to, t - grip));
      return { from: moved.from + d, to: moved.to + d };
    }
    return { from: Math.min(start, t), to: Math.max(start, t, Math.min(start, t) + 1) };
  };
  e.addEventListener("pointerdown", (ev) => {
    if (ev.button !== 0 || ev.clientX < e.getBoundingClientRect().left + left()) return;
    const c = o.chosen();
    x0 = ev.clientX;
    start = at(ev.clientX);
    const w = o.window();
    const px = (w.to - w.from) / Math.max(1, e.getBoundingClientRect().width - left());
    moved = null;
    if (c && Math.abs(start - c.from) < 5 * px) start = c.to; // an edge is dragged
    else if (c && Math.abs(start - c.to) < 5 * px) start = c.from;
    else if (c && start > c.from && start < c.to && !ev.shiftKey) {
      moved = c;
      grip = start;
    }
    e.setPointerCapture(ev.pointerId);
  });
  e.addEventListener("pointermove", (ev) => {
    if (start < 0 || Math.abs(ev.clientX - x0) < 3) return;
    x0 = -1e9;
    o.choose(spanOf(ev.clientX), false);
  });
  const end = (ev: PointerEvent): void => {
    if (start < 0) return;
    if (x0 === -1e9) o.choose(spanOf(ev.clientX), true);
    else if (!moved) o.choose(null, true); // a click
    start = -1;
  };
  e.addEventListener("pointerup", end);
  e.addEventListener("pointercancel", () => (start = -1));
  e.addEventListener("dblclick", () => o.choose(null, true));
  e.addEventListener("keydown", (ev) => {
    if (ev.ctrlKey || ev.metaKey || ev.altKey) return;
    const w = o.window();
    const unit = Math.max(1, Math.round((w.to - w.from) / 100));
    const c = o.chosen();
    if (ev.key === "Escape" && c) o.choose(null, true);
    else if (ev.key === "ArrowLeft" || ev.key === "ArrowRight") {
      const d = ev.key === "ArrowLeft" ? -unit : unit;
      if (!c) o.choose({ from: w.from, to: w.from + 10 * unit }, true);
      else if (ev.shiftKey) o.choose({ from: c.from, to: Math.min(w.to, Math.max(c.from + 1, c.to + d)) }, true);
      else {
        const by = Math.max(w.from - c.from, Math.min(w.to - c.to, d));
        o.choose({ from: c.from + by, to: c.to + by }, true);
      }
    } else return;
    ev.preventDefault();
    ev.stopPropagation();
  });
}

// Lane is the look of states: dark on light pages and light on dark ones.
export const STATE_COLORS: Record<"light" | "dark", Record<string, string>> = {
  light: { unknown: "#5f7f95", running: "#1f8f6f", runnable: "#d9a441", sleeping: "#b9c4cf", blocked: "#b5374f", parked: "#8f86c4", waiting: "#c18fb4", disk: "#c46a2c" },
  dark: { unknown: "#7d9fb8", running: "#35b08c", runnable: "#c08a2c", sleeping: "#4a545f", blocked: "#d8546d", parked: "#7a71b5", waiting: "#9a6a8e", disk: "#c2683a" },
};

// surface fits a canvas to its available space and returns its context in CSS pixels.
export function surface(c: HTMLCanvasElement): { g: CanvasRenderingContext2D; width: number; height: number } {
  const ratio = devicePixelRatio || 1;
  const width = Math.max(1, c.clientWidth);
  const height = Math.max(1, c.clientHeight);
  if (c.width !== Math.round(width * ratio) || c.height !== Math.round(height * ratio)) {
    c.width = Math.round(width * ratio);
    c.height = Math.round(height * ratio);
  }
  const g = c.getContext("2d")!;
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  return { g, width, height };
}

export function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
