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
}
