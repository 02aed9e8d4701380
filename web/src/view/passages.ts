// Searches the text of a tab: rows of its tables, entries of its lists.

import { count } from "../page/format";

const PASSAGES = "tbody tr, li, dd, p:not(.soft)";

export class Passages {
  private at: Element | null = null; // the last match
  private number = -1; // its number

  constructor(private readonly root: HTMLElement) {}

  private all(re: RegExp): Element[] {
    return [...this.root.querySelectorAll(PASSAGES)].filter((e) => !e.querySelector("li, dd, p") && re.test(e.textContent ?? ""));
  }

  next(dir: -1 | 1, re: RegExp | null): boolean {
    const list = re ? this.all(re) : [];
    if (!list.length) return false;
    const was = this.at && list.includes(this.at) ? list.indexOf(this.at) : this.number >= 0 ? Math.min(this.number, list.length - 1) : dir > 0 ? -1 : list.length;
    this.number = (was + dir + list.length) % list.length;
    this.at?.classList.remove("found-here");
    this.at = list[this.number];
    this.at.classList.add("found-here");
    this.at.scrollIntoView({ block: "nearest" });
    return true;
  }

  found(re: RegExp | null): string {
    if (!re) {
      this.at?.classList.remove("found-here");
      this.at = null;
      this.number = -1;
      return "";
    }
    const n = this.all(re).length;
    return n === 0 ? "no match" : `${count(n)} passage${n === 1 ? "" : "s"}`;
  }
}
