package threads

import (
	"github.com/candid-profiler/candid/internal/cpu"
)

// ThreadPointer returns where a Java thread's own storage is, as capture.OpThread of a Follow does;
// false if the VM does not know, or does not publish it.
func (ts *Threads) ThreadPointer(tid uint32) (uint64, bool) {
	thread, ok := ts.JavaThread(tid)
	if !ok {
		return 0, false
	}
	return ts.Storage(thread)
}

// Storage is ThreadPointer for a JavaThread. The thread pointer of glibc and musl on x86-64 is their
// pthread_t.
func (ts *Threads) Storage(thread uint64) (uint64, bool) {
	f := ts.vm.Field("OSThread::_pthread_id")
	if !f.OK || ts.vm.Arch != cpu.AMD64 {
		return 0, false
	}
	os, ok := ts.vm.Mem.U64(thread + ts.off.osThread)
	if !ok {
		return 0, false
	}
	return ts.vm.Mem.U64(os + f.Offset)
}
