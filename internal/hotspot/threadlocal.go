package hotspot

import "github.com/candid-profiler/candid/internal/hotspot/vmstructs"

// local is where a thread's own storage holds its JavaThread, Thread::_thr_current
// (share/runtime/thread.cpp), relative to the thread pointer. The place is the same for all
// threads: in the static TLS block that the C library allocates at the start, or in a block that
// the thread's dtv leads to.
type local struct {
	ok     bool
	block  uint64 // offset in the dtv; absent: it needs none
	offset uint64 // from the thread pointer, or in the block
}

// Bounds on the search for it, in bytes.
const (
	maxThreadVars = 4096 // below the thread pointer
	maxBlocks     = 1024 // of the dtv
	maxBlock      = 512
	searchThreads = 8
)

// dtvAt is the offset of the dtv from the thread pointer in glibc and musl (x86-64).
const dtvAt = 8

// learnLocal finds it.
func (vm *VM) learnLocal() (l local) {
	var common map[local]bool
	seen := 0
	threads, _ := vm.Threads.List()
	for _, t := range threads {
		tp, ok := vm.Threads.Storage(t.Addr)
		if !ok || tp < maxThreadVars {
			continue
		}
		here := vm.placesOf(t.Addr, tp)
		if seen > 0 {
			for at := range here {
				if !common[at] {
					delete(here, at)
				}
			}
		}
		common = here
		if seen++; seen == searchThreads || len(common) == 0 {
			break
		}
	}
	if seen < 2 {
		return l
	}
	// The thread's first frames may hold it at the same offset too, farther below the thread
	// pointer.
	for at := range common {
		if !l.ok || at.block != vmstructs.Absent && l.block == vmstructs.Absent || (at.block == vmstructs.Absent) == (l.block == vmstructs.Absent) && at.offset > l.offset {
			l = at
		}
	}
	return l
}
