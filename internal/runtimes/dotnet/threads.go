package dotnet

import (
	"strings"

	"github.com/candid-profiler/candid/internal/coreclr"
	"github.com/candid-profiler/candid/internal/runtimes"
)

var (
	_ runtimes.ThreadNamer  = (*instance)(nil)
	_ runtimes.ThreadDumper = (*instance)(nil)
	_ runtimes.StackReader  = (*threadDump)(nil)
)

// Kinds of threads, as in profile.Thread.
const (
	threadManaged   = "dotnet"    // runs the program's managed code
	threadPool      = "pool"      // a worker of the thread pool
	threadFinalizer = "finalizer" // runs finalizers
	threadCompiler  = "compiler"  // compiles methods again, with more optimization
	threadGC        = "gc"
	threadRuntime   = "vm" // does something else for the runtime
)

// ownThreads are the runtime's names for its own threads, as far as the kernel shows them
// (src/coreclr/vm and System.Private.CoreLib of .NET 8 to 10); the first one that fits counts.
var ownThreads = []struct{ prefix, kind string }{
	{".NET TP Worker", threadPool},
	{".NET Finalizer", threadFinalizer},
	{".NET Tiered Com", threadCompiler},
	{".NET Server GC", threadGC},
	{".NET BGC", threadGC},
	{".NET GC", threadGC},
	{".NET Long Runni", threadManaged}, // a task that the program wants to have a thread of its own
	{".NET ", threadRuntime},
}

// kindOfThread returns what a thread is for by a name that the runtime gives; "" if it is none.
func kindOfThread(name string) string {
	for _, o := range ownThreads {
		if strings.HasPrefix(name, o.prefix) {
			return o.kind
		}
	}
	return ""
}

// AskThreads implements runtimes.ThreadNamer.
func (i *instance) AskThreads() (names map[int]string, whole bool) {
	list, whole := i.Threads()
	names = make(map[int]string, len(list))
	i.listed = make(map[uint32]bool, len(list))
	for _, t := range list {
		i.listed[t.TID] = true
		if t.Name != "" {
			names[int(t.TID)] = t.Name
		}
	}
	return names, whole
}

// Passing implements runtimes.ThreadNamer.
func (i *instance) Passing(string) bool { return false }

// ThreadKind implements runtimes.ThreadNamer. The names of the runtime's own threads are in the
// kernel too.
func (i *instance) ThreadKind(tid uint32, name, comm string, whole bool) string {
	for _, n := range []string{name, comm} {
		if k := kindOfThread(n); k != "" {
			return k
		}
	}
	switch {
	case i.listed[tid] || name != "":
		return threadManaged
	case whole:
		return runtimes.ThreadNative
	}
	return runtimes.ThreadUnknown
}

// RunnerKind implements runtimes.ThreadNamer.
func (i *instance) RunnerKind(comm string) string {
	if k := kindOfThread(comm); k != "" {
		return k
	}
	return threadManaged
}

// threadDump adapts the runtime's threads to package runtimes.
type threadDump struct {
	*coreclr.ThreadDump
	i *instance
}

// DumpThreads implements runtimes.ThreadDumper.
func (i *instance) DumpThreads() runtimes.ThreadDump {
	i.AskThreads()
	return &threadDump{i.VM.DumpThreads(), i}
}

// Pause implements runtimes.ThreadDumper: pauses are not seen.
func (i *instance) Pause(runtimes.ThreadDump) (*runtimes.Pause, error) { return nil, nil }

// Kind implements runtimes.ThreadDump.
func (d *threadDump) Kind(tid uint32, comm string) string {
	name, _ := d.Name(tid)
	return d.i.ThreadKind(tid, name, comm, d.Whole)
}

// Name implements runtimes.ThreadDump.
func (d *threadDump) Name(tid uint32) (string, bool) {
	t, _ := d.ThreadDump.Thread(tid)
	return t.Name, t.Name != ""
}

// Thread implements runtimes.ThreadDump.
func (d *threadDump) Thread(tid uint32) (s runtimes.ThreadState, ok bool) {
	t, ok := d.ThreadDump.Thread(tid)
	if !ok {
		return s, false
	}
	s.Language, s.ID = runtimes.DotNet, int64(t.ID)
	if m, ok := d.Blocked(tid); ok {
		s.Wait = runtimes.Wait{Kind: runtimes.WaitsToLock, Object: runtimes.Object(m.Object), Owner: m.Owner}
		if m.Wait {
			s.Wait.Kind = runtimes.WaitsOn
		}
	}
	return s, true
}

// Holds implements runtimes.ThreadDump.
func (d *threadDump) Holds(tid uint32) (out []runtimes.Object) {
	for _, o := range d.ThreadDump.Holds(tid) {
		out = append(out, runtimes.Object(o))
	}
	return out
}

// Hides implements runtimes.ThreadDump.
func (d *threadDump) Hides(int) string { return "" }
