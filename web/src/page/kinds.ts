// The purposes of threads: those that run the program, and those with which its VM serves it.

interface Threads { readonly length: number; readonly [i: number]: { readonly pid: number; readonly kind?: string } }

const KINDS: readonly { kind: string; label: string; title: string }[] = [
  { kind: "java", label: "Java", title: "Only threads that run the program's own code, and those of a process that runs Java of which it is not known what they are for (--thread-kind java)" },
  { kind: "dotnet", label: ".NET", title: "Only threads that run the program's own code, without those of the thread pool, and those of a process that runs .NET of which it is not known what they are for (--thread-kind dotnet)" },
  { kind: "pool", label: "Pool", title: "Only threads of .NET's thread pool" },
  { kind: "finalizer", label: "Finalizer", title: "Only the thread that runs finalizers" },
  { kind: "compiler", label: "JIT", title: "Only threads of the VM's compilers" },
  { kind: "gc", label: "GC", title: "Only threads of the garbage collector" },
  { kind: "vm", label: "VM", title: "Only other threads of the VM" },
  { kind: "native", label: "Native", title: "Only threads that neither run managed code nor are the VM's" },
];

export interface KindChoice { readonly value: string; readonly label: string; readonly title: string }

// kindChoices are the kinds that can be told apart, and all; nothing if there is only one kind.
export function kindChoices(threads: Threads): KindChoice[] {
  const there = new Set<string>();
  for (let i = 0; i < threads.length; i++) there.add(threads[i].kind ?? "");
  if (there.size < 2 || !OWN.some((k) => there.has(k))) return [];
  return [{ value: "", label: "All threads", title: "Threads of every kind" },
    ...KINDS.filter((k) => there.has(k.kind)).map((k) => ({ value: k.kind, label: k.label, title: k.title }))];
}

// OWN are the kinds of threads that run a program's own managed code.
const OWN = ["java", "dotnet"];

// isOf returns a function that reports whether a thread is of a kind. A thread of unknown kind,
// in a process that runs managed code, counts as the program's own: one too many is better than one that
// is lost silently. candid's --thread-kind means the same (internal/profile/threads.go).
function isOf(threads: Threads, kind: string): (t: number) => boolean {
  const managed = new Set<number>();
  for (let i = 0; OWN.includes(kind) && i < threads.length; i++) if (threads[i].kind === kind) managed.add(threads[i].pid);
  return (t) => threads[t].kind === kind || (managed.has(threads[t].pid) && !KINDS.some((k) => k.kind === threads[t].kind));
}

// ofKind are the threads of a kind.
export function ofKind(threads: Threads, kind: string): Set<number> {
  const out = new Set<number>();
  const is = isOf(threads, kind);
  for (let i = 0; i < threads.length; i++) if (is(i)) out.add(i);
  return out;
}

// kindOf is the kind all of whose threads, and no others, are chosen; "" if there is none.
export function kindOf(threads: Threads, chosen: (t: number) => boolean): string {
  for (const { kind } of KINDS) {
    const is = isOf(threads, kind);
    let any = false, same = true;
    for (let i = 0; same && i < threads.length; i++) {
      any ||= is(i);
      same = is(i) === chosen(i);
    }
    if (any && same) return kind;
  }
  return "";
}

// labelOf is the label of a kind.
export function labelOf(kind: string): string {
  return KINDS.find((k) => k.kind === kind)?.label ?? kind;
}
