package store

import (
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// sumTable adds up samples that differ only in their time: a table with open addressing, which is
// what most of the time of a query goes to.
type sumTable struct {
	list []summed
	used int
}

type summed struct {
	node, thread uint32
	kind         uint64 // event, system call, state, end and flags
	n, weight    uint64
}

func kindOf(s *profile.Sample) uint64 {
	return uint64(s.Event)<<40 | uint64(s.Syscall)<<24 | uint64(s.State)<<16 | uint64(s.End)<<8 | uint64(s.Flags)
}

func (t *sumTable) add(s *profile.Sample, weight, n uint64) {
	if 3*t.used >= 2*len(t.list) {
		t.grow()
	}
	v := summed{node: s.Node, thread: s.Thread, kind: kindOf(s)}
	e := t.place(&v)
	if e.n == 0 {
		t.used++
		*e = v
	}
	e.n += n
	e.weight += weight
}

func (t *sumTable) place(v *summed) *summed {
	h := (uint64(v.node)<<32 | uint64(v.thread)) ^ v.kind*0xD6E8FEB86659FD93
	h *= 0x9E3779B97F4A7C15
	h ^= h >> 32
	mask := uint64(len(t.list) - 1)
	for ; ; h++ {
		if e := &t.list[h&mask]; e.n == 0 || e.node == v.node && e.thread == v.thread && e.kind == v.kind {
			return e
		}
	}
}

func (t *sumTable) grow() {
	old := t.list
	t.list = make([]summed, max(1<<10, 2*len(old)))
	for i := range old {
		if old[i].n > 0 {
			*t.place(&old[i]) = old[i]
		}
	}
}

// each visits all sums, each as one sample with the weight of all n.
func (t *sumTable) each(visit func(s *profile.Sample, n uint64)) {
	for i := range t.list {
		e := &t.list[i]
		if e.n == 0 {
			continue
		}
		visit(&profile.Sample{
			Weight: e.weight, Node: e.node, Thread: e.thread,
			Event: uint16(e.kind >> 40), Syscall: uint16(e.kind >> 24), State: profile.State(e.kind >> 16), End: walk.End(e.kind >> 8), Flags: profile.SampleFlags(e.kind),
		}, e.n)
	}
}
