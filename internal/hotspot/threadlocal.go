package hotspot

import (
	"github.com/candid-profiler/candid/internal/cpu"
)

// local is where in its own storage a thread has its JavaThread, Thread::_thr_current
// (share/runtime/thread.cpp), from the thread pointer. That is at the same place for
// all threads: in the room that the C library sets apart for it from the beginning, or
// in a block that the thread's table of blocks leads to (dtv).
type local struct {
	ok     bool
	block  uint64 // where in the table; absent: it needs none
	offset uint64 // from the thread pointer, or in the block
}

// Bounds on the search for it, in bytes.
const (
	maxThreadVars = 4096 // below the thread pointer
	maxBlocks     = 1024 // of the table
	maxBlock      = 512
	searchThreads = 8
)

// dtvAt is where glibc and musl have the table, from the thread pointer (x86-64).
const dtvAt = 8

// learnLocal finds it: the thread pointer of glibc and musl on x86-64 is what they call
// pthread_t.
func (vm *VM) learnLocal() (l local) {
	f := vm.t.field("OSThread::_pthread_id")
	if !f.ok || vm.arch != cpu.AMD64 {
		return l
	}
	var common map[local]bool
	seen := 0
	threads, _ := vm.listThreads()
	for _, t := range threads {
		os, ok := vm.peek.u64(t.addr + vm.off.osThread)
		if !ok {
			continue
		}
		tp, ok := vm.peek.u64(os + f.offset)
		if !ok || tp < maxThreadVars {
			continue
		}
		here := vm.placesOf(t.addr, tp)
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
	// The thread's first frames may have it at the same place too, which is farther
	// below the thread pointer.
	for at := range common {
		if !l.ok || at.block != absent && l.block == absent || (at.block == absent) == (l.block == absent) && at.offset > l.offset {
			l = at
		}
	}
	return l
}

// ThreadPointer is where a Java thread's own storage is, as OpThread of a Follow gives
// it; false if the VM does not know, or does not publish it.
func (vm *VM) ThreadPointer(tid uint32) (uint64, bool) {
	f := vm.t.field("OSThread::_pthread_id")
	thread, ok := vm.javaThread(tid)
	if !f.ok || !ok || vm.arch != cpu.AMD64 {
		return 0, false
	}
	os, ok := vm.peek.u64(thread + vm.off.osThread)
	if !ok {
		return 0, false
	}
	return vm.peek.u64(os + f.offset)
}
