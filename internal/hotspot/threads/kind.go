package threads

import (
	"strings"
)

// Kind is what a thread of a Java process is for.
type Kind uint8

// The kinds.
const (
	KindNative   Kind = iota // not the VM's, as far as can be told
	KindJava                 // runs Java code
	KindCompiler             // compiles Java code
	KindGC                   // collects garbage
	KindVM                   // does something else for the VM
	KindUnknown              // the VM could not be asked while the thread was there
)

var threadKinds = [...]string{"native", "java", "compiler", "gc", "vm", ""}

// String returns the name of the kind for display and files; KindUnknown is "".
func (k Kind) String() string {
	if int(k) < len(threadKinds) {
		return threadKinds[k]
	}
	return threadKinds[KindNative]
}

// namedThreads are the VM's names for its own threads: those in its list of Java threads by their
// Java name, the others by the part of their name that the kernel shows. From 26 on the VM takes
// the middle out of a name that is too long for the kernel (os/linux/os_linux.cpp), so seven
// letters must suffice.
var namedThreads = []struct {
	prefix string
	kind   Kind
}{
	{"C1 Comp", KindCompiler}, {"C2 Comp", KindCompiler}, {"JVMCI", KindCompiler}, {"C1 Dyna", KindCompiler}, {"C2 Dyna", KindCompiler},
	{"GC Thre", KindGC}, {"GC task", KindGC}, {"G1 ", KindGC}, {"Gang wo", KindGC}, {"Concurr", KindGC}, {"ParGC", KindGC},
	{"Surroga", KindGC}, {"ZDriver", KindGC}, {"ZWorker", KindGC}, {"ZDirect", KindGC}, {"ZStat", KindGC}, {"ZUncomm", KindGC},
	{"ZUnmapp", KindGC}, {"XDriver", KindGC}, {"XWorker", KindGC}, {"XDirect", KindGC}, {"XStat", KindGC}, {"XUncomm", KindGC},
	{"XUnmapp", KindGC}, {"Shenand", KindGC}, {"StrDedup", KindGC}, {"RuntimeWorker", KindGC}, {"Epsilon", KindGC},
	{"VM Thre", KindVM}, {"VM Peri", KindVM}, {"Signal Dispatcher", KindVM}, {"Service Thread", KindVM}, {"Monitor Deflation Thread", KindVM},
	{"Notification Thread", KindVM}, {"Sweeper thread", KindVM}, {"Attach Listener", KindVM}, {"JFR Sam", KindVM}, {"JFR Peri", KindVM}, {"AsyncLo", KindVM},
}

// kindOfJava tells a thread of the VM in its list of Java threads from the program's own: only
// names that the VM assigns are taken for its threads.
func kindOfJava(name string) Kind {
	for _, n := range namedThreads {
		switch {
		case n.kind == KindCompiler && strings.HasPrefix(name, n.prefix) && strings.Contains(name, "Compiler"):
			return KindCompiler
		case n.kind == KindVM && name == n.prefix:
			return KindVM
		}
	}
	return KindJava
}

// ThreadKind returns what a thread is for. name is its Java name, "" if that is not known; comm is
// its kernel name. whole says that the VM reported all of its threads while this one was there
// (AskThreads). Without that, a thread that is not known to be Java's is of unknown kind, unless it
// has a name that only the VM's threads have.
func (ts *Threads) ThreadKind(tid uint32, name, comm string, whole bool) Kind {
	if _, ok := ts.byTID[tid]; ok || name != "" {
		if name == "" {
			return KindOfJavaComm(comm)
		}
		return kindOfJava(name)
	}
	if whole {
		return kindOfNative(comm)
	}
	for _, n := range namedThreads {
		if strings.HasPrefix(comm, n.prefix) && n.prefix != "Concurr" {
			return n.kind // programs also name threads Concurrent…
		}
	}
	return KindUnknown
}

// KindOfJavaComm returns what a thread that runs Java code, or is in the VM's list of such threads,
// is for, from its kernel name alone, which is cut at 15 bytes.
func KindOfJavaComm(comm string) Kind {
	const most = 15
	for _, n := range namedThreads {
		switch {
		case n.kind == KindCompiler && strings.HasPrefix(comm, n.prefix),
			n.kind == KindVM && comm == n.prefix[:min(len(n.prefix), most)]:
			return n.kind
		}
	}
	return KindJava
}

// Kind returns what a thread is for; comm is its kernel name.
func (c *Dump) Kind(tid uint32, comm string) Kind {
	if _, ok := c.byTID[tid]; !ok {
		return kindOfNative(comm)
	}
	name, _ := c.Name(tid)
	return kindOfJava(name)
}

func kindOfNative(comm string) Kind {
	for _, n := range namedThreads {
		if strings.HasPrefix(comm, n.prefix) {
			return n.kind
		}
	}
	return KindNative
}
