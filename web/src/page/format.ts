// Numbers as people read them.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export function count(n: number): string {
  return whole.format(n);
}

// percent formats a share with as many digits as are meaningful, and never as 0 for something or
// as 100 for less than all.
export function percent(part: number, all: number): string {
  if (all <= 0 || part <= 0) return "0 %";
  const p = (100 * part) / all;
  if (p >= 100 - 1e-9) return "100 %";
  if (p > 99.99) return "> 99.99 %";
  if (p < 0.01) return "< 0.01 %";
  return `${p >= 99.9 || p < 1 ? p.toFixed(2) : p.toFixed(1)} %`;
}

export function seconds(s: number): string {
  if (s <= 0) return "";
  if (s < 1) return `${trim(s * 1000)} ms`;
  if (s < 120) return `${trim(s)} s`;
  const m = Math.floor(s / 60);
  if (m < 120) return `${m} min ${Math.round(s % 60)} s`;
  return `${Math.floor(m / 60)} h ${m % 60} min`;
}

// value formats an amount of an event in its unit.
export function value(v: number, unit: string): string {
  switch (unit) {
    case "nanoseconds":
    case "ns": {
      if (v === 0) return "0 s";
      if (v >= 1e9) return `${trim(v / 1e9)} s`;
      if (v >= 1e6) return `${trim(v / 1e6)} ms`;
      if (v >= 1e3) return `${trim(v / 1e3)} µs`;
      return `${trim(v)} ns`;
    }
    case "bytes": {
      for (const [n, u] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]] as const) {
        if (v >= n) return `${trim(v / n)} ${u}`;
      }
      return `${count(v)} B`;
    }
    case "":
    case "count":
      return count(v);
  }
  return `${count(v)} ${unit}`;
}

function trim(v: number): string {
  if (v >= 100) return whole.format(v);
  return v >= 10 ? v.toFixed(1) : v.toFixed(2);
}

// began distinguishes a thread from another one of the same number and name.
export function began(since?: number): string {
  return since ? ` · from ${value(since, "nanoseconds")}` : "";
}

export function when(iso: string): string {
  const d = new Date(iso);
  if (!iso || Number.isNaN(d.getTime())) return "";
  const two = (n: number) => String(n).padStart(2, "0");
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

// options of java that say nothing about what it runs; those of the second are followed by a
// word.
const QUIET = /^-(X|D|agent|javaagent|ea|esa|da|server|client|verbose|-add-|-enable-|-illegal-|-show|-limit-modules=)/;
const QUIET_PAIR = /^(-cp|-classpath|--class-path|-p|--module-path|--upgrade-module-path|--patch-module)$/;

// commandLine shortens a command to what distinguishes it from others: a program without its
// folder; for java, what it runs comes first.
export function commandLine(command: string): string {
  const m = /^(?:\S*[/\\])?([^\s/\\]+)(?=\s|$)(.*)$/s.exec(command);
  const java = !!m && /^javaw?(\.exe)?$/.test(m[1]);
  if (!m || !/^(\/|[A-Za-z]:\\)/.test(command) && !(java && command.startsWith(m[1]))) return command;
  if (!java) return m[1] + m[2];
  const words = m[2].split(/\s+/).filter(Boolean);
  let at = 0;
  while (at < words.length && (QUIET.test(words[at]) || QUIET_PAIR.test(words[at]))) at += QUIET_PAIR.test(words[at]) ? 2 : 1;
  return at < words.length ? [m[1], ...words.slice(at)].join(" ") : m[1] + m[2];
}
