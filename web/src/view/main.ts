// The page of candid view: tabs over one recording, which the app keeps in step.

import { copyText, el, keepFocus } from "../page/dom";
import { commandLine, count, seconds } from "../page/format";
import { AboutPane } from "./about";
import { App, type Change } from "./app";
import { Bar } from "./bar";
import { EventsPane } from "./events";
import { FlamePane } from "./flame";
import { HeatmapPane } from "./heatmap";
import { help } from "./help";
import { Menu } from "./menu";
import type { Sums } from "./methods";
import type { Pane } from "./pane";
import { TABS, type Tab } from "./state";
import { Strip } from "./strip";
import { CallersPane } from "./callers";
import { CallTreePane } from "./calltree";
import { MethodsPane } from "./methodlist";
import { ThreadsPane } from "./threads";
import { TimelinePane } from "./timeline";
import { ask } from "./wire";

const LABELS: Record<Tab, string> = {
  flame: "Flame graph", tree: "Call tree", methods: "Methods", callers: "Callers", timeline: "Timeline", heatmap: "Heatmap", threads: "Threads", events: "Events", about: "About this recording",
};

const toast = el("div", { class: "toast", role: "status", hidden: true });
const alert = el("div", { class: "alert", role: "alert", hidden: true });

// clock formats a duration in whole seconds.
function clock(s: number): string {
  const n = Math.max(0, Math.floor(s));
  return n < 120 ? `${n} s` : seconds(n);
}

let lastCopied = "";

async function copy(text: string): Promise<void> {
  lastCopied = text;
  await copyText(text);
  toast.textContent = "Copied";
  toast.hidden = false;
  setTimeout(() => (toast.hidden = true), 1500);
}

function stored(): string | null {
  try {
    return localStorage.getItem("candid-theme");
  } catch {
    return null;
  }
}

let ticking = 0; // updates how long the recording has been running

// build makes the page for the recording that the app holds.
function build(app: App): void {
  const h = app.header;
  const menu = new Menu(app, (text) => void copy(text));
  const keys = help();
  const flame = new FlamePane(app, menu, (text) => void copy(text));
  const panes: Record<Tab, Pane> = {
    flame, tree: new CallTreePane(app, menu), methods: new MethodsPane(app, menu), callers: new CallersPane(app, menu),
    timeline: new TimelinePane(app, menu), heatmap: new HeatmapPane(app), threads: new ThreadsPane(app, menu), events: new EventsPane(app), about: new AboutPane(app),
  };
  const callers = panes.callers as CallersPane, tree = panes.tree as CallTreePane;
  const next = (dir: -1 | 1): void => void (async () => {
    const { tab } = app.state;
    await panes[tab].next?.(dir);
    if (tab === app.state.tab) bar.tell(panes[tab].found?.() ?? "");
  })();
  const bar = new Bar(app, next, () => void copy(location.href));
  const strip = new Strip(app);
  const drawn = new Map<Tab, number>(); // the generation that a tab shows

  const tabs = TABS.map((t) => el("button", { type: "button", role: "tab", id: `tab-${t}`, "aria-controls": `pane-${t}`, "data-label": LABELS[t], click: () => app.set({ tab: t }) }, LABELS[t]));
  const list = el("div", { class: "tabs", role: "tablist", "aria-label": "Views" }, ...tabs);
  list.addEventListener("keydown", (e) => {
    const i = TABS.indexOf(app.state.tab);
    const to = e.key === "ArrowRight" ? i + 1 : e.key === "ArrowLeft" ? i - 1 : e.key === "Home" ? 0 : e.key === "End" ? TABS.length - 1 : -1;
    if (to < 0 && e.key !== "ArrowLeft") return;
    const n = (to + TABS.length) % TABS.length;
    app.set({ tab: TABS[n] });
    tabs[n].focus();
    e.preventDefault();
    e.stopPropagation();
  });
  const stage = el("main", {});
  for (const t of TABS) {
    const p = panes[t].root;
    p.id = `pane-${t}`;
    p.setAttribute("role", "tabpanel");
    p.setAttribute("aria-labelledby", `tab-${t}`);
    p.hidden = true;
    stage.append(p);
  }

  const prefers = matchMedia("(prefers-color-scheme: dark)");
  let dark = (stored() ?? (prefers.matches ? "dark" : "light")) === "dark";
  const setDark = (on: boolean, keep = true): void => {
    dark = on;
    document.documentElement.dataset.theme = on ? "dark" : "light";
    flame.theme(on);
    strip.paint();
    for (const t of TABS) if (t !== "flame") panes[t].theme?.(on);
    if (!keep) return;
    try {
      localStorage.setItem("candid-theme", on ? "dark" : "light");
    } catch {
      // The browser stores nothing: the choice lasts as long as the page.
    }
  };
  prefers.onchange = () => stored() === null && setDark(prefers.matches, false);

  // A growing recording has a new header each time.
  const facts = (): string[] => {
    const h = app.header;
    if (h.parts) return h.parts.map((p, i) => `${i ? "after" : "before"} ${[p.processes.length === 1 ? p.processes[0].runtime : "", seconds(p.duration), p.engine, p.lost ? `${count(p.lost)} lost` : ""].filter(Boolean).join(", ")}`);
    return [h.growing ? `recording, ${clock(app.elapsed / 1e9)}` : h.stopped ? "not followed to its end" : "", h.processes.length === 1 ? [h.processes[0].runtime, `pid ${h.processes[0].pid}`].filter(Boolean).join(" · ") : `${count(h.processes.length)} processes`,
    h.host, h.growing ? "" : seconds(h.duration), h.engine, h.lost ? `${count(h.lost)} lost` : ""].filter(Boolean);
  };
  const factLine = el("p", { class: "facts", "aria-live": "off" });
  const tellFacts = (): void => factLine.replaceChildren(...facts().map((f) => el("span", { class: f.startsWith("recording, ") ? "fact live" : "fact" }, f)));
  clearInterval(ticking);
  if (h.growing) ticking = window.setInterval(tellFacts, 1000);
  tellFacts();
  // With several files, one is shown, or two are compared.
  const open = (recording: number, against: number): void => {
    const q = new URLSearchParams({ recording: String(recording), tab: app.state.tab });
    if (against >= 0 && against !== recording) q.set("against", String(against));
    for (const f of app.state.focus) q.append("focus", f);
    for (const f of app.state.ignore) q.append("ignore", f);
    if (app.state.query) q.set("search", app.state.query);
    if (app.state.starts !== app.header.whole) q.set("starts", app.state.starts ? "shown" : "fold");
    toast.textContent = against >= 0 ? "Comparing…" : "Reading…";
    toast.hidden = false;
    location.hash = q.toString();
  };
  const { recording, against } = app.state;
  const choice = (label: string, chosen: number, none: string, choose: (n: number) => void): HTMLSelectElement => {
    const select: HTMLSelectElement = el("select", { "aria-label": label, change: () => choose(Number(select.value)) },
      ...(none ? [el("option", { value: -1 }, none)] : []), ...names.map((n, i) => (none && i === recording ? "" : el("option", { value: i }, n))));
    select.value = String(chosen);
    select.title = app.names[chosen] ?? "";
    return select;
  };
  const bases = app.names.map((n) => n.slice(n.lastIndexOf("/") + 1));
  const names = new Set(bases).size === bases.length ? bases : app.names;
  const one = choice("Recording", recording, "", (n) => open(n, n === against ? recording : against));
  const other = choice("Compare with", against, against < 0 ? "Compare with…" : "compare with nothing", (n) => open(recording, n));
  const recordings = app.names.length < 2 ? "" : el("span", { class: "files", role: "group", "aria-label": "Files" },
    ...(against < 0 ? [one, other] : [other, "→", one, el("button", { type: "button", title: "Take the one for the other", click: () => open(against, recording) }, "Swap")]));

  keepFocus(document.body, () => document.body.replaceChildren(
    el("header", { class: "slim" },
      el("h1", { class: against < 0 ? "" : "offscreen", title: h.command || h.title }, h.pair ? h.name : commandLine(h.title)),
      recordings,
      factLine,
      el("div", { class: "corner" }, ...bar.takeaway,
        el("button", { type: "button", class: "quiet icon", title: "Light or dark (d)", "aria-label": "Switch between light and dark", click: () => setDark(!dark) }, "◐"),
        el("button", { type: "button", class: "quiet icon", title: "Keys (?)", "aria-label": "Show the keys", click: () => keys.showModal() }, "?"))),
    list, bar.root, strip.root, alert, stage, menu.root, keys, toast), () => strip.root);

  const show = (): void => {
    const { tab } = app.state;
    TABS.forEach((t, i) => {
      const on = t === tab;
      tabs[i].setAttribute("aria-selected", String(on));
      tabs[i].tabIndex = on ? 0 : -1;
      panes[t].root.hidden = !on;
      if (on) into(list, tabs[i]);
    });
    if (app.ready) { // otherwise it is requested
      const fresh = drawn.get(tab) !== app.generation;
      drawn.set(tab, app.generation);
      panes[tab].update(fresh);
    }
    bar.update();
    bar.steps(!!panes[tab].next && !!app.pattern);
    bar.tell(panes[tab].found?.() ?? "");
    void strip.update();
    document.documentElement.dataset.generation = String(app.generation);
  };
  app.onChange = (_: Change) => show();
  app.onFound = () => bar.tell(panes[app.state.tab].found?.() ?? "");

  app.onKey = (e: KeyboardEvent): void => {
    if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]") || !menu.root.hidden) return;
    const typing = e.target instanceof HTMLInputElement && e.target.type !== "checkbox" && e.target.type !== "radio";
    if (typing || e.target instanceof HTMLSelectElement || e.target instanceof HTMLTextAreaElement) return;
    if (e.key === "/") {
      bar.field.focus();
      bar.field.select();
    } else if (e.key === "d") setDark(!dark);
    else if (e.key === "u" && app.header.starts) app.set({ starts: !app.state.starts });
    else if (e.key === "w" && app.header.skid) app.set({ raw: !app.state.raw });
    else if (e.key === "?") keys.showModal();
    else if ((e.key === "n" || e.key === "N") && panes[app.state.tab].next) next(e.key === "n" ? 1 : -1);
    else if (e.key >= "1" && e.key <= String(TABS.length)) {
      app.set({ tab: TABS[Number(e.key) - 1] });
      panes[app.state.tab].focus();
    } else if ((e.target === document.body || panes[app.state.tab].root.contains(e.target as Node)) && panes[app.state.tab].key?.(e.key)) {
      // The tab handled it.
    } else if (e.key === "Escape" && app.state.query) app.set({ query: "" });
    else return;
    e.preventDefault();
  };
  toast.hidden = true;
  setDark(dark, false);
  show();
  expose(app, flame, tree, panes.methods as MethodsPane, callers, panes.heatmap as HeatmapPane, panes.timeline as TimelinePane);
}

// into scrolls a list sideways until one of its children is visible.
function into(list: HTMLElement, child: HTMLElement): void {
  const [l, c] = [list.getBoundingClientRect(), child.getBoundingClientRect()];
  if (c.left < l.left) list.scrollLeft -= l.left - c.left;
  else if (c.right > l.right) list.scrollLeft += c.right - l.right;
}

// expose lets scripts and tests ask the page what it shows.
function expose(app: App, flame: FlamePane, tree: CallTreePane, methods: MethodsPane, callers: CallersPane, heatmap: HeatmapPane, timeline: TimelinePane): void {
  const list = (s: Sums | null): unknown[] => Array.from(app.methods.symbol, (symbol, m) => ({
    name: app.nameOf(symbol), module: app.model.data.funcs[symbol].module, kind: app.header.kinds[s?.kind[m] ?? 0],
    self: s?.self[m] ?? 0, total: s?.total[m] ?? 0, selfSamples: s?.count[m] ?? 0, samples: s?.samples[m] ?? 0,
  })).filter((m) => m.samples > 0);
  const view = {
    state: () => ({ ...app.state, hidden: [], threads: [...app.state.threads], states: [...app.state.states] }),
    set: (change: Record<string, unknown>) => app.set({
      ...change, ...(change.threads ? { threads: new Set(change.threads as number[]) } : {}), ...(change.states ? { states: new Set(change.states as string[]) } : {}),
    }),
    busy: () => app.busy || methods.busy || tree.busy || callers.busy || callers.sandwich.busy,
    generation: () => app.generation,
    chosen: () => ({ all: app.chosen.all, chosen: app.chosen.chosen, quality: app.chosen.quality, states: app.chosen.states }),
    methods: async () => list((await app.sums.ask()).now),
    compared: () => app.compared,
    byChance: (after: number, before: number) => app.difference.byChance(after, before),
    changes: () => Array.from(flame.chart.change ?? []),
    before: async () => ({ chosen: app.chosen.before, methods: list((await app.sums.ask()).before) }),
    threads: () => app.header.threads.map((t, i) => ({ name: t.name, tid: t.tid, samples: app.chosen.threadCount[i], weight: app.chosen.threadWeight[i] })),
    sandwich: () => callers.sandwich.halves(),
    rows: (tab: string) => (tab === "tree" ? tree : callers).listed(),
    shown: (tab: string) => (tab === "tree" ? tree : callers).chosenWay(),
    way: (i: number) => {
      const out: string[] = [];
      for (let at = i; at > 0; at = app.model.tree.parent[at]) out.unshift(app.model.nameOf(at));
      return out;
    },
    end: () => app.header.end,
    heatmap: () => heatmap.shown(),
    timeline: () => timeline.compared(),
    copied: () => lastCopied,
    nodes: () => app.model.tree.n,
    matched: () => flame.chart.match && { nodes: flame.chart.match.nodes, total: flame.chart.match.total },
    select: (i: number) => flame.chart.select(i),
    hottest: () => Array.from(app.model.values.self).reduce((best, v, i, self) => (v > self[best] ? i : best), 0),
    rowAt: (i: number) => flame.chart.rowAt(i),
    name: (i: number) => app.model.nameOf(i),
    // paint draws the flame graph at once, n times, and returns the milliseconds of each.
    paint: (n = 1) => Array.from({ length: n }, () => {
      const start = performance.now();
      flame.chart.paint();
      flame.chart.canvas.getContext("2d")!.getImageData(0, 0, 1, 1);
      return performance.now() - start;
    }),
  };
  (window as unknown as { candid: typeof view }).candid = view;
}

async function main(): Promise<void> {
  alert.hidden = true;
  document.body.append(el("p", { class: "loading", role: "status" }, "Reading the recording…"));
  try {
    const app = new App((await ask<string[]>("recordings")).head);
    app.onError = (message) => {
      const stopped = app.header?.stopped;
      alert.textContent = message || (stopped ? `What is recorded from now on does not come to this page: ${stopped}` : "");
      alert.hidden = !alert.textContent;
    };
    app.onLoad = () => build(app);
    addEventListener("hashchange", () => void app.moved());
    addEventListener("keydown", (e) => app.onKey(e));
    await app.load(location.hash);
    document.documentElement.dataset.ready = "1";
  } catch (e) {
    document.body.replaceChildren(el("p", { class: "failed", role: "alert" }, e instanceof Error ? e.message : String(e)));
    document.documentElement.dataset.ready = "failed";
  }
}

void main();
