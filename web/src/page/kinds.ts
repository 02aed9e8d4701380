// What threads are for: those that run the program, and those by which its VM serves it.

interface Threads { readonly length: number; readonly [i: number]: { readonly kind?: string } }

const KINDS: readonly { kind: string; label: string; title: string }[] = [
  { kind: "java", label: "Java", title: "Only threads that run the program's own code" },
  { kind: "compiler", label: "JIT", title: "Only threads of the VM's compilers" },
  { kind: "gc", label: "GC", title: "Only threads of the garbage collector" },
  { kind: "vm", label: "VM", title: "Only other threads of the VM" },
  { kind: "native", label: "Native", title: "Only threads that neither run Java nor are the VM's" },
];

export interface KindChoice { readonly value: string; readonly label: string; readonly title: string }

// kindChoices are the kinds that can be told apart, and all; nothing if there is one kind only.
export function kindChoices(threads: Threads): KindChoice[] {
  const there = new Set<string>();
  for (let i = 0; i < threads.length; i++) there.add(threads[i].kind ?? "");
  if (there.size < 2 || !there.has("java")) return [];
  return [{ value: "", label: "All threads", title: "Threads of every kind" },
    ...KINDS.filter((k) => there.has(k.kind)).map((k) => ({ value: k.kind, label: k.label, title: k.title }))];
}

// ofKind are the threads of a kind.
export function ofKind(threads: Threads, kind: string): Set<number> {
  const out = new Set<number>();
  for (let i = 0; i < threads.length; i++) if (threads[i].kind === kind) out.add(i);
  return out;
}

// kindOf is the kind all of whose threads are chosen, and no others; "": there is none.
export function kindOf(threads: Threads, chosen: (t: number) => boolean): string {
  let kind: string | undefined;
  for (let i = 0; i < threads.length && kind === undefined; i++) if (chosen(i)) kind = threads[i].kind ?? "";
  if (!kind) return "";
  for (let i = 0; i < threads.length; i++) if ((threads[i].kind === kind) !== chosen(i)) return "";
  return kind;
}

// labelOf is how a kind is called.
export function labelOf(kind: string): string {
  return KINDS.find((k) => k.kind === kind)?.label ?? kind;
}
