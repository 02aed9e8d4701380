package threads

import (
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/hotspot/metadata"
	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
)

// VMState is where a thread is in the VM's view, which decides whether it can be at a safepoint.
type VMState uint8

// The states of JavaThread::_thread_state. A thread on its way to the next state counts as still
// being in the former.
const (
	VMUnknown VMState = iota
	VMNew
	VMInNative // in native code: at a safepoint as far as the VM is concerned
	VMInVM
	VMInJava
	VMBlocked // in the VM's own locks, or held at a safepoint
)

var vmStateNames = [...]string{"", "new", "in native code", "in the VM", "in Java", "blocked in the VM"}

// String returns the name of the state for display; "" is unknown.
func (s VMState) String() string {
	if int(s) < len(vmStateNames) {
		return vmStateNames[s]
	}
	return ""
}

// vmState decodes a value of _thread_state.
func vmState(v uint32) VMState {
	switch v &^ 1 { // odd states are on the way to the next
	case stateNew:
		return VMNew
	case stateNative:
		return VMInNative
	case stateVM:
		return VMInVM
	case stateJava:
		return VMInJava
	case stateBlocked:
		return VMBlocked
	}
	return VMUnknown
}

// JavaState is what a thread does in the terms of java.lang.Thread.State, and how it waits.
type JavaState uint8

// The states, as java.lang.Thread keeps them.
const (
	JavaUnknown JavaState = iota
	JavaNew
	JavaRunnable
	JavaSleeping    // Thread.sleep
	JavaWaiting     // Object.wait
	JavaTimedWait   // Object.wait with a time limit
	JavaParked      // LockSupport.park
	JavaTimedParked // LockSupport.parkNanos, parkUntil
	JavaBlocked     // waits to enter a monitor
	JavaTerminated
)

// javaStateNames are the names that jstack prints.
var javaStateNames = [...]string{
	"", "NEW", "RUNNABLE", "TIMED_WAITING (sleeping)", "WAITING (on object monitor)", "TIMED_WAITING (on object monitor)",
	"WAITING (parking)", "TIMED_WAITING (parking)", "BLOCKED (on object monitor)", "TERMINATED",
}

// String returns the name of the state as jstack prints it: "WAITING (parking)"; "" is unknown.
func (s JavaState) String() string {
	if int(s) < len(javaStateNames) {
		return javaStateNames[s]
	}
	return ""
}

// javaStates are the values of java.lang.Thread.threadStatus: JVMTI's bits for alive, runnable,
// waiting, with a time limit and so on (8 share/vm/classfile/javaClasses.hpp,
// java_lang_Thread::ThreadStatus, the same since).
var javaStates = map[uint32]JavaState{
	0x000: JavaNew, 0x002: JavaTerminated, 0x005: JavaRunnable, 0x0e1: JavaSleeping,
	0x191: JavaWaiting, 0x1a1: JavaTimedWait, 0x291: JavaParked, 0x2a1: JavaTimedParked, 0x401: JavaBlocked,
}

// State is what a thread is doing, according to the VM and the thread's Java object.
type State struct {
	VM   VMState
	Java JavaState
}

// objectLayout holds the offsets of java.lang.Thread's own fields in every object of the class or a
// subclass: the class is never unloaded and its layout never changes.
type objectLayout struct {
	ok     bool
	klass  uint64 // java.lang.Thread itself
	eetop  uint64
	name   metadata.Field
	id     uint64 // tid; vmstructs.Absent if it is not found
	holder uint64 // 19 and later: the next three are in this object
	status uint64
	prio   uint64
	daemon uint64

	parkBlocker uint64

	span, holderSpan int // bytes of the object, and of its holder, that contain all of these
}

// threadLayout finds java.lang.Thread's fields, from any thread's object.
func (ts *Threads) threadLayout(oop uint64) *objectLayout {
	f := &ts.layout
	if f.ok {
		return f
	}
	klass, ok := ts.heap.KlassOf(oop)
	super := ts.vm.Field("Klass::_super")
	for range metadata.MaxSupers {
		if !ok || klass == 0 || klass&7 != 0 {
			return f
		}
		if ts.heap.ClassName(klass) == "java/lang/Thread" {
			break
		}
		klass, ok = ts.vm.Mem.Member(klass, super)
	}
	fields := ts.heap.ClassFields(klass)
	at := func(fields map[string]metadata.Field, name, signature string) uint64 {
		if j, ok := fields[name]; ok && j.Signature == signature {
			return j.Offset
		}
		return vmstructs.Absent
	}
	f.klass, f.name = klass, fields["name"]
	f.eetop, f.id = at(fields, "eetop", "J"), at(fields, "tid", "J")
	f.parkBlocker = at(fields, "parkBlocker", "Ljava/lang/Object;")
	f.holder = at(fields, "holder", "Ljava/lang/Thread$FieldHolder;")
	if f.holder != vmstructs.Absent {
		holder, ok := ts.heap.Reference(oop + f.holder)
		if !ok {
			return f
		}
		if klass, ok = ts.heap.KlassOf(holder); !ok || ts.heap.ClassName(klass) != "java/lang/Thread$FieldHolder" {
			return f
		}
		fields = ts.heap.ClassFields(klass)
	}
	f.status, f.prio, f.daemon = at(fields, "threadStatus", "I"), at(fields, "priority", "I"), at(fields, "daemon", "Z")
	own := []uint64{f.eetop, f.id, f.name.Offset, f.holder, f.parkBlocker}
	inner := []uint64{f.status, f.prio, f.daemon}
	if f.holder == vmstructs.Absent {
		own = append(own, inner...)
	}
	f.span, f.holderSpan = spanOf(own), spanOf(inner)
	f.ok = f.eetop != vmstructs.Absent && f.status != vmstructs.Absent && f.name.Signature != "" && f.span <= maxThreadObject && f.holderSpan <= maxThreadObject
	return f
}

// maxThreadObject bounds the part of a thread's object that is read, in bytes.
const maxThreadObject = 1 << 10

// spanOf returns the end of the last of some fields, of 8 bytes at most each.
func spanOf(offsets []uint64) int {
	end := uint64(0)
	for _, o := range offsets {
		if o != vmstructs.Absent {
			end = max(end, o+8)
		}
	}
	return int(min(end, maxThreadObject+1))
}

// ThreadState returns what a thread is doing, for samples of threads that may wait; false for
// threads that are not Java threads. It costs four or five small reads, some 5 µs. A thread that
// has not run since it was asked about is still in the same state, because the thread itself
// records the state before it waits.
func (ts *Threads) ThreadState(tid uint32) (s State, ok bool) {
	addr, ok := ts.JavaThread(tid)
	if !ok {
		return s, false
	}
	if ts.off.threadState != vmstructs.Absent {
		if v, ok := ts.vm.Mem.U32(addr + ts.off.threadState); ok {
			s.VM = vmState(v)
		}
	}
	if ts.off.threadObj == vmstructs.Absent || !ts.heap.OK {
		return s, true
	}
	object, ok := ts.vm.Mem.U64(addr + ts.off.threadObj)
	if !ok {
		return s, false
	}
	ts.heap.Refresh()
	for range 3 {
		if v, ok := ts.threadStatus(addr, object); ok {
			s.Java = javaStates[v]
			break
		}
	}
	return s, true
}

// threadStatus reads java.lang.Thread.threadStatus of a thread whose object ref refers to; false
// unless the object points back to the thread, before and after: the collector may move it
// meanwhile.
func (ts *Threads) threadStatus(addr, ref uint64) (uint32, bool) {
	oop, ok := ts.heap.Handle(ref)
	if !ok {
		return 0, false
	}
	f := ts.threadLayout(oop)
	if !f.ok {
		return 0, false
	}
	in := oop
	if f.holder != vmstructs.Absent {
		if in, ok = ts.heap.Reference(oop + f.holder); !ok {
			return 0, false
		}
	}
	v, ok := ts.vm.Mem.U32(in + f.status)
	if !ok {
		return 0, false
	}
	back, ok := ts.vm.Mem.U64(oop + f.eetop)
	return v, ok && back == addr
}

// i64 reads a Java long.
func (ts *Threads) i64(addr uint64) (int64, bool) {
	var b [8]byte
	if ts.vm.Mem.Reader.ReadAt(b[:], addr) != nil {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint64(b[:])), true
}
