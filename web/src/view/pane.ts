// The content of a tab.
export interface Pane {
  readonly root: HTMLElement;
  // update brings the content up to date; fresh: other samples are chosen, or it was not shown
  // before.
  update(fresh: boolean): void;
  focus(): void;
  // key does what a key means on the tab and reports whether it means anything.
  key?(key: string): boolean;
  theme?(dark: boolean): void;
  // next goes to the next match of the search, dir 1, or to the previous one, -1, and reports
  // whether there is one. Panes with nothing to search have no such method.
  next?(dir: -1 | 1): boolean | Promise<boolean>;
  found?(): string; // the result of the search; "": no search, or not known
}
