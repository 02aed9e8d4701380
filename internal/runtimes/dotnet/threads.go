package dotnet

import (
	"github.com/candid-profiler/candid/internal/coreclr"
	"github.com/candid-profiler/candid/internal/runtimes"
)

var (
	_ runtimes.ThreadNamer  = (*instance)(nil)
	_ runtimes.ThreadDumper = (*instance)(nil)
)

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
		if k := coreclr.KindOfThread(n); k != "" {
			return k
		}
	}
	switch {
	case i.listed[tid] || name != "":
		return coreclr.ThreadManaged
	case whole:
		return runtimes.ThreadNative
	}
	return runtimes.ThreadUnknown
}

// RunnerKind implements runtimes.ThreadNamer.
func (i *instance) RunnerKind(comm string) string {
	if k := coreclr.KindOfThread(comm); k != "" {
		return k
	}
	return coreclr.ThreadManaged
}

// threadDump is a list of threads. What they wait for is not known of .NET.
type threadDump struct {
	i     *instance
	names map[int]string
	whole bool
}

// DumpThreads implements runtimes.ThreadDumper.
func (i *instance) DumpThreads() runtimes.ThreadDump {
	names, whole := i.AskThreads()
	return &threadDump{i, names, whole}
}

// Pause implements runtimes.ThreadDumper: pauses are not seen.
func (i *instance) Pause(runtimes.ThreadDump) (*runtimes.Pause, error) { return nil, nil }

// Kind implements runtimes.ThreadDump.
func (d *threadDump) Kind(tid uint32, comm string) string {
	return d.i.ThreadKind(tid, d.names[int(tid)], comm, d.whole)
}

// Name implements runtimes.ThreadDump.
func (d *threadDump) Name(tid uint32) (string, bool) {
	n := d.names[int(tid)]
	return n, n != ""
}

// Thread implements runtimes.ThreadDump.
func (d *threadDump) Thread(uint32) (runtimes.ThreadState, bool) {
	return runtimes.ThreadState{}, false
}

// Holds implements runtimes.ThreadDump.
func (d *threadDump) Holds(uint32) []runtimes.Object { return nil }

// ReadLocks implements runtimes.ThreadDump.
func (d *threadDump) ReadLocks() {}

// Hides implements runtimes.ThreadDump.
func (d *threadDump) Hides(int) string { return "" }
