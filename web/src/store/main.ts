// The page of a store: its services by CPU time, and the CPU time over days as a strip on which a range
// is chosen. The range is shown below by the page of recordings, in a frame.

import { el } from "../page/dom";
import { earlier, read, shown, ticks, within, write, type Against, type Range, type State } from "./range";

interface About extends Range { readonly name: string; readonly damage: readonly string[] }
interface Service { readonly name: string; readonly cpu: number; readonly samples: number }
interface Capture extends Range { readonly file: string; readonly service: string; readonly size: number; readonly written: boolean }
interface Bars { readonly cpu: readonly number[]; readonly stored: readonly boolean[] }

const HOUR = 3_600_000;
const SPANS: readonly { readonly label: string; readonly ms: number }[] = [
  { label: "5 min", ms: HOUR / 12 }, { label: "1 h", ms: HOUR }, { label: "6 h", ms: 6 * HOUR }, { label: "1 day", ms: 24 * HOUR }, { label: "1 week", ms: 168 * HOUR },
];

let asked = 0; // requests under way
(window as unknown as { candidStore: object }).candidStore = { busy: () => asked > 0 };

async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  asked++;
  try {
    const r = await fetch(path, { signal });
    if (!r.ok) throw new Error((await r.text()).trim() || r.statusText);
    return await r.json() as T;
  } finally {
    asked--;
  }
}

function amount(ns: number): string {
  const s = ns / 1e9;
  return s < 60 ? `${s.toFixed(1)} s` : s < 3600 ? `${(s / 60).toFixed(1)} min` : `${(s / 3600).toFixed(1)} h`;
}

const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const time = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const second = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

function start(about: About): void {
  const stored: Range = { from: about.from, to: about.to };
  let state = read(location.hash, stored);
  let services: readonly Service[] = [];
  let bars: Bars = { cpu: [], stored: [] };
  let captures: readonly Capture[] = [];
  let stripFor = "", servicesFor = "", capturesFor = "", asking = new AbortController();

  const note = el("p", { class: "note", role: "alert", hidden: true });
  const say = (text: string): void => {
    note.textContent = text;
    note.hidden = !text;
  };
  if (about.damage.length) say(`${about.damage.length === 1 ? "A part" : `${about.damage.length} parts`} of the store ${about.damage.length === 1 ? "is" : "are"} damaged: ${about.damage[0]}`);
  const failed = (e: unknown): void => {
    if (!(e instanceof DOMException && e.name === "AbortError")) say(e instanceof Error ? e.message : String(e));
  };

  const range = el("span", { class: "range", "aria-live": "polite" });
  const spans = SPANS.map((s) => el("button", {
    type: "button", title: `Choose ${s.label} around the middle of the range`, click: () => {
      const middle = state.to >= stored.to - 1000 ? stored.to - s.ms / 2 : (state.from + state.to) / 2;
      choose(within({ from: middle - s.ms / 2, to: middle + s.ms / 2 }, stored));
    },
  }, s.label));
  const all = el("button", { type: "button", title: "Choose all that is stored", click: () => choose(stored) }, "All");
  const zoom = (into: boolean): void => set({ view: into ? { from: state.from, to: state.to } : stored, capture: state.capture });
  const against: HTMLSelectElement = el("select", { "aria-label": "Compare with", change: () => set({ against: against.value as Against }) },
    el("option", { value: "" }, "Compare with …"), el("option", { value: "before" }, "the time before"), el("option", { value: "yesterday" }, "yesterday"), el("option", { value: "last-week" }, "last week"));
  const canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": "CPU time over time; drag to choose a range, arrow keys move it" });
  const strip = el("div", { class: "strip" }, canvas);
  const list = el("nav", { "aria-label": "Services" }), taken = el("nav", { "aria-label": "Captures", hidden: true });
  const frame = el("iframe", { title: "The chosen range" });
  document.title = `${about.name} · candid`;
  document.body.replaceChildren(
    el("header", {}, el("h1", { title: about.name }, about.name), ...spans, all,
      el("button", { type: "button", title: "Show only the chosen range on the strip", click: () => zoom(true) }, "Zoom in"),
      el("button", { type: "button", title: "Show all that is stored on the strip", click: () => zoom(false) }, "Zoom out"), against, range),
    note, strip, el("div", { class: "body" }, el("div", { class: "side" }, list, taken), frame));

  const set = (change: Partial<State>): void => {
    state = { ...state, capture: "", ...change };
    const hash = write(state, stored);
    if (`#${hash}` !== location.hash) history.pushState(null, "", `#${hash}`);
    refresh();
  };
  const choose = (r: Range): void => set({ from: r.from, to: r.to });

  const x = (t: number): number => (t - state.view.from) / (state.view.to - state.view.from);
  const draw = (): void => {
    const { width, height } = canvas.getBoundingClientRect(), scale = devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const g = canvas.getContext("2d");
    if (!g) return;
    g.scale(scale, scale);
    const style = getComputedStyle(document.documentElement), color = (n: string): string => style.getPropertyValue(n);
    const foot = 16, top = Math.max(1, ...bars.cpu), w = width / Math.max(bars.cpu.length, 1);
    g.fillStyle = color("--on");
    g.fillRect(x(state.from) * width, 0, Math.max((x(state.to) - x(state.from)) * width, 2), height - foot);
    if (state.against) {
      const from = earlier(state, state.against);
      g.fillStyle = color("--line");
      g.fillRect(x(from) * width, 0, Math.max((x(from + state.to - state.from) - x(from)) * width, 2), height - foot);
    }
    bars.cpu.forEach((v, i) => {
      g.fillStyle = color(bars.stored[i] ? "--accent" : "--line");
      const h = bars.stored[i] ? Math.max(1, (v / top) * (height - foot - 4)) : 1;
      g.fillRect(i * w, height - foot - h, Math.max(w - (w > 4 ? 1 : 0), 1), h);
    });
    g.fillStyle = color("--ink");
    for (const c of captures) {
      const at = x(c.from) * width;
      g.beginPath();
      g.moveTo(at - 4, 0);
      g.lineTo(at + 4, 0);
      g.lineTo(at, 7);
      g.fill();
    }
    g.fillStyle = color("--soft");
    g.font = "11px system-ui, sans-serif";
    const marks = ticks(state.view, width / 90);
    const short = marks.length > 1 && (marks[1] as number) - (marks[0] as number) < 60_000 ? second : time;
    for (const t of marks) {
      const at = new Date(t), midnight = at.getHours() + at.getMinutes() + at.getSeconds() === 0;
      g.fillRect(x(t) * width, height - foot, 1, 4);
      g.fillText(midnight ? day.format(at) : short.format(at), x(t) * width + 3, height - 3);
    }
  };

  const press = (b: HTMLButtonElement, on: boolean): void => b.setAttribute("aria-pressed", String(on));
  const drawServices = (): void => {
    const cpu = services.reduce((sum, s) => sum + s.cpu, 0), samples = services.reduce((sum, s) => sum + s.samples, 0);
    const row = (name: string, label: string, s: Service): HTMLElement => {
      const share = cpu ? s.cpu / cpu : samples ? s.samples / samples : 0;
      const b = el("button", { type: "button", title: label, click: () => set({ service: name }) },
        el("span", {}, label), el("span", { class: "soft" }, cpu ? amount(s.cpu) : String(s.samples)), el("span", {}, `${(100 * share).toFixed(1)}%`));
      b.style.setProperty("--share", `${100 * share}%`);
      press(b, name === state.service && !state.capture);
      return b;
    };
    list.replaceChildren(el("h2", {}, "Services by CPU time"), row("", "All services", { name: "", cpu, samples }), ...services.map((s) => row(s.name, s.name || "(no service)", s)));
  };

  // What is captured after the end of what is stored belongs to the end.
  const until = (r: Range): number => (r.to >= stored.to - 1000 ? r.to + 24 * HOUR : r.to);
  const drawCaptures = (): void => {
    const rows = captures.filter((c) => c.from < until(state) && c.to >= state.from).map((c) => {
      const when = full.format(c.from), long = Math.max(1, Math.round((c.to - c.from) / 1000));
      const b = el("button", { type: "button", disabled: c.written, title: `${c.service}, ${when}${c.written ? ": it is being recorded" : `, ${long} s, ${(c.size / 1e6).toFixed(1)} MB`}: captures/${c.file}`, click: () => set({ capture: c.file }) },
        el("span", {}, state.service ? when : c.service), el("span", { class: "soft" }, state.service ? "" : second.format(c.from)), el("span", {}, c.written ? "…" : `${long} s`));
      press(b, c.file === state.capture);
      return b;
    });
    taken.hidden = !rows.length;
    taken.replaceChildren(el("h2", {}, "Captures"), ...rows);
  };

  const refresh = (): void => {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    range.textContent = `${full.format(state.from)} – ${full.format(state.to)}`;
    SPANS.forEach((s, i) => press(spans[i], Math.abs(state.to - state.from - s.ms) < 1));
    against.value = state.against;
    const times = new URLSearchParams({ from: String(Math.floor(state.from)), to: String(Math.ceil(state.to)) }).toString();
    drawServices();
    if (servicesFor !== times) {
      get<Service[]>(`services?${times}`, signal).then((s) => {
        [services, servicesFor] = [s, times];
        drawServices();
      }, failed);
    }
    const wanted = new URLSearchParams({ from: String(Math.floor(state.view.from)), to: String(Math.ceil(state.view.to)), service: state.service, n: String(Math.min(1000, Math.max(50, Math.floor(canvas.clientWidth / 3)))) }).toString();
    draw();
    if (stripFor !== wanted) {
      get<Bars>(`strip?${wanted}`, signal).then((b) => {
        [bars, stripFor] = [b, wanted];
        draw();
      }, failed);
    }
    const reach: Range = { from: Math.min(state.from, state.view.from), to: Math.max(until(state), until(state.view)) };
    const near = new URLSearchParams({ from: String(Math.floor(reach.from)), to: String(Math.ceil(reach.to)), service: state.service }).toString();
    drawCaptures();
    if (capturesFor !== near) {
      get<Capture[]>(`captures?${near}`, signal).then((c) => {
        [captures, capturesFor] = [c, near];
        drawCaptures();
        draw();
      }, failed);
    }
    const src = shown(state);
    if (frame.getAttribute("src") !== src) frame.setAttribute("src", src);
  };

  // A range is drawn with the mouse; a click chooses as much around it as was chosen before.
  let from: number | null = null;
  const timeAt = (e: PointerEvent): number => {
    const r = canvas.getBoundingClientRect();
    return state.view.from + Math.min(Math.max((e.clientX - r.left) / r.width, 0), 1) * (state.view.to - state.view.from);
  };
  canvas.addEventListener("pointerdown", (e) => {
    canvas.setPointerCapture(e.pointerId);
    from = timeAt(e);
  });
  const drawn = (e: PointerEvent): Range => ({ from: Math.min(from!, timeAt(e)), to: Math.max(from!, timeAt(e)) });
  canvas.addEventListener("pointermove", (e) => {
    if (from === null) return;
    const kept = state;
    state = { ...state, ...drawn(e) };
    draw();
    state = kept;
  });
  canvas.addEventListener("pointerup", (e) => {
    if (from === null) return;
    const r = drawn(e), half = (state.to - state.from) / 2;
    from = null;
    const least = (4 * (state.view.to - state.view.from)) / canvas.clientWidth;
    choose(r.to - r.from > Math.max(least, 1000) ? r : within({ from: r.from - half, to: r.from + half }, stored));
  });
  canvas.addEventListener("keydown", (e) => {
    const by = e.key === "ArrowLeft" ? -1 : e.key === "ArrowRight" ? 1 : 0;
    if (!by) return;
    e.preventDefault();
    const step = (by * (state.to - state.from)) / 2;
    choose(within({ from: state.from + step, to: state.to + step }, stored));
  });
  addEventListener("popstate", () => {
    state = read(location.hash, stored);
    refresh();
  });
  addEventListener("resize", draw);
  refresh();
  document.documentElement.dataset.ready = "1";
}

get<About>("about").then((about) => {
  if (about.to > about.from) start(about);
  else document.body.replaceChildren(el("p", { class: "empty" }, `Nothing is stored in ${about.name}.`));
}, (e: unknown) => {
  document.body.replaceChildren(el("p", { class: "empty" }, e instanceof Error ? e.message : String(e)));
});
