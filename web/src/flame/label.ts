// The text on a frame, by the room that there is: method and class before everything else, then
// the package, then the rest.

export interface Name {
  readonly full: string;
  readonly short: number; // where the class begins: the part before it is dimmed or left out
  readonly method: number; // where the method begins
  readonly end: number; // where the method ends: parameters follow
}

// parse finds the parts of a name: pkg.Class.method, ns::Class::method(args), one word, or
// path/module+0x1f if there is no symbol.
export function parse(full: string, managed: boolean): Name {
  if (full.startsWith("[")) return { full, short: 0, method: 0, end: full.length };
  if (/\+0x[0-9a-f]+$/.test(full)) {
    const module = full.lastIndexOf("/") + 1; // dots in it, as in libc.so.6, separate nothing
    return { full, short: module, method: module, end: full.length };
  }
  if (managed) {
    const paren = full.indexOf("(");
    const end = paren > 0 ? paren : full.length;
    const method = full.lastIndexOf(".", end - 1) + 1;
    const short = method > 1 ? full.lastIndexOf(".", method - 2) + 1 : 0;
    return { full, short, method, end };
  }
  const go = parseGo(full);
  if (go) return go;
  // Outside of < > and ( ) only; "operator<" and the like end the search early,
  // which shows more of the name, never a wrong part.
  let round = 0;
  let angle = 0;
  let end = full.length;
  let method = 0;
  let short = 0;
  for (let i = 0; i < full.length; i++) {
    const c = full[i];
    if (c === "<") angle++;
    else if (c === ">") angle = Math.max(0, angle - 1);
    else if (c === "(" && angle === 0) {
      if (round++ === 0 && full[i - 1] !== " " && !full.startsWith("(anonymous", i)) {
        end = i;
        break;
      }
    } else if (c === ")") round = Math.max(0, round - 1);
    else if (c === ":" && full[i + 1] === ":" && angle === 0 && round === 0) {
      short = method;
      method = i + 2;
      i++;
    } else if (c === " " && angle === 0 && round === 0 && full[i + 1] !== "(" && full.indexOf("(", i) > 0 && !full.slice(0, i).endsWith("operator")) {
      short = method = i + 1; // after a return type, which only a name with parameters has
    }
  }
  if (method >= full.length) return { full, short: 0, method: 0, end: full.length };
  return { full, short, method, end };
}

// parseGo finds the parts of a name given by Go's compiler: path/pkg.Func,
// path/pkg.(*Type).Method, path/pkg.Func[go.shape.int].func1; null for any other name. C
// compilers append words like .cold and .part.0 to a name.
function parseGo(full: string): Name | null {
  if (!/^[^\s:<>()]+\.(\(\*?[^()]+\)\.)?[^\s:<>()]+$/.test(full) || /\.(cold|part|constprop|isra|lto_priv|localalias|llvm)(\.|$)/.test(full)) return null;
  const bracket = full.search(/[[(]/);
  const short = full.lastIndexOf("/", bracket < 0 ? full.length : bracket) + 1;
  let method = 0; // after the last dot outside of brackets
  for (let i = short, deep = 0; i < full.length; i++) {
    const c = full[i];
    if (c === "[" || c === "(") deep++;
    else if (c === "]" || c === ")") deep--;
    // A function inside a function is known by the outer one.
    else if (c === "." && deep === 0 && !/^(func|gowrap|deferwrap)?\d+(\.|$)/.test(full.slice(i + 1, i + 24))) method = i + 1;
  }
  return method > short && method < full.length ? { full, short, method, end: full.length } : null;
}

export interface Label {
  readonly dim: string; // written first, dimmed
  readonly text: string;
}

const NONE: Label = { dim: "", text: "" };

// fit returns the label for a name with room for n characters.
export function fit(name: Name, n: number): Label {
  if (n < 3) return NONE;
  const { full, short, method, end } = name;
  if (full.length <= n) return { dim: full.slice(0, short), text: full.slice(short) };
  const whole = full.slice(short, end);
  if (end <= n) return { dim: full.slice(0, short), text: whole };
  if (whole.length <= n) {
    const room = n - whole.length;
    // As much of the package as fits, cut at its left.
    return room >= 5 ? { dim: "…" + full.slice(short - (room - 1), short), text: whole } : { dim: "", text: whole };
  }
  const word = full.slice(method, end);
  if (word.length <= n) {
    const room = n - word.length;
    return room >= 9 ? { dim: "", text: "…" + full.slice(method - (room - 1), end) } : { dim: "", text: word };
  }
  return { dim: "", text: word.slice(0, n - 1) + "…" };
}

// columns is the number of columns of a fixed-width font that s takes: most East Asian characters
// and pictographs take two.
export function columns(s: string): number {
  let n = 0;
  for (const c of s) {
    const p = c.codePointAt(0)!;
    n += p >= 0x1100 && (p <= 0x115f || (p >= 0x2e80 && p <= 0xa4cf) || (p >= 0xac00 && p <= 0xd7a3) ||
      (p >= 0xf900 && p <= 0xfaff) || (p >= 0xfe30 && p <= 0xfe6f) || (p >= 0xff00 && p <= 0xff60) || p >= 0x1f300) ? 2 : 1;
  }
  return n;
}
