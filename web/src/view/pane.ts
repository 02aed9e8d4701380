// What stands under a tab.
export interface Pane {
  readonly root: HTMLElement;
  // update brings what is shown up to date; fresh: other samples are chosen, or
  // it was not shown before.
  update(fresh: boolean): void;
  focus(): void;
  // key does what a key means on the tab and says whether it means anything.
  key?(key: string): boolean;
  theme?(dark: boolean): void;
  // next goes to the next thing that the search finds, dir 1, or to the one before, -1, and says
  // whether there is one. Panes that show nothing that can be searched for have no such method.
  next?(dir: -1 | 1): boolean | Promise<boolean>;
  found?(): string; // what the search comes to; "": nothing is searched for, or it is not known
}
