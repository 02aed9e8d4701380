import { el } from "../page/dom";

const KEYS: [string, string][] = [
  ["1 … 9", "the tabs"],
  ["/", "search; Enter goes to the next match, Esc leaves"],
  ["Tab", "from control to control; arrow keys within tabs, tables and graphs"],
  ["← → ↑ ↓", "between frames or rows; → opens a row, ← closes it"],
  ["Enter", "zoom to a frame; callers of a row"],
  ["m", "what can be done with the method: focus, leave out, merge, one frame for its package, show it in any view, copy"],
  ["Backspace", "zoom out by one frame"],
  ["Esc", "one step back: zoom, search, a stretch of time"],
  ["Space", "choose a thread in the threads and the timeline, Enter it alone; a cell of the heatmap"],
  ["Shift + arrow", "where the chosen stretch of time ends: in the strip, the timeline, the heatmap"],
  ["+  −  <  >", "zoom and move in the flame graph, the timeline and the heatmap"],
  ["n  N", "next and previous match"],
  ["i", "flame or icicle"],
  ["t", "threads merged, or a root for each"],
  ["u", "the frames by which threads start: folded or shown"],
  ["w", "samples that the kernel delivered late: with the function whose time it was, or where they came"],
  ["k", "flame graph: one frame for each function, or one for each kind of code it ran in"],
  ["d", "light or dark"],
  ["?", "these keys"],
];

export function help(): HTMLDialogElement {
  const d = el("dialog", { class: "help", "aria-label": "Keys" },
    el("div", { class: "head" }, el("h2", {}, "Keys"),
      el("button", { type: "button", class: "quiet close", "aria-label": "Close", click: () => d.close() }, "✕")),
    el("dl", {}, ...KEYS.flatMap(([k, what]) => [el("dt", {}, el("kbd", {}, k)), el("dd", {}, what)])),
    el("p", {}, "Drag over the strip of time, the timeline or the heatmap to choose a stretch of time: every view then shows only that. A right click on a method, anywhere, says what can be done with it. Every filter is a chip that can be removed, and the address holds all of it. A chosen stretch of time can be kept as what another one is compared with."));
  d.addEventListener("click", (e) => e.target === d && d.close());
  return d;
}
