// The graph on the page: one canvas as large as its window, however deep the
// stacks are; pointer, wheel and keyboard.

import { DARK, LIGHT, type Theme } from "../flame/colors";
import { draw, rowOf, rowTop, type Scene, type Stamp, type View } from "../flame/draw";
import { deepestCovering, nodeAt } from "../flame/layout";
import type { Match } from "../flame/search";
import { el } from "./dom";
import { hatching } from "./hatch";
import { pressed } from "./chartkeys";
import type { Model } from "./model";

export interface ChartEvents {
  zoomed(node: number): void; // the view now shows this node
  pointed(node: number, held: boolean): void; // -1: nothing; held: it stays when the pointer leaves
}

const FONT = `ui-monospace, "SF Mono", "Cascadia Mono", "JetBrains Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace`;

export class Chart {
  readonly root: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  zoom = 0;
  selected = -1;
  hovered = -1;
  flame = true;
  match: Match | null = null;
  change: Uint8Array | null = null;
  theme: Theme = LIGHT;
  rectangles = 0;

  private readonly spacer: HTMLElement;
  private readonly context: CanvasRenderingContext2D;
  private readonly strip = document.createElement("canvas").getContext("2d", { willReadFrequently: true })!;
  private x0 = 0;
  private x1 = 1;
  private width = 0;
  private height = 0;
  private rowHeight = 20;
  private charWidth = 7;
  private font = "";
  private frame = 0;
  private animation = 0;
  private hatch: CanvasPattern | string = "transparent";
  private aimed = -1; // a node that is kept in sight until the user goes elsewhere
  private aimedAsked = false; // the user looks for it
  private placed = false;
  private lastHeight = 0;
  private lastTop = 0;

  constructor(readonly model: Model, readonly on: ChartEvents) {
    this.canvas = el("canvas", {
      tabindex: 0, role: "application", "aria-roledescription": "flame graph",
      "aria-label": "Flame graph. Arrow keys move between frames, Enter zooms, Escape goes back.",
      "aria-describedby": "detail",
    });
    this.context = this.canvas.getContext("2d", { alpha: false })!;
    this.spacer = el("div", { class: "spacer" }, this.canvas);
    this.root = el("div", { class: "chart", tabindex: -1 }, this.spacer);
    this.listen();
  }

  // fresh is called when tree, values or layout have changed.
  fresh(zoom: number): void {
    this.hovered = -1;
    if (this.selected >= this.model.tree.n || (this.selected >= 0 && this.model.values.total[this.selected] <= 0)) this.selected = -1;
    this.resize();
    this.show(zoom, false);
  }

  // aim brings a node into sight if so few rows fit that it is probably out of sight: in a small
  // window, or when the page is made larger; in any window if the user asked for it.
  aim(node: number, asked = false): void {
    this.aimed = node;
    this.aimedAsked = asked;
    this.toAim();
  }

  private toAim(): void {
    let node = this.aimed;
    if (node < 0 || node >= this.model.tree.n || !this.height) return;
    // If a node is too narrow for a name, its nearest caller that is not: between frames without
    // names a reader cannot tell where they are.
    const named = (100 / this.canvas.clientWidth) * (this.x1 - this.x0);
    while (node > 0 && this.model.layout.total[node] < named) node = this.model.tree.parent[node];
    const seen = Math.min(this.height, innerHeight - this.canvas.getBoundingClientRect().top); // the page may continue below the window
    if (seen >= 16 * this.rowHeight && !this.aimedAsked) return;
    const top = rowTop(this.view(), this.model.layout.rows, this.model.tree.depth[node]);
    if (top < this.rowHeight) this.root.scrollTop += top - 2 * this.rowHeight;
    else if (top > seen - 2 * this.rowHeight) this.root.scrollTop += top - seen + 3 * this.rowHeight;
    this.lastTop = this.root.scrollTop;
  }

  // rowAt is the vertical range of a node's row in the window.
  rowAt(node: number): [number, number] {
    const top = this.canvas.getBoundingClientRect().top + rowTop(this.view(), this.model.layout.rows, this.model.tree.depth[node]);
    return [top, top + this.rowHeight];
  }

  setTheme(dark: boolean): void {
    this.theme = dark ? DARK : LIGHT;
    this.hatch = hatching(this.context, this.theme);
    this.redraw();
  }

  setFlame(flame: boolean): void {
    if (this.flame === flame) return;
    const row = this.model.tree.depth[this.selected >= 0 ? this.selected : this.zoom];
    this.flame = flame;
    this.reveal(row, true);
    this.redraw();
  }

  // show zooms to a node.
  show(node: number, animated = true): void {
    this.aimed = -1;
    const l = this.model.layout;
    this.zoom = node;
    const from = [this.x0, this.x1];
    const to = [l.x[node], l.x[node] + l.total[node]];
    if (to[1] <= to[0]) to[1] = to[0] + 1;
    cancelAnimationFrame(this.animation);
    this.revealSubtree(node);
    if (!animated || matchMedia("(prefers-reduced-motion: reduce)").matches) {
      [this.x0, this.x1] = to;
      this.redraw();
      return;
    }
    const start = performance.now();
    const tick = (now: number): void => {
      const t = Math.min(1, Math.max(0, (now - start) / 160));
      const e = 1 - (1 - t) ** 3;
      this.x0 = from[0] + (to[0] - from[0]) * e;
      this.x1 = from[1] + (to[1] - from[1]) * e;
      this.paint();
      if (t < 1) this.animation = requestAnimationFrame(tick);
    };
    this.animation = requestAnimationFrame(tick);
  }

  // select puts the keyboard's focus on a node and makes it visible.
  select(node: number): void {
    this.aimed = -1;
    this.selected = node;
    if (node >= 0) {
      const l = this.model.layout;
      const mid = l.x[node] + l.total[node] / 2;
      if (mid < this.x0 || mid > this.x1) {
        // Outside of the visible range: zoom out to a node that holds both.
        let z = this.zoom;
        while (z > 0 && !(l.x[z] <= l.x[node] && l.x[node] + l.total[node] <= l.x[z] + l.total[z])) z = this.model.tree.parent[z];
        this.show(z, false);
        this.on.zoomed(z);
      }
      this.reveal(this.model.tree.depth[node], false);
    }
    this.on.pointed(node, true);
    this.redraw();
  }

  redraw(): void {
    if (!this.frame) this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  paint(): void {
    if (!this.width || !this.height) return; // not on the page yet
    const m = this.model;
    const c = this.context;
    const ratio = devicePixelRatio || 1;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.font = this.font;
    c.textBaseline = "middle";
    const scene: Scene = {
      tree: m.tree, layout: m.layout, kind: m.symbolColor, shade: m.shade, names: m.names, rootName: m.rootName(),
      guessed: m.guessed, groups: m.symbols, match: this.match, change: this.change, theme: this.theme, charWidth: this.charWidth,
      zoomed: this.zoom, selected: this.selected, hovered: this.hovered,
    };
    this.rectangles = draw(c, scene, this.view(), this.hatch, this.stamp);
  }

  private readonly stamp: Stamp = (pixels, width, rows, y, rowHeight) => {
    const image = this.strip;
    if (image.canvas.width < width || image.canvas.height < rows) {
      image.canvas.width = width;
      image.canvas.height = Math.max(rows, image.canvas.height);
    }
    image.putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer as ArrayBuffer), width, rows), 0, 0);
    this.context.imageSmoothingEnabled = false;
    this.context.drawImage(image.canvas, 0, 0, width, rows, 0, y, width, rows * rowHeight);
  };

  view(): View {
    return {
      x0: this.x0, x1: this.x1, width: this.width, height: this.height, scroll: this.root.scrollTop,
      flame: this.flame, rowHeight: this.rowHeight,
    };
  }

  resize(): void {
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize) || 16;
    this.rowHeight = Math.round(rem * 1.3125);
    this.font = `${rem * 0.78}px ${FONT}`;
    this.context.font = this.font;
    this.charWidth = this.context.measureText("MMMMMMMMMMMMMMMMMMMM").width / 20;
    if (!this.root.clientHeight) return; // behind another tab: the picture stays until the tab is back
    const ratio = devicePixelRatio || 1;
    this.width = Math.max(1, this.root.clientWidth);
    this.height = Math.max(1, this.root.clientHeight);
    const content = Math.max(this.height, this.model.layout.rows * this.rowHeight);
    // The root of a flame stays where it is, at the bottom.
    // A window that grew has been scrolled already, as far as its content reaches.
    const fromBottom = this.placed ? Math.max(0, this.spacer.offsetHeight - Math.max(this.root.scrollTop, this.lastTop) - this.lastHeight) : 0;
    this.spacer.style.height = `${content}px`;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    if (this.flame) this.root.scrollTop = content - fromBottom - this.height;
    this.placed = true;
    this.lastHeight = this.height;
    this.lastTop = this.root.scrollTop;
    this.toAim();
    this.hatch = hatching(this.context, this.theme);
    this.paint();
  }

  // reveal scrolls as little as needed to show a row.
  private reveal(row: number, centre: boolean): void {
    const top = rowTop(this.view(), this.model.layout.rows, row);
    if (centre) this.root.scrollTop += top - this.height / 2;
    else if (top < this.rowHeight) this.root.scrollTop += top - 2 * this.rowHeight;
    else if (top > this.height - 2 * this.rowHeight) this.root.scrollTop += top - this.height + 3 * this.rowHeight;
  }

  // revealSubtree scrolls so that a node and its callees are visible, if they are not.
  private revealSubtree(node: number): void {
    const { tree, layout: l } = this.model;
    let deepest = tree.depth[node];
    for (let i = node; i < tree.end[node]; i++) if (l.total[i] > 0 && tree.depth[i] > deepest) deepest = tree.depth[i];
    const v = this.view();
    const near = rowTop(v, l.rows, tree.depth[node]);
    const far = rowTop(v, l.rows, deepest);
    const inside = (y: number) => y >= 0 && y + this.rowHeight <= this.height;
    if (inside(near) && inside(far)) return;
    this.root.scrollTop += this.flame ? near - (this.height - 4 * this.rowHeight) : near - 3 * this.rowHeight;
    this.lastTop = this.root.scrollTop; // the window's height may change before resize reports it
  }

  private nodeUnder(e: MouseEvent): number {
    const box = this.canvas.getBoundingClientRect();
    const v = this.view();
    const at = this.x0 + ((e.clientX - box.left) / this.width) * (this.x1 - this.x0);
    return nodeAt(this.model.layout, rowOf(v, this.model.layout.rows, e.clientY - box.top), at);
  }

  private hover(node: number): void {
    if (node === this.hovered) return;
    this.hovered = node;
    this.canvas.style.cursor = node >= 0 ? "pointer" : "default";
    this.on.pointed(node >= 0 ? node : this.selected, node < 0);
    this.redraw();
  }

  // scroll moves the view by a share of its height.
  scroll(by: number): void {
    this.root.scrollTop += by * this.height;
  }

  // pan moves the view by a share of its width.
  pan(by: number): void {
    const all = this.model.layout.total[0];
    const w = this.x1 - this.x0;
    const x0 = Math.max(0, Math.min(all - w, this.x0 + by * w));
    this.free(x0, x0 + w);
  }

  // scale zooms around a place of the view, 0 to 1 from the left.
  scale(by: number, place: number): void {
    const all = this.model.layout.total[0];
    const w = Math.min(all, Math.max(all * 1e-9, (this.x1 - this.x0) * by));
    const at = this.x0 + place * (this.x1 - this.x0);
    const x0 = Math.max(0, Math.min(all - w, at - place * w));
    this.free(x0, x0 + w);
  }

  private free(x0: number, x1: number): void {
    cancelAnimationFrame(this.animation);
    this.x0 = x0;
    this.x1 = x1;
    const z = deepestCovering(this.model.layout, this.model.tree, x0, x1);
    // In a chain of frames of the same width, the one that was zoomed to stays.
    const l = this.model.layout;
    if (z !== this.zoom && !(l.x[z] === l.x[this.zoom] && l.total[z] === l.total[this.zoom])) {
      this.zoom = z;
      this.on.zoomed(z);
    }
    this.redraw();
  }

  private listen(): void {
    const c = this.canvas;
    new ResizeObserver(() => this.resize()).observe(this.root);
    this.root.addEventListener("scroll", () => {
      // In a window whose height has changed, the window caused the scrolling: resize follows.
      if (this.root.clientHeight === this.lastHeight) this.lastTop = this.root.scrollTop;
      this.redraw();
    }, { passive: true });

    for (const event of ["pointerdown", "wheel", "keydown"]) this.root.addEventListener(event, () => (this.aimed = -1), { passive: true });
    let from: { x: number; y: number; scroll: number; x0: number } | null = null;
    let dragged = false;
    c.addEventListener("pointerdown", (e) => {
      if (e.button !== 0) return;
      from = { x: e.clientX, y: e.clientY, scroll: this.root.scrollTop, x0: this.x0 };
      dragged = false;
    });
    c.addEventListener("pointermove", (e) => {
      if (from && e.pointerType === "mouse") {
        const dx = e.clientX - from.x;
        const dy = e.clientY - from.y;
        if (!dragged && Math.hypot(dx, dy) > 4) {
          dragged = true;
          c.setPointerCapture(e.pointerId);
          c.style.cursor = "grabbing";
        }
        if (dragged) {
          const w = this.x1 - this.x0;
          const all = this.model.layout.total[0];
          const x0 = Math.max(0, Math.min(all - w, from.x0 - (dx / this.width) * w));
          if (x0 !== this.x0) this.free(x0, x0 + w);
          this.root.scrollTop = from.scroll - dy;
          return;
        }
      }
      this.hover(this.nodeUnder(e));
    });
    c.addEventListener("pointerup", () => (from = null));
    c.addEventListener("pointercancel", () => (from = null));
    c.addEventListener("pointerleave", () => this.hover(-1));
    c.addEventListener("click", (e) => {
      if (dragged) {
        dragged = false;
        c.style.cursor = "default";
        return;
      }
      const node = this.nodeUnder(e);
      if (node < 0) return;
      this.selected = node;
      this.show(node);
      this.on.zoomed(node);
      this.on.pointed(node, true);
    });
    c.addEventListener("wheel", (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey) {
        e.preventDefault();
        const box = c.getBoundingClientRect();
        this.scale(Math.exp(Math.max(-60, Math.min(60, e.deltaY)) * 0.006), (e.clientX - box.left) / this.width);
      } else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
        e.preventDefault();
        this.pan((e.deltaX || e.deltaY) / this.width);
      }
    }, { passive: false });
    c.addEventListener("keydown", (e) => {
      if (!e.ctrlKey && !e.metaKey && !e.altKey && pressed(this, e.key)) e.preventDefault();
    });
  }
}
