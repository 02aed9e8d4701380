// The page: puts the parts together and keeps them in step with the state.

import { decode, inflate, type Split } from "../data";
import { compile, match, matching, step, within } from "../flame/search";
import { withoutStarts } from "../flame/starts";
import { nodeAt, wayOf } from "../flame/way";
import { Chart } from "./chart";
import { Crumbs } from "./crumbs";
import { Detail } from "./detail";
import { copyText, el, segmented } from "./dom";
import { count, percent, value } from "./format";
import { expose } from "./expose";
import { header } from "./header";
import { help } from "./help";
import { kindChoices, kindOf, ofKind } from "./kinds";
import { Legend } from "./legend";
import { Model } from "./model";
import { Key, PairModel, SIDES } from "./pair";
import { initial, read, write, type Side, type State } from "./state";
import { store, stored } from "./stored";
import { Threads } from "./threads";

function start(model: Model): void {
  const whole = model.data;
  const folded = whole.starts ? withoutStarts(whole, whole.starts) : null;
  const h = model.data.header;
  const pair = model instanceof PairModel ? model : null;
  const base = initial(pair ? "none" : h.split, model.first);
  const limits = { threads: h.threads.length, events: h.events.length, kinds: h.kinds.length };
  let state: State = read(location.hash, base, limits);
  let pattern: RegExp | undefined;

  const chart = new Chart(model, {
    zoomed(node) {
      state.zoom = node;
      around();
      save();
    },
    pointed: (node, held) => detail.show(node, state.zoom, state.event, held),
  });
  const detail = new Detail(model, () => void copyName());
  if (pair) detail.numbers = (node) => pair.numbers(node);
  const crumbs = new Crumbs(model, (node) => zoomTo(node));
  const legend = new Legend(model, (kind) => {
    state.kind = kind;
    find();
    save();
  }, (apart) => setTiers(apart));
  const threads = new Threads(model, (hidden) => {
    state.hidden = hidden;
    rebuild();
    save();
  });
  const key = new Key();
  const keys = help(!!pair);

  // The tools.
  const field = el("input", {
    type: "search", id: "search", placeholder: "Search (regular expression)", "aria-label": "Search frames by regular expression",
    "aria-describedby": "found", spellcheck: "false", autocomplete: "off",
  });
  const found = el("output", { id: "found", class: "found", for: "search", "aria-live": "polite" });
  const previous = el("button", { type: "button", class: "quiet", title: "Previous match (Shift+N)", "aria-label": "Previous match", click: () => next(-1) }, "‹");
  const following = el("button", { type: "button", class: "quiet", title: "Next match (N)", "aria-label": "Next match", click: () => next(1) }, "›");
  const orientation = segmented("Orientation", [
    { value: "flame", label: "Flame", title: "Callers below (i)" }, { value: "icicle", label: "Icicle", title: "Callers above (i)" },
  ], (v) => setFlame(v === "flame"));
  const splits = segmented<Split>("Roots", [
    { value: "none", label: "Merged", title: "All threads together (t)" },
    ...(h.processes.length > 1 ? [{ value: "process" as const, label: "By process", title: "A root for each process (t)" }] : []),
    { value: "thread", label: "By thread", title: "A root for each thread (t)" },
  ], setSplit);
  const kindList = kindChoices(h.threads);
  const kinds = segmented("Kinds of threads", kindList, (kind) => {
    const of = ofKind(h.threads, kind);
    state.hidden = new Set(kind ? h.threads.flatMap((_, t) => (of.has(t) ? [] : [t])) : []);
    rebuild();
    save();
  });
  const sides = segmented<Side>("Side", [
    { value: "base", label: "Base", title: "As wide as before: what is gone is there (b)" },
    { value: "both", label: "Both", title: "As wide as the middle of both: what is gone and what is new is there (b)" },
    { value: "new", label: "New", title: "As wide as after: what is new is there (b)" },
  ], setSide);
  const startsButton = el("button", { type: "button", title: "The frames by which every thread and program starts: start_thread, JavaThread::run and such. Folded, stacks begin with what a thread is there for; no sample is left out. (u)",
    click: () => setStarts(!state.starts) }, "Thread starts");
  const threadButton = el("button", { type: "button", title: "Choose threads (Shift+T)", click: () => threads.open(state.hidden, state.event) });
  const events = el("select", { "aria-label": "Event", change: () => {
    state.event = Number(events.value);
    state.zoom = 0;
    rebuild();
    save();
  } }, ...h.events.map((e, i) => el("option", { value: i }, e.name)));
  const themeButton = el("button", { type: "button", class: "quiet icon", title: "Light or dark (d)", "aria-label": "Switch between light and dark", click: () => setDark(!dark) }, "◐");
  const helpButton = el("button", { type: "button", class: "quiet icon", title: "Keys (?)", "aria-label": "Show the keys", click: () => keys.showModal() }, "?");

  const weights = h.events.map((_, e) => model.threadWeight[e].reduce((a, b) => a + b, 0));
  document.body.append(
    pair ? pair.header(el("div", { class: "corner" }, themeButton, helpButton)) : header(h, weights, el("div", { class: "corner" }, themeButton, helpButton)),
    el("div", { class: "tools", role: "toolbar", "aria-label": "View" },
      el("div", { class: "search" }, field, previous, following, found),
      ...(pair ? [sides.root, folded ? startsButton : ""] : [h.events.length > 1 ? events : "", splits.root, kindList.length ? kinds.root : "", h.threads.length > 1 ? threadButton : "", folded ? startsButton : ""]), orientation.root),
    crumbs.root,
    el("main", {}, chart.root),
    el("footer", {}, detail.root, pair ? key.root : legend.root),
    threads.root, keys);

  // Theme: what the system prefers, until it is switched here.
  const prefers = matchMedia("(prefers-color-scheme: dark)");
  let dark = (stored("candid-theme") ?? (prefers.matches ? "dark" : "light")) === "dark";
  function setDark(on: boolean, keep = true): void {
    dark = on;
    document.documentElement.dataset.theme = on ? "dark" : "light";
    chart.setTheme(on);
    legend.paint(chart.theme);
    key.paint(chart.theme);
    if (keep) store("candid-theme", on ? "dark" : "light");
  }
  prefers.addEventListener("change", () => stored("candid-theme") === null && setDark(prefers.matches, false));

  function setFlame(flame: boolean): void {
    state.flame = flame;
    chart.setFlame(flame);
    orientation.set(flame ? "flame" : "icicle");
    crumbs.show(state.zoom);
    save();
  }

  function setSplit(how: Split): void {
    // The reader's position, as far as it exists in the other tree.
    state.split = how;
    state.zoom = 0;
    chart.selected = -1;
    rebuild();
    save();
  }

  // setStarts shows the frames by which threads start, or folds them.
  function setStarts(shown: boolean): void {
    elsewhere(() => (state.starts = shown));
  }

  // setTiers gives a function one frame for each kind of code that it ran in, or one for all.
  function setTiers(apart: boolean): void {
    elsewhere(() => (state.tiers = apart));
  }

  // elsewhere puts frames into another tree. The zoomed node stays if all threads have one root.
  function elsewhere(change: () => void): void {
    const name = (s: number): string => String(model.functionOf(s));
    const ways = [state.zoom, chart.selected].map((i) => (state.split === "none" ? wayOf(model.tree, name, i) : null));
    change();
    rebuild();
    const [zoom, selected] = ways.map((w) => nodeAt(model.tree, name, whole.starts?.map((m) => m & 1) ?? new Uint8Array(0), w));
    state.zoom = Math.max(0, zoom);
    chart.selected = selected;
    chart.fresh(state.zoom);
    around();
    save();
  }

  function setSide(side: Side): void {
    state.side = side;
    rebuild();
    save();
  }

  function zoomTo(node: number): void {
    chart.show(node);
    state.zoom = node;
    around();
    save();
  }

  // around updates everything that depends on the zoomed node.
  function around(): void {
    crumbs.show(state.zoom);
    legend.show(state.zoom, state.event, state.kind);
    detail.show(chart.hovered >= 0 ? chart.hovered : chart.selected, state.zoom, state.event, false);
    tellFound();
  }

  // rebuild updates everything after threads, event or split changed.
  function rebuild(): void {
    const data = folded && !state.starts ? folded : whole;
    if (model.data !== data) model.reset(data);
    legend.tiers.set(state.tiers);
    startsButton.textContent = state.starts ? "Thread starts shown" : "Thread starts folded";
    startsButton.classList.toggle("on", state.starts);
    model.show(state);
    if (pair) chart.change = pair.change;
    sides.set(state.side);
    splits.set(state.split);
    const n = h.threads.length;
    threadButton.textContent = state.hidden.size ? `Threads ${count(n - state.hidden.size)} of ${count(n)}` : `Threads ${count(n)}`;
    threadButton.classList.toggle("on", state.hidden.size > 0);
    kinds.set(state.hidden.size ? kindOf(h.threads, (t) => !state.hidden.has(t)) || "some" : "");
    events.value = String(state.event);
    chart.flame = state.flame;
    orientation.set(state.flame ? "flame" : "icicle");
    chart.fresh(state.zoom);
    find();
  }

  // find marks the matches of the search.
  function find(): void {
    const { re, error } = compile(state.query);
    pattern = re;
    field.setAttribute("aria-invalid", String(!!error));
    if (error) {
      chart.match = null;
      found.textContent = error;
      previous.disabled = following.disabled = true;
      chart.redraw();
      legend.show(state.zoom, state.event, state.kind);
      return;
    }
    let symbols: Uint8Array | null = pattern ? matching(model.searchable, pattern) : null;
    if (state.kind >= 0) {
      symbols ??= new Uint8Array(model.names.length).fill(1);
      symbols.forEach((_, s, a) => {
        if (s >= model.symbols || model.data.kind[s] !== state.kind) a[s] = 0;
      });
    }
    chart.match = symbols && match(model.tree, model.layout, symbols);
    previous.disabled = following.disabled = !chart.match?.nodes;
    around();
    chart.redraw();
  }

  function tellFound(): void {
    const m = chart.match;
    const all = model.values.total[0];
    found.classList.toggle("none", !!m && m.nodes === 0);
    if (!m) {
      if (!field.matches("[aria-invalid=true]")) found.textContent = "";
      return;
    }
    const unit = h.events[state.event]?.unit ?? "count";
    let text = m.nodes === 0 ? "no match" : `${percent(m.total, all)} · ${value(m.total, unit)} in ${count(m.nodes)} frame${m.nodes === 1 ? "" : "s"}`;
    if (state.zoom > 0 && m.nodes) text += ` · ${percent(within(model.tree, model.layout, m.symbols, state.zoom), model.values.total[state.zoom])} of zoomed`;
    found.textContent = text;
  }

  function next(dir: -1 | 1): void {
    if (!chart.match?.nodes) return;
    const from = chart.selected >= 0 ? chart.selected : dir > 0 ? 0 : model.tree.n;
    const to = step(model.tree, model.layout, chart.match.symbols, from, dir);
    if (to >= 0) chart.select(to);
  }

  async function copyName(): Promise<void> {
    if (detail.node < 0) return;
    await copyText(model.nameOf(detail.node));
    const b = detail.root.querySelector("button")!;
    b.textContent = "Copied";
    setTimeout(() => (b.textContent = "Copy name"), 1200);
  }

  // The address.
  let saved = location.hash.replace(/^#/, "");
  function save(): void {
    const hash = write(state, base);
    if (hash === saved) return;
    saved = hash;
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  }
  addEventListener("hashchange", () => {
    const hash = location.hash.replace(/^#/, "");
    if (hash === saved) return;
    saved = hash;
    state = read(hash, base, limits);
    field.value = state.query;
    rebuild();
  });

  let typing = 0;
  field.addEventListener("input", () => {
    clearTimeout(typing);
    typing = window.setTimeout(() => {
      state.query = field.value;
      find();
      save();
    }, 60);
  });
  field.addEventListener("keydown", (e) => {
    if (e.key === "Enter") {
      state.query = field.value;
      find();
      next(e.shiftKey ? -1 : 1);
      save();
    } else if (e.key === "Escape") {
      e.stopPropagation();
      if (field.value) {
        field.value = state.query = "";
        find();
        save();
      }
      chart.canvas.focus();
      e.preventDefault();
    }
  });

  addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return;
    if (e.target instanceof HTMLInputElement || e.target instanceof HTMLSelectElement || e.target instanceof HTMLTextAreaElement) return;
    switch (e.key) {
      case "/":
        field.focus();
        field.select();
        break;
      case "Escape":
        // One step back at a time: zoom, then the highlighted kind, then the focus.
        if (state.zoom > 0) zoomTo(0);
        else if (state.query || state.kind >= 0) {
          field.value = state.query = "";
          state.kind = -1;
          find();
          save();
        } else chart.select(-1);
        break;
      case "0":
        zoomTo(0);
        break;
      case "i":
        setFlame(!state.flame);
        break;
      case "b":
        if (!pair) return;
        setSide(SIDES[(SIDES.indexOf(state.side) + 1) % SIDES.length]);
        break;
      case "t": {
        if (pair) return;
        const order: Split[] = h.processes.length > 1 ? ["none", "process", "thread"] : ["none", "thread"];
        setSplit(order[(order.indexOf(state.split) + 1) % order.length]);
        break;
      }
      case "T":
        if (pair) return;
        threads.open(state.hidden, state.event);
        break;
      case "u":
        if (!folded) return;
        setStarts(!state.starts);
        break;
      case "k":
        if (pair || !model.hasTiers) return;
        setTiers(!state.tiers);
        break;
      case "d":
        setDark(!dark);
        break;
      case "n":
        next(1);
        break;
      case "N":
        next(-1);
        break;
      case "c":
        void copyName();
        break;
      case "?":
        keys.showModal();
        break;
      default:
        // Keys for the graph work unless the focus is in a control of its own.
        if (/^(Arrow|Page|Home|[-+=<>,.]$)/.test(e.key) && e.target !== chart.canvas && (e.target === document.body || e.target === chart.root)) {
          chart.canvas.focus();
          chart.canvas.dispatchEvent(new KeyboardEvent("keydown", { key: e.key }));
          break;
        }
        return;
    }
    e.preventDefault();
  });

  field.value = state.query;
  document.title = `${h.title} · candid`;
  setDark(dark, false);
  rebuild();
  detail.show(-1, 0, 0, false);
  expose(model, chart, () => state);
}

async function main(): Promise<void> {
  try {
    const data = document.getElementById("data")!;
    const bytes = await inflate(data.textContent ?? "");
    data.remove();
    const decoded = decode(bytes);
    start(decoded.header.compared ? new PairModel(decoded) : new Model(decoded));
    document.documentElement.dataset.ready = "1";
  } catch (e) {
    document.body.append(el("p", { class: "failed", role: "alert" },
      `This profile cannot be shown: ${e instanceof Error ? e.message : String(e)}. A current Firefox, Chromium or Safari is needed.`));
    document.documentElement.dataset.ready = "failed";
  }
}

void main();
