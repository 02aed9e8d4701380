package threads

import (
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
)

// VirtualThread returns the identity of the virtual thread that is mounted on an operating system
// thread: its Java thread id, which is never 0, and its name, which is often "". It returns false
// if none is mounted or it cannot be told. During mounting and unmounting it may be the thread
// before or after.
func (ts *Threads) VirtualThread(tid uint32) (id uint64, name string, ok bool) {
	if ts.off.vthread == vmstructs.Absent || ts.off.threadObj == vmstructs.Absent || !ts.heap.OK {
		return 0, "", false
	}
	addr, ok := ts.JavaThread(tid)
	if !ok {
		return 0, "", false
	}
	ts.heap.Refresh()
	ts.heap.Begin()
	for range 3 {
		if id, name, sure := ts.mounted(addr); sure {
			return id, name, id != 0
		}
	}
	return 0, "", false
}

// mounted reads which virtual thread a JavaThread carries; id is 0 if it carries none.
func (ts *Threads) mounted(thread uint64) (id uint64, name string, sure bool) {
	carrier, ok1 := ts.vm.Mem.U64(thread + ts.off.threadObj)
	current, ok2 := ts.vm.Mem.U64(thread + ts.off.vthread)
	if !ok1 || !ok2 {
		return 0, "", false
	}
	own, ok1 := ts.heap.Handle(carrier)
	oop, ok2 := ts.heap.Handle(current)
	if !ok1 || !ok2 {
		return 0, "", false
	}
	if own == oop {
		return 0, "", true
	}
	// The collector may move the object while it is read: a virtual thread's
	// carrierThread must be the thread's own object.
	f, ok := ts.heap.FieldOf(oop, "carrierThread")
	if !ok {
		return 0, "", false
	}
	if r, ok := ts.heap.Reference(oop + f.Offset); !ok || r != own {
		return 0, "", false
	}
	if f, ok = ts.heap.FieldOf(oop, "tid"); !ok {
		return 0, "", false
	}
	var b [8]byte
	if ts.vm.Mem.Reader.ReadAt(b[:], oop+f.Offset) != nil {
		return 0, "", false
	}
	if id = binary.LittleEndian.Uint64(b[:]); id == 0 {
		return 0, "", false
	}
	if f, ok = ts.heap.FieldOf(oop, "name"); ok {
		if s, ok := ts.heap.Reference(oop + f.Offset); ok {
			name, _ = ts.heap.JavaString(s)
		}
	}
	return id, name, true
}
