// Reads the output of internal/view/wire.go: columns of numbers as typed arrays that lie in the
// answer itself, so that nothing is copied.

type Column = Uint8Array | Uint32Array | Int32Array | Float32Array | Float64Array;

export interface Message<H> {
  readonly head: H;
  u8(name: string): Uint8Array;
  u32(name: string): Uint32Array;
  i32(name: string): Int32Array;
  f32(name: string): Float32Array;
  f64(name: string): Float64Array;
  has(name: string): boolean;
}

const MAKE: Record<string, (b: ArrayBuffer, at: number, n: number) => Column> = {
  u8: (b, at, n) => new Uint8Array(b, at, n),
  u32: (b, at, n) => new Uint32Array(b, at, n),
  i32: (b, at, n) => new Int32Array(b, at, n),
  f32: (b, at, n) => new Float32Array(b, at, n),
  f64: (b, at, n) => new Float64Array(b, at, n),
};

export function decode<H>(buffer: ArrayBuffer): Message<H> {
  const length = new DataView(buffer).getUint32(0, true);
  const json = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length))) as {
    head: H;
    columns: { name: string; type: string; length: number; at: number }[] | null;
  };
  const columns = new Map<string, Column>();
  for (const c of json.columns ?? []) columns.set(c.name, MAKE[c.type](buffer, 4 + length + c.at, c.length));
  const get = (name: string): Column => {
    const c = columns.get(name);
    if (!c) throw new Error(`the answer has no column ${name}`);
    return c;
  };
  return {
    head: json.head,
    u8: (n) => get(n) as Uint8Array, u32: (n) => get(n) as Uint32Array, i32: (n) => get(n) as Int32Array,
    f32: (n) => get(n) as Float32Array, f64: (n) => get(n) as Float64Array, has: (n) => columns.has(n),
  };
}

// Grown says that the request was about an earlier state of the recording.
export class Grown extends Error {}

// isAborted reports whether a request was cancelled.
export function isAborted(e: unknown): boolean {
  return e instanceof DOMException && e.name === "AbortError";
}

// ask sends a request to candid. An aborted request costs candid nothing any more.
export async function ask<H>(path: string, signal?: AbortSignal): Promise<Message<H>> {
  let answer: Response;
  try {
    answer = await fetch(path, { signal, cache: "no-store" });
  } catch (e) {
    if (signal?.aborted) throw e;
    throw new Error("candid does not answer: it may have been ended. Start candid view again, and open the address that it prints.");
  }
  if (answer.status === 409) throw new Grown("the recording has grown");
  if (!answer.ok) throw new Error((await answer.text()).trim() || `candid answered ${answer.status}`);
  return decode<H>(await answer.arrayBuffer());
}
