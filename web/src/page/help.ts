import { el } from "./dom";

const KEYS: [string, string][] = [
  ["← → ↑ ↓", "move between frames"],
  ["Enter or click", "zoom to a frame"],
  ["Backspace", "zoom out by one frame"],
  ["Esc", "reset the zoom, then the search, then the focus"],
  ["+  −", "zoom in and out around the middle"],
  ["<  >", "move left and right"],
  ["Ctrl + wheel", "zoom around the pointer; Shift + wheel or drag moves"],
  ["/", "search; Enter goes to the next match"],
  ["n  N", "next and previous match"],
  ["i", "flame or icicle: callers below or above"],
  ["t", "threads merged, or a root for each"],
  ["T", "choose threads"],
  ["u", "the frames by which threads start: folded or shown"],
  ["k", "one frame for each function, or one for each kind of code it ran in"],
  ["c", "copy the name of the frame"],
  ["d", "light or dark"],
  ["?", "these keys"],
];

const PAIR: [string, string][] = [["b", "as wide as base, as the middle of both, as new"]];

export function help(pair = false): HTMLDialogElement {
  const keys = pair ? [...KEYS.filter(([k]) => k.toLowerCase() !== "t" && k !== "k"), ...PAIR] : KEYS;
  const d = el("dialog", { class: "help", "aria-label": "Keys" },
    el("div", { class: "head" }, el("h2", {}, "Keys"),
      el("button", { type: "button", class: "quiet close", "aria-label": "Close", click: () => d.close() }, "✕")),
    el("dl", {}, ...keys.flatMap(([k, what]) => [el("dt", {}, el("kbd", {}, k)), el("dd", {}, what)])),
    el("p", {}, "A frame is as wide as what was sampled in it and in what it calls. Frames under a pixel are drawn together, none is left out. The hatched part of a frame is a guess."));
  d.addEventListener("click", (e) => e.target === d && d.close());
  return d;
}
