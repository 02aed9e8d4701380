// A table of any length: only the visible rows exist on the page. Browsers cap the height of
// scrolled content near 33 million pixels; longer tables scroll faster than they are long.

import { el } from "../page/dom";
import { CellView, type Cell } from "./cells";

export interface ColumnSpec {
  readonly id: string;
  readonly label: string;
  readonly title?: string;
  readonly numeric?: boolean;
  readonly sortable?: boolean;
  readonly width: string; // of the grid's template
  readonly spare?: boolean; // left out if the window is narrow
}

export interface RowSpec {
  readonly cells: readonly Cell[];
  readonly level?: number; // of a tree
  readonly open?: boolean | null; // null: nothing below
}

export interface GridSpec {
  readonly label: string;
  readonly columns: readonly ColumnSpec[];
  readonly empty: string; // the text if there are no rows
  waiting?(): boolean; // the rows are not known yet
  count(): number;
  row(i: number): RowSpec;
  toggle?(i: number, open: boolean): void;
  act?(i: number): void; // a double click, or a key that means nothing else
  check?(i: number): void; // its check box was pressed, or the space bar
  press?(i: number): void; // its button was pressed, or Enter
  menu?(i: number, x: number, y: number): void;
  sort?(id: string): void;
  detail?(i: number): readonly string[]; // further details of a row, the name first
}

const CAP = 24e6;

const REST = 150; // ms without scrolling, after which rows are put in order

const classOf = (c: ColumnSpec): string => `cell${c.numeric ? " numeric" : ""}${c.spare ? " spare" : ""}`;

export class Grid {
  readonly root: HTMLElement;
  selected = -1;
  private readonly scroller = el("div", { class: "grid-scroll", tabindex: 0 });
  private readonly body = el("div", { class: "grid-body" });
  private readonly head: HTMLElement;
  private readonly nothing: HTMLElement;
  private readonly line = el("div", { class: "grid-detail", role: "status", "aria-live": "polite" });
  private told = -2; // the row in the detail line; -1: none, -2: the line is out of date
  private drawn = new Map<number, RowView>(); // the rows that are there
  private rowHeight = 0;
  private frame = 0;
  private resting = 0;
  private awaited = false; // the rows are to get the focus
  private length = -1; // the number of rows that the page was told
  private high = "";

  constructor(private readonly spec: GridSpec) {
    const template = (columns: readonly ColumnSpec[]): string => columns.map((c) => c.width).join(" ");
    this.head = el("div", { class: "grid-head", role: "row" }, ...spec.columns.map((c) => el("div", {
      role: "columnheader", class: classOf(c), title: c.title, "data-id": c.id,
    }, c.sortable ? el("button", { type: "button", class: "quiet", click: () => spec.sort?.(c.id) }, c.label) : c.label)));
    this.nothing = el("p", { class: "grid-empty" }, spec.empty);
    this.scroller.append(this.body);
    this.root = el("div", { class: "grid", role: spec.toggle ? "treegrid" : "grid", "aria-label": spec.label }, this.head, this.scroller, this.nothing);
    if (spec.detail) this.root.append(this.line);
    this.root.style.setProperty("--columns", template(spec.columns));
    this.root.style.setProperty("--few", template(spec.columns.filter((c) => !c.spare)));
    this.scroller.addEventListener("scroll", () => this.later(), { passive: true });
    new ResizeObserver(() => {
      this.rowHeight = 0;
      this.later();
    }).observe(this.scroller);
    this.listen();
  }

  // sorted marks the column that the rows are sorted by.
  sorted(id: string, descending: boolean): void {
    for (const h of this.head.children) {
      if ((h as HTMLElement).dataset.id === id) h.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else h.removeAttribute("aria-sort");
    }
  }

  select(i: number): void {
    this.selected = Math.max(-1, Math.min(this.spec.count() - 1, i));
    if (this.selected >= 0) this.reveal(this.selected);
    this.paint();
    if (this.selected < 0) return;
    // The detail line may need more lines than before, and cover the row.
    const at = this.scroller.scrollTop;
    this.reveal(this.selected);
    if (this.scroller.scrollTop !== at) this.paint();
  }

  // step selects the next row for which is returns true, dir 1, or the previous one, -1, around
  // the end. It reports whether there is one.
  step(dir: -1 | 1, is: (i: number) => boolean): boolean {
    const n = this.spec.count();
    const from = this.selected >= 0 ? this.selected : dir > 0 ? -1 : n;
    for (let k = 1; k <= n; k++) {
      const i = (((from + dir * k) % n) + n) % n;
      if (!is(i)) continue;
      this.select(i);
      return true;
    }
    return false;
  }

  // focus goes to the rows, as soon as there are some.
  focus(): void {
    this.awaited = this.spec.count() === 0;
    this.scroller.focus();
  }

  // tell shows all details of a row in the line below.
  private tell(i: number): void {
    if (!this.spec.detail) return;
    this.told = i;
    const [name, ...rest] = i >= 0 && i < this.spec.count() ? this.spec.detail(i) : [];
    this.line.replaceChildren(...(name === undefined ? [el("span", { class: "soft" }, "Point at a row, or press an arrow key. A right click, or m, says what can be done with it.")] : [el("b", {}, name), ...rest.filter(Boolean).map((t) => el("span", { class: "fact" }, t))]));
  }

  // refresh draws the rows anew; top also scrolls to the first.
  refresh(top = false): void {
    this.told = -2; // the numbers have changed
    this.rowHeight = 0;
    if (top) this.scroller.scrollTop = 0;
    this.selected = Math.min(this.selected, this.spec.count() - 1);
    this.paint();
  }

  private later(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.paint(true);
    });
  }

  // offset is the position of the first visible pixel in the whole table, and its position on the
  // page.
  private offset(): { top: number; height: number; at: number; room: number } {
    const all = this.spec.count() * this.rowHeight;
    const height = Math.min(all, CAP);
    const room = this.scroller.clientHeight, at = this.scroller.scrollTop;
    return { top: all === height ? at : (at * (all - room)) / Math.max(1, height - room), height, at, room };
  }

  private reveal(i: number): void {
    this.measure();
    const { top, height } = this.offset();
    const room = this.scroller.clientHeight;
    const y = i * this.rowHeight;
    if (y >= top && y + this.rowHeight <= top + room) return;
    const all = this.spec.count() * this.rowHeight;
    const to = y < top ? y : y + this.rowHeight - room;
    this.scroller.scrollTop = all === height ? to : (to * (height - room)) / Math.max(1, all - room);
  }

  // measure returns the height of a row.
  private measure(): void {
    this.rowHeight ||= Math.round((parseFloat(getComputedStyle(document.documentElement).fontSize) || 16) * 1.5);
  }

  // paint draws the visible rows; scrolled: existing rows are up to date. It reads from the page
  // before it changes it, to avoid a second layout.
  paint(scrolled = false): void {
    if (!this.root.isConnected) return; // of a page that was rebuilt
    this.measure();
    const n = this.spec.count();
    const { top, height, at, room } = this.offset();
    const first = Math.max(0, Math.floor(top / this.rowHeight) - 2);
    const last = Math.min(n, Math.ceil((top + (room || 600)) / this.rowHeight) + 2);
    this.nothing.hidden = n > 0 || !!this.spec.waiting?.();
    if (n !== this.length) {
      this.length = n;
      this.scroller.hidden = this.line.hidden = n === 0;
      if (n > 0 && this.awaited) {
        this.awaited = false;
        // The row that had the focus may be out of view already, and keeps it until the next frame.
        const has = document.activeElement;
        if (!has || has === document.body || has.getClientRects().length === 0) this.scroller.focus();
      }
      this.root.setAttribute("aria-rowcount", String(n));
    }
    if (this.high !== `${height}px`) this.body.style.height = this.high = `${height}px`;
    const idle: RowView[] = [];
    for (const [i, row] of this.drawn) {
      if (i >= first && i < last) continue;
      idle.push(row);
      this.drawn.delete(i);
    }
    for (let i = first; i < last; i++) {
      let row = this.drawn.get(i);
      if (!row || !scrolled) {
        if (!row) this.drawn.set(i, (row = idle.pop() ?? this.another()));
        row.show(i, this.spec.row(i), i === this.selected, this.id);
      }
      row.move(i * this.rowHeight + at - top);
    }
    for (const row of idle) row.root.remove();
    if (!scrolled) this.arrange();
    else {
      clearTimeout(this.resting);
      this.resting = window.setTimeout(() => this.arrange(), REST);
    }
    if (this.told !== this.selected) this.tell(this.selected);
    if (scrolled) return;
    if (this.selected >= 0) this.scroller.setAttribute("aria-activedescendant", this.id);
    else this.scroller.removeAttribute("aria-activedescendant");
  }

  // arrange puts the rows into the page in their visible order, for screen readers. It waits
  // until scrolling ends, since it costs a new layout.
  private arrange(): void {
    let at = this.body.firstElementChild;
    for (const i of [...this.drawn.keys()].sort((a, b) => a - b)) {
      const { root } = this.drawn.get(i)!;
      if (root === at) at = at.nextElementSibling;
      else this.body.insertBefore(root, at);
    }
  }

  private readonly id = `grid${++ids}`; // of the selected row

  private another(): RowView {
    const row = new RowView(this.spec);
    this.body.append(row.root);
    return row;
  }

  private at(e: Event): number {
    const row = (e.target as Element).closest<HTMLElement>("[data-row]");
    return row ? Number(row.dataset.row) : -1;
  }

  private listen(): void {
    const s = this.spec;
    this.body.addEventListener("click", (e) => {
      const i = this.at(e);
      if (i < 0 || (e.target as Element).closest("input, button")) return;
      this.selected = i;
      const open = s.row(i).open;
      if (s.toggle && open !== null && open !== undefined && (e.target as Element).classList.contains("twist")) s.toggle(i, !open);
      else this.paint();
    });
    this.body.addEventListener("click", (e) => {
      const i = this.at(e);
      if (i >= 0 && (e.target as Element).closest("button")) s.press?.(i);
    });
    this.body.addEventListener("change", (e) => {
      const i = this.at(e);
      if (i >= 0) s.check?.(i);
    });
    this.body.addEventListener("dblclick", (e) => {
      const i = this.at(e);
      if (i < 0 || (e.target as Element).closest("input, button, .twist")) return;
      const open = s.row(i).open;
      if (s.toggle && open !== null && open !== undefined) s.toggle(i, !open);
      else s.act?.(i);
    });
    this.body.addEventListener("pointerover", (e) => {
      const i = this.at(e);
      if (i >= 0 && i !== this.told) this.tell(i);
    });
    this.body.addEventListener("pointerleave", () => this.tell(this.selected));
    this.body.addEventListener("contextmenu", (e) => {
      const i = this.at(e);
      if (i < 0 || !s.menu) return;
      e.preventDefault();
      this.select(i);
      s.menu(i, e.clientX, e.clientY);
    });
    this.scroller.addEventListener("keydown", (e) => {
      if (e.target !== this.scroller || e.ctrlKey || e.metaKey || e.altKey) return;
      const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.rowHeight) - 1);
      const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 };
      const i = this.selected;
      if (e.key in steps) this.select(Math.max(0, i < 0 ? 0 : i + steps[e.key]));
      else if (i < 0) return;
      else if (e.key === "ArrowRight" || e.key === "ArrowLeft") {
        const r = s.row(i);
        if (!s.toggle || r.level === undefined) return;
        if (e.key === "ArrowRight") {
          if (r.open === false) s.toggle(i, true);
          else if (r.open) this.select(i + 1);
        } else if (r.open) s.toggle(i, false);
        else {
          let up = i - 1;
          while (up >= 0 && s.row(up).level! >= r.level) up--;
          if (up >= 0) this.select(up);
        }
      } else if (e.key === " " && s.check) s.check(i);
      else if (e.key === "Enter" && s.press) s.press(i);
      else if (e.key === "Enter" || e.key === " ") s.act?.(i);
      else if (e.key === "m" || e.key === "ContextMenu") {
        const box = this.body.querySelector(".selected")?.getBoundingClientRect();
        s.menu?.(i, (box?.left ?? 0) + 60, (box?.bottom ?? 0));
      } else return;
      e.preventDefault();
      e.stopPropagation();
    });
  }
}

// RowView is a row on the page, which shows different rows of the table over time.
class RowView {
  readonly root: HTMLElement;
  private readonly cells: readonly CellView[];
  private top = NaN;
  private attributes = new Map<string, string>();

  constructor(spec: GridSpec) {
    this.root = el("div", { class: "grid-row", role: "row" });
    this.cells = spec.columns.map((c, k) => new CellView(el("div", { role: "gridcell", class: classOf(c) }), k === 0 && !!spec.toggle));
    this.root.append(...this.cells.map((c) => c.root));
  }

  private set(name: string, value: string): void {
    if (this.attributes.get(name) === value) return;
    this.attributes.set(name, value);
    this.root.setAttribute(name, value);
  }

  private unset(name: string): void {
    if (this.attributes.delete(name)) this.root.removeAttribute(name);
  }

  show(i: number, r: RowSpec, selected: boolean, id: string): void {
    this.set("data-row", String(i));
    this.set("aria-rowindex", String(i + 1));
    this.set("aria-selected", String(selected));
    this.set("class", selected ? "grid-row selected" : "grid-row");
    if (selected) this.set("id", id);
    else this.unset("id");
    if (r.level !== undefined) {
      this.set("aria-level", String(r.level + 1));
      this.cells[0].level(r.level, r.open ?? null);
    }
    if (r.open !== undefined && r.open !== null) this.set("aria-expanded", String(r.open));
    else this.unset("aria-expanded");
    this.cells.forEach((c, k) => c.show(r.cells[k]));
  }

  // move puts it at a height in pixels.
  move(top: number): void {
    if (top !== this.top) this.root.style.top = `${(this.top = top)}px`;
  }
}

let ids = 0;
