// Reads the output of internal/format/html/encode.go, where the layout is described.

import { parse, type Name } from "./flame/label";
import { fromDepth, type Cells, type Tree } from "./flame/tree";

export interface Header {
  readonly version: number;
  readonly title: string;
  readonly command: string;
  readonly host: string;
  readonly start: string;
  readonly duration: number; // seconds
  readonly engine: string;
  readonly describe: string;
  readonly candid: string;
  readonly notes: readonly string[];
  readonly events: readonly { name: string; unit: string; period: number }[];
  readonly coarse: readonly boolean[]; // by event: methods are marked as coarse
  readonly processes: readonly { pid: number; command: string; runtime: string }[];
  readonly threads: readonly { pid: number; tid: number; name: string; os: string; kind?: string; since?: number }[];
  readonly quality: Quality;
  readonly lost: number;
  readonly throttled: number;
  readonly kinds: readonly string[];
  readonly strings: readonly string[];
  readonly funcs: readonly number[];
  readonly split: Split;
  readonly compared?: Compared;
}

// Compared says which of two recordings in one file is which.
export interface Compared {
  readonly names: readonly [string, string];
  readonly second: number; // the first thread of the new one
  readonly normalize: "total" | "time" | "none";
  readonly scale: readonly [number, number]; // of a weight, unless shares are compared
  readonly effective: readonly [number, number]; // how many samples of equal weight carry the same information
  readonly samples: readonly [number, number];
  readonly seconds: readonly [number, number]; // 0: not known
}

export type Split = "none" | "process" | "thread";

export interface Quality {
  readonly samples: number;
  readonly complete: number;
  readonly stitched: number;
  readonly unnamed?: number; // absent in older pages
  readonly heuristic: number;
  readonly truncated: number;
  readonly broken: number;
  readonly reasons: readonly { name: string; samples: number }[];
}

export interface Func {
  readonly name: string;
  readonly raw: string;
  readonly signature: string;
  readonly module: string;
  readonly file: string;
  readonly noName: boolean;
}

export interface Data {
  readonly header: Header;
  readonly funcs: readonly Func[]; // by symbol
  readonly names: Name[]; // by symbol
  readonly kind: Uint8Array; // by symbol
  readonly starts?: Uint8Array; // by symbol: whether threads start by it, as flame.Tree.StartMarks says
  readonly tree: Tree;
  // by node of the tree
  readonly line: Int32Array;
  readonly lines: Int32Array;
  readonly derived: Uint8Array;
  readonly heuristic: Uint8Array;
  readonly stitched: Uint8Array;
  readonly coarse: Uint8Array;
  readonly virtual: Uint8Array;
  readonly samples: ArrayLike<number>; // of the whole recording, including the subtree
  cells: Cells;
}

export async function inflate(base64: string): Promise<Uint8Array> {
  const text = atob(base64.trim());
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

class Reader {
  private at = 0;
  private readonly view: DataView;
  constructor(private readonly bytes: Uint8Array) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  uint32(): number {
    const v = this.view.getUint32(this.at, true);
    this.at += 4;
    return v;
  }

  text(): string {
    const n = this.uint32();
    const s = new TextDecoder().decode(this.bytes.subarray(this.at, this.at + n));
    this.at += n;
    return s;
  }

  // column reads the next column into an array that make returns.
  column<T extends Int32Array | Uint8Array | Float64Array>(make: (n: number) => T): T {
    const n = this.uint32();
    if (n > this.bytes.length) throw new Error("the data is damaged: a column longer than the file");
    const out = make(n);
    const b = this.bytes;
    let p = this.at;
    for (let i = 0; i < n; i++) {
      let c = b[p++];
      let v = c & 0x7f;
      for (let f = 128; c & 0x80; f *= 128) {
        c = b[p++];
        v += (c & 0x7f) * f;
      }
      out[i] = v;
    }
    if (p > b.length) throw new Error("the data is damaged: it ends early");
    this.at = p;
    return out;
  }

  deltas(): Int32Array {
    const out = this.column((n) => new Int32Array(n));
    let last = 0;
    for (let i = 0; i < out.length; i++) out[i] = last += (out[i] >>> 1) ^ -(out[i] & 1);
    return out;
  }
}

const i32 = (n: number) => new Int32Array(n);
const u8 = (n: number) => new Uint8Array(n);
const f64 = (n: number) => new Float64Array(n);

// rooted puts the root, which is not written, before a column.
function rooted<T extends Int32Array | Uint8Array>(a: T, root: number): T {
  const out = new (a.constructor as { new (n: number): T })(a.length + 1);
  out.set(a, 1);
  out[0] = root;
  return out;
}

export function decode(bytes: Uint8Array): Data {
  const r = new Reader(bytes);
  const header = JSON.parse(r.text()) as Header;
  if (header.version !== 1) throw new Error(`the data is of version ${header.version}, this page reads version 1`);
  const func = r.column(i32);
  const kind = r.column(u8);
  const starts = r.column(u8);
  const depth = rooted(r.deltas(), 0);
  const sym = rooted(r.column(i32), -1);
  const line = rooted(r.column(i32), 0);
  const lines = rooted(r.column(i32), 0);
  const [derived, heuristic, stitched, coarse, virtual] = [0, 0, 0, 0, 0].map(() => rooted(r.column(u8), 0));
  const node = r.deltas();
  const cells: Cells = {
    n: node.length, node, thread: r.column(i32), event: r.column(i32), count: r.column(f64), weight: r.column(f64),
  };
  const { funcs, names } = named(header, func, kind);
  const tree = fromDepth(depth, sym);
  return { header, funcs, names, kind, starts, tree, line, lines, derived, heuristic, stitched, coarse, virtual, samples: samplesOf(tree, cells), cells };
}

// samplesOf adds up the samples of all events by node, including the subtree.
export function samplesOf(tree: Tree, cells: Cells): Float64Array {
  const out = new Float64Array(tree.n);
  for (let i = 0; i < cells.n; i++) out[cells.node[i]] += cells.count[i];
  for (let i = tree.n - 1; i > 0; i--) out[tree.parent[i]] += out[i];
  return out;
}

// named gives each symbol its function and the parts of its name.
export function named(header: Header, func: ArrayLike<number>, kind: Uint8Array): { funcs: Func[]; names: Name[] } {
  const all: Func[] = [];
  const s = header.strings;
  for (let i = 0; i < header.funcs.length; i += 6) {
    const [name, raw, signature, module, file, noName] = header.funcs.slice(i, i + 6);
    all.push({ name: s[name], raw: s[raw], signature: s[signature], module: s[module], file: s[file], noName: noName !== 0 });
  }
  const funcs = Array.from(func, (f) => all[f - 1]);
  return { funcs, names: funcs.map((f, i) => parse(f.name, managed(kind[i], f))) };
}

// managed reports whether a name is written pkg.Class.method.
function managed(kind: number, f: Func): boolean {
  return kind >= 3 && kind <= 10 && kind !== 8 && !f.name.includes("::");
}
