//go:build linux || windows

package dump

import (
	"maps"
	"slices"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/runtimes"
)

// java fills in what the Java VM, or .NET's, reports of a thread now.
func (p *process) java(t *Thread) {
	c := p.look.census
	if c == nil {
		return
	}
	info, ok := c.Thread(uint32(t.TID))
	if !ok {
		return
	}
	p.look.dotnet = info.Language == runtimes.DotNet
	if info.Kind != "" {
		t.Kind = info.Kind
	}
	j := &Java{
		ID: info.ID, Daemon: info.Daemon, Priority: info.Priority, State: info.State, VMState: info.VMState,
		Compiling: info.Compiling, Tier: info.Tier,
	}
	if how, ok := waitNames[info.Wait.Kind]; ok {
		j.WaitsFor = &Lock{How: how, Class: info.Wait.Object.Class, Address: info.Wait.Object.Addr, OwnerTID: int(info.Wait.Owner)}
		if v := info.Wait.Virtual; v.ID != 0 {
			j.WaitsFor.OwnerVirtual = &Virtual{ID: v.ID, Name: v.Name}
		}
	}
	j.Holds = p.holds(j.WaitsFor, t.TID)
	if v := info.Virtual; v.ID != 0 {
		j.Virtual = &Virtual{ID: v.ID, Name: v.Name}
	}
	t.Java = j
}

// readStack lets the runtime look at the stack that was walked last, of which snap is a copy.
func (p *process) readStack(snap *capture.Snapshot) {
	r, ok := p.look.census.(runtimes.StackReader)
	if !ok {
		return
	}
	if below := snap.Regs.SP() - snap.StackAddr; below <= uint64(len(snap.Stack)) {
		r.ReadStack(snap.TID, p.look.stack.Frames, snap.Regs.SP(), snap.Stack[below:])
	}
}

// holds lists what a thread holds, except for what it waits for.
func (p *process) holds(waits *Lock, tid int) (out []Lock) {
	for _, o := range p.look.census.Holds(uint32(tid)) {
		if waits == nil || waits.Address != o.Addr {
			out = append(out, Lock{How: "locked", Class: o.Class, Address: o.Addr})
		}
	}
	return out
}

// threadName returns the name of a thread, "" if the dump does not have it.
func (p *Process) threadName(tid int) string {
	for i := range p.Threads {
		if p.Threads[i].TID == tid {
			return p.Threads[i].Name
		}
	}
	return ""
}

// divide gives what .NET reports of threads its own place. Until all have been read it is Java's.
func (p *process) divide(out *Process) {
	for i := range out.Threads {
		if t := &out.Threads[i]; t.Java != nil && p.look.dotnet {
			t.DotNet = &DotNet{ID: t.Java.ID, WaitsFor: t.Java.WaitsFor, Holds: t.Java.Holds, Changed: t.Java.Changed}
			t.Java = nil
		}
	}
}

// waitNames are the words that jstack uses.
var waitNames = map[runtimes.WaitKind]string{
	runtimes.WaitsToLock: "waiting to lock", runtimes.WaitsOn: "waiting on", runtimes.WaitsParked: "parking to wait for",
}

// atSafepoint is the function in which threads that have reached a safepoint wait. Up to 11 they
// count as being in the VM while they wait for the lock under which it looks at all threads (8
// share/vm/runtime/safepoint.cpp: "we pretend we are still in the VM").
const atSafepoint = "SafepointSynchronize::block"

// excuse removes threads that have reached the safepoint from those that it waits for.
func (p *Process) excuse() {
	if p.Safepoint == nil {
		return
	}
	p.Safepoint.WaitsFor = slices.DeleteFunc(p.Safepoint.WaitsFor, func(tid int) bool {
		return slices.ContainsFunc(p.Threads, func(t Thread) bool {
			return t.TID == tid && t.still() && slices.ContainsFunc(t.Frames, func(f Frame) bool { return f.Function == atSafepoint })
		})
	})
}

// nameOwners names the threads that hold what others wait for, and finds those that wait for each
// other.
func (p *process) nameOwners(out *Process) {
	next := make(map[int]int) // thread that a thread waits for
	for i := range out.Threads {
		t := &out.Threads[i]
		if t.Java == nil || t.Java.WaitsFor == nil || t.Java.WaitsFor.OwnerTID == 0 {
			continue
		}
		l := t.Java.WaitsFor
		l.Owner, _ = p.look.census.Name(uint32(l.OwnerTID))
		if l.Owner == "" {
			l.Owner = out.threadName(l.OwnerTID)
		}
		if l.How != "waiting on" && t.still() && !t.Java.Changed && (l.OwnerVirtual == nil || l.OwnerVirtual.ID == 0) {
			next[t.TID] = l.OwnerTID
		}
	}
	out.Deadlocks = cycles(next)
}

// cycles finds the cycles of a map in which each entry leads to at most one other.
func cycles(next map[int]int) [][]int {
	var out [][]int
	done := make(map[int]int) // the start from which an entry was first reached
	for _, start := range slices.Sorted(maps.Keys(next)) {
		at, ok := start, true
		for ok && done[at] == 0 {
			done[at] = start
			at, ok = next[at]
		}
		if !ok || done[at] != start {
			continue
		}
		ring := []int{at}
		for n := next[at]; n != at; n = next[n] {
			ring = append(ring, n)
		}
		out = append(out, ring)
	}
	return out
}

// locks reports whether the locks that a thread waits for or holds have to be read again.
func (t *Thread) locks() bool {
	if t.Java == nil {
		return false
	}
	w := t.Java.WaitsFor
	return t.Read == ReadStopped || w != nil && (w.How != waitNames[runtimes.WaitsParked] || w.OwnerTID != 0 || w.OwnerVirtual != nil)
}

// sameLocks reports whether a running thread had the same locks before and after.
func sameLocks(a, b *Java) bool {
	if (a.WaitsFor == nil) != (b.WaitsFor == nil) || a.WaitsFor != nil && (a.WaitsFor.How != b.WaitsFor.How || a.WaitsFor.Address != b.WaitsFor.Address) {
		return false
	}
	return slices.Equal(a.Holds, b.Holds)
}

// still reports whether the thread slept when it was read: then it took and released no lock.
func (t *Thread) still() bool {
	return t.Read == ReadAsleep || t.Read == ReadStopped && t.State == sleeping
}

// sleeping is the State of a thread that waits for something.
const sleeping = "sleeping"
