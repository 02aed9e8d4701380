// A table of any length: only the rows that can be seen are there. Browsers cap
// the height of what is scrolled near 33 million pixels; longer tables are
// scrolled faster than they are long.

import { el, liken } from "../page/dom";

export interface ColumnSpec {
  readonly id: string;
  readonly label: string;
  readonly title?: string;
  readonly numeric?: boolean;
  readonly sortable?: boolean;
  readonly width: string; // of the grid's template
  readonly spare?: boolean; // left out where the window is narrow
}

export interface RowSpec {
  readonly cells: readonly (Node | string)[];
  readonly level?: number; // of a tree
  readonly open?: boolean | null; // null: nothing below
  readonly checked?: boolean;
}

export interface GridSpec {
  readonly label: string;
  readonly columns: readonly ColumnSpec[];
  readonly empty: string;
  count(): number;
  row(i: number): RowSpec;
  toggle?(i: number, open: boolean): void;
  act?(i: number): void; // Enter or a double click
  menu?(i: number, x: number, y: number): void;
  sort?(id: string): void;
  detail?(i: number): readonly string[]; // what else is known of a row, the name first
}

const CAP = 24e6;

const classOf = (c: ColumnSpec): string => `cell${c.numeric ? " numeric" : ""}${c.spare ? " spare" : ""}`;

export class Grid {
  readonly root: HTMLElement;
  selected = -1;
  private readonly scroller = el("div", { class: "grid-scroll", tabindex: 0 });
  private readonly body = el("div", { class: "grid-body" });
  private readonly head: HTMLElement;
  private readonly nothing: HTMLElement;
  private readonly line = el("div", { class: "grid-detail", role: "status", "aria-live": "polite" });
  private told = -1; // the row that the line is about
  private drawn = new Map<number, HTMLElement>(); // the rows that are there
  private rowHeight = 24;
  private frame = 0;

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
    new ResizeObserver(() => this.later()).observe(this.scroller);
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
  }

  focus(): void {
    this.scroller.focus();
  }

  // tell says all that is known of a row in the line below.
  private tell(i: number): void {
    if (!this.spec.detail) return;
    this.told = i;
    const [name, ...rest] = i >= 0 && i < this.spec.count() ? this.spec.detail(i) : [];
    this.line.replaceChildren(...(name === undefined ? [el("span", { class: "soft" }, "Point at a row, or press an arrow key. A right click, or m, says what can be done with it.")] : [el("b", {}, name), ...rest.filter(Boolean).map((t) => el("span", { class: "fact" }, t))]));
  }

  // refresh draws the rows anew; top also goes to the first.
  refresh(top = false): void {
    this.told = -1; // the numbers are others
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

  // offset is how far down in the whole table the first visible pixel is.
  private offset(): { top: number; height: number } {
    const all = this.spec.count() * this.rowHeight;
    const height = Math.min(all, CAP);
    const room = this.scroller.clientHeight;
    return { top: all === height ? this.scroller.scrollTop : (this.scroller.scrollTop * (all - room)) / Math.max(1, height - room), height };
  }

  private reveal(i: number): void {
    const { top, height } = this.offset();
    const room = this.scroller.clientHeight;
    const y = i * this.rowHeight;
    if (y >= top && y + this.rowHeight <= top + room) return;
    const all = this.spec.count() * this.rowHeight;
    const to = y < top ? y : y + this.rowHeight - room;
    this.scroller.scrollTop = all === height ? to : (to * (height - room)) / Math.max(1, all - room);
  }

  // paint draws the rows that can be seen; scrolled: those that are there are right.
  paint(scrolled = false): void {
    if (!this.root.isConnected) return; // of a page that was built anew
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize) || 16;
    this.rowHeight = Math.round(rem * 1.5);
    const n = this.spec.count();
    this.nothing.hidden = n > 0;
    this.scroller.hidden = n === 0;
    const { top, height } = this.offset();
    this.body.style.height = `${height}px`;
    const room = this.scroller.clientHeight || 600;
    const first = Math.max(0, Math.floor(top / this.rowHeight) - 2);
    const last = Math.min(n, Math.ceil((top + room) / this.rowHeight) + 2);
    const shift = this.scroller.scrollTop - top;
    const there = this.drawn;
    this.drawn = new Map();
    // Where no row stays, those that are there become the new ones in their places.
    let stays = false;
    if (scrolled) for (let i = first; i < last && !stays; i++) stays = there.has(i);
    const idle = stays ? [] : [...there.values()];
    let next = 0;
    let before: Element | null = null; // the last row that is in its place
    for (let i = first; i < last; i++) {
      let e = stays ? there.get(i) : undefined;
      if (!e) {
        e = this.row(i);
        if (next < idle.length) {
          e.style.transform = idle[next].style.transform;
          e = liken(idle[next++], e) as HTMLElement;
        }
      }
      const y = `translateY(${i * this.rowHeight + shift}px)`;
      if (e.style.transform !== y) e.style.transform = y;
      this.drawn.set(i, e);
      if ((before ? before.nextElementSibling : this.body.firstElementChild) !== e) {
        if (before) before.after(e);
        else this.body.prepend(e);
      }
      before = e;
    }
    const used = new Set(this.drawn.values());
    for (const e of there.values()) if (!used.has(e)) e.remove();
    this.root.setAttribute("aria-rowcount", String(n));
    if (this.told < 0 || this.told >= n || this.told !== this.selected) this.tell(this.selected);
    if (this.selected >= 0) this.scroller.setAttribute("aria-activedescendant", `${this.id}-${this.selected}`);
    else this.scroller.removeAttribute("aria-activedescendant");
  }

  private readonly id = `grid${++ids}`;

  private row(i: number): HTMLElement {
    const r = this.spec.row(i);
    const e = el("div", { class: i === this.selected ? "grid-row selected" : "grid-row", role: "row", id: `${this.id}-${i}`, "aria-rowindex": i + 1, "aria-selected": String(i === this.selected), "data-row": i });
    if (r.level !== undefined) e.setAttribute("aria-level", String(r.level + 1));
    if (r.open !== undefined && r.open !== null) e.setAttribute("aria-expanded", String(r.open));
    r.cells.forEach((c, k) => {
      const cell = el("div", { role: "gridcell", class: classOf(this.spec.columns[k]) });
      if (k === 0 && r.level !== undefined) {
        cell.style.paddingLeft = `${0.5 + Math.min(r.level, 60) * 0.75}rem`;
        cell.append(el("span", { class: r.open === null ? "twist none" : r.open ? "twist open" : "twist", "aria-hidden": "true" }));
      }
      cell.append(c);
      e.append(cell);
    });
    return e;
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
      } else if (e.key === "Enter" || e.key === " ") s.act?.(i);
      else if (e.key === "m" || e.key === "ContextMenu") {
        const box = this.body.querySelector(".selected")?.getBoundingClientRect();
        s.menu?.(i, (box?.left ?? 0) + 60, (box?.bottom ?? 0));
      } else return;
      e.preventDefault();
      e.stopPropagation();
    });
  }
}

let ids = 0;
