// The content of the cells of a table. A row that scrolls into view takes the place of one that
// left it: the content of a cell is data, and only differences are written to the page.

import { el } from "../page/dom";

export type Cell =
  | string
  | { readonly kind: "gauge"; readonly width: number; readonly text: string } // a share as a number over a bar; width in percent
  | { readonly kind: "marked"; readonly class: string; readonly text: string }
  | { readonly kind: "name"; readonly title: string; readonly swatch: string; readonly of: string; readonly before: string; readonly name: string; readonly after: string; readonly remark: string; readonly why: string }
  | { readonly kind: "thread"; readonly title: string; readonly name: string; readonly instead: string } // instead: the data that has no column in a narrow window
  | { readonly kind: "check"; readonly label: string; readonly on: boolean }
  | { readonly kind: "press"; readonly label: string };

type Kind = "text" | Exclude<Cell, string>["kind"];
type Show = (c: Cell) => void;

const kindOf = (c: Cell): Kind => (typeof c === "string" ? "text" : c.kind);

// setter writes only what differs from the last time.
function setter(write: (s: string) => void): (s: string) => void {
  let last = "";
  return (s) => {
    if (s !== last) write((last = s));
  };
}

function texts(parent: HTMLElement): (s: string) => void {
  const node = document.createTextNode("");
  parent.append(node);
  return setter((s) => (node.data = s));
}

const titles = (e: HTMLElement): ((s: string) => void) => setter((s) => (e.title = s));
const classes = (e: HTMLElement): ((s: string) => void) => setter((s) => (e.className = s));

// MAKE puts the elements of a kind of cell into an element, and returns the function that fills
// them.
const MAKE: { [K in Kind]: (into: HTMLElement) => (c: K extends "text" ? string : Extract<Cell, { kind: K }>) => void } = {
  text: texts,
  gauge: (into) => {
    const bar = el("i", { class: "gauge", "aria-hidden": "true" }), label = el("span");
    const text = texts(label), width = setter((s) => (bar.style.width = s));
    into.append(el("span", { class: "gauged" }, bar, label));
    return (c) => {
      width(`${c.width}%`);
      text(c.text);
    };
  },
  marked: (into) => {
    const span = el("span");
    const text = texts(span), look = classes(span);
    into.append(span);
    return (c) => {
      look(c.class);
      text(c.text);
    };
  },
  name: (into) => {
    const swatch = el("i"), first = el("span", { class: "package" }), bold = el("b"), last = el("span", { class: "package" });
    const whole = el("span", { class: "name" }, swatch, first, bold, last), mark = el("span", { class: "remark soft" });
    const remark = texts(mark), why = titles(mark);
    const title = titles(whole), look = classes(swatch), of = titles(swatch), before = texts(first), name = texts(bold), after = texts(last);
    into.append(mark, whole); // the mark is visible however long the name is
    return (c) => {
      remark(c.remark);
      why(c.why);
      title(c.title);
      look(c.swatch);
      of(c.of);
      before(c.before);
      name(c.name);
      after(c.after);
    };
  },
  thread: (into) => {
    const span = el("span"), more = el("span", { class: "instead soft" });
    const title = titles(span), name = texts(span), instead = texts(more);
    span.append(more);
    into.append(span);
    return (c) => {
      title(c.title);
      name(c.name);
      instead(c.instead);
    };
  },
  check: (into) => {
    const box = el("input", { type: "checkbox", tabindex: -1 });
    const label = setter((s) => box.setAttribute("aria-label", s));
    into.append(box);
    return (c) => {
      label(c.label);
      box.checked = c.on;
    };
  },
  press: (into) => {
    const button = el("button", { type: "button", class: "quiet only", tabindex: -1 });
    const text = texts(button);
    into.append(button);
    return (c) => text(c.label);
  },
};

// drawn is a cell that stays as it is, outside of such a table.
export function drawn(c: Cell): Node {
  const into = el("span");
  (MAKE[kindOf(c)](into) as Show)(c);
  return into.firstElementChild ?? into;
}

// CellView is one cell on the page.
export class CellView {
  private kind: Kind | null = null;
  private fill: Show = () => {};
  private readonly twist: HTMLElement | null;
  private readonly content: HTMLElement;
  private twisted: ((s: string) => void) | null = null;
  private padded = setter((s) => (this.root.style.paddingLeft = s));

  constructor(readonly root: HTMLElement, tree: boolean) {
    this.twist = tree ? el("span", { "aria-hidden": "true" }) : null;
    this.content = root;
    if (!this.twist) return;
    this.twisted = classes(this.twist);
    this.content = el("span");
    root.append(this.twist, this.content);
  }

  show(c: Cell): void {
    const kind = kindOf(c);
    if (kind !== this.kind) {
      this.content.replaceChildren();
      this.kind = kind;
      this.fill = MAKE[kind](this.content) as Show;
    }
    this.fill(c);
  }

  // level is the depth of the row in a tree; open is null if nothing is below.
  level(level: number, open: boolean | null): void {
    this.padded(`${0.5 + Math.min(level, 60) * 0.75}rem`);
    this.twisted?.(open === null ? "twist none" : open ? "twist open" : "twist");
  }
}
