package threads

import (
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/target"
)

// Object is an object of the Java heap. The collector may move it at any time.
type Object struct {
	Addr  uint64
	Class string // as displayed: java.util.concurrent.locks.ReentrantLock$NonfairSync, int[] is [I
}

// WaitKind is how a thread waits for an object.
type WaitKind uint8

// The kinds.
const (
	WaitsForNothing WaitKind = iota
	WaitsToLock              // the object's monitor, which another thread owns
	WaitsOn                  // Object.wait
	WaitsParked              // LockSupport.park with this blocker
)

// Wait is what a thread waits for.
type Wait struct {
	Kind   WaitKind
	Object Object
	Owner  uint32 // the thread that holds it; 0: none, or it cannot be told

	Virtual Virtual // the virtual thread that holds it, carried by Owner; without Owner it is not mounted
}

// Info is what the VM knows about one of its threads.
type Info struct {
	State    State
	Name     string
	ID       int64 // java.lang.Thread.threadId
	Daemon   bool
	Priority int
	Kind     Kind
	Wait     Wait

	Compiling string // the method that a compiler thread is compiling: java.util.HashMap.get; "" for none
	Tier      int    // tier that it is compiled for: 1 to 4
	Loop      bool   // it is compiled to be entered in a loop (on-stack replacement)
}

// Thread reads what a thread is and is doing now; false if it is not a Java thread. Anything that
// could not be read reliably is left out.
func (c *Dump) Thread(tid uint32) (info Info, ok bool) {
	i, ok := c.byTID[tid]
	if !ok {
		return info, false
	}
	ts, t := c.ts, &c.threads[i]
	info.Kind = KindJava
	r := threadRead{ts: ts, t: t}
	r.read()
	if ts.off.threadState != vmstructs.Absent {
		info.State.VM = vmState(binary.LittleEndian.Uint32(r.words[0][:]))
	}
	if ts.off.threadObj == vmstructs.Absent || !ts.heap.OK {
		return info, true
	}
	info.Name, _ = c.Name(tid)
	info.Kind = kindOfJava(info.Name)
	ts.heap.Refresh()
	blocker, known := uint64(0), false
	if r.object != nil {
		blocker, known = ts.threadObject(&info, t, r.object, r.holder)
	}
	for try := 0; try < 3 && !known; try++ { // the collector may move the object meanwhile
		blocker, known = ts.readThread(&info, t)
	}
	if info.Kind == KindCompiler {
		ts.compiling(&info, t.Addr)
	}
	info.Wait = c.wait(info.State.Java, vmstructs.Word(r.words[1][:], 0), vmstructs.Word(r.words[2][:], 0), blocker)
	if info.Wait.Owner == tid {
		info.Wait = Wait{} // it has just got it
	}
	return info, true
}

// threadRead is what is read of a thread together.
type threadRead struct {
	ts    *Threads
	t     *dumpedThread
	words [3][8]byte // state, monitor to enter, monitor waited on

	object, holder []byte // nil: not where they were when the names were read
}

// read reads all of it, with one system call if possible.
func (r *threadRead) read() {
	ts, t := r.ts, r.t
	var room [len(r.words) + 4]target.Read
	reqs := room[:0]
	for i, off := range [...]uint64{ts.off.threadState, ts.off.pendingMonitor, ts.off.waitingMonitor} {
		if off != vmstructs.Absent {
			reqs = append(reqs, target.Read{Addr: t.Addr + off, Buf: r.words[i][:]})
		}
	}
	f := &ts.layout
	if !ts.heap.Handles || !f.ok || t.oop == 0 || f.holder != vmstructs.Absent && t.holder == 0 {
		ts.vm.Mem.ReadV(reqs)
		return
	}
	// The object is read between two reads of the reference to it.
	var before, after [8]byte
	object, holder := make([]byte, f.span), make([]byte, f.holderSpan)
	n := len(reqs)
	reqs = append(reqs, target.Read{Addr: t.object, Buf: before[:]}, target.Read{Addr: t.oop, Buf: object})
	if f.holder != vmstructs.Absent {
		reqs = append(reqs, target.Read{Addr: t.holder, Buf: holder})
	}
	reqs = append(reqs, target.Read{Addr: t.object, Buf: after[:]})
	ts.vm.Mem.ReadV(reqs)
	for _, q := range reqs[n:] {
		if !q.OK {
			return
		}
	}
	if before != after || ts.heap.Address(vmstructs.Word(before[:], 0)) != t.oop {
		return
	}
	if f.holder != vmstructs.Absent {
		if at, _ := ts.heap.ReferenceIn(object, f.holder); at != t.holder {
			return
		}
	}
	r.object, r.holder = object, holder
}

// readThread reads a thread's object, and returns the object that it is parked for; false unless
// the object points back to the thread and is not moved meanwhile.
func (ts *Threads) readThread(info *Info, t *dumpedThread) (blocker uint64, ok bool) {
	oop, ok := ts.heap.Handle(t.object)
	if !ok {
		return 0, false
	}
	f := ts.threadLayout(oop)
	if !f.ok {
		return 0, false
	}
	b := make([]byte, f.span)
	if ts.vm.Mem.Reader.ReadAt(b, oop) != nil {
		return 0, false
	}
	var in []byte
	if f.holder != vmstructs.Absent {
		holder, ok := ts.heap.ReferenceIn(b, f.holder)
		if in = make([]byte, f.holderSpan); !ok || ts.vm.Mem.Reader.ReadAt(in, holder) != nil {
			return 0, false
		}
	}
	if blocker, ok = ts.threadObject(info, t, b, in); !ok {
		return 0, false
	}
	again, ok := ts.heap.Handle(t.object)
	return blocker, ok && again == oop
}

// threadObject decodes a thread's object and its holder, and returns the object that the thread is
// parked for; false unless the object points back to the thread.
func (ts *Threads) threadObject(info *Info, t *dumpedThread, object, holder []byte) (blocker uint64, ok bool) {
	f := &ts.layout
	if vmstructs.Word(object, f.eetop) != t.Addr {
		return 0, false
	}
	if f.id != vmstructs.Absent {
		info.ID = int64(vmstructs.Word(object, f.id))
	}
	if f.parkBlocker != vmstructs.Absent {
		blocker, _ = ts.heap.ReferenceIn(object, f.parkBlocker)
	}
	in := object
	if f.holder != vmstructs.Absent {
		in = holder
	}
	info.State.Java = javaStates[binary.LittleEndian.Uint32(in[f.status:])]
	if f.prio != vmstructs.Absent {
		info.Priority = int(int32(binary.LittleEndian.Uint32(in[f.prio:])))
	}
	if f.daemon != vmstructs.Absent {
		info.Daemon = in[f.daemon] != 0
	}
	return blocker, true
}

// weakSince is the release from which an ObjectMonitor keeps its object by a WeakHandle (16
// share/runtime/objectMonitor.hpp).
const weakSince = 16

// monitorObject returns the object that a monitor belongs to.
func (c *Dump) monitorObject(monitor uint64) (Object, bool) {
	ts := c.ts
	v, ok := ts.vm.Mem.Member(monitor, ts.vm.Field("ObjectMonitor::_object"))
	if !ok || v == 0 {
		return Object{}, false
	}
	if ts.vm.Major >= weakSince {
		if v, ok = ts.vm.Mem.U64(v); !ok || v == 0 {
			return Object{}, false
		}
	}
	return c.object(ts.heap.Address(v))
}

// wait finds what a thread waits for, from the monitors that it waits to enter and waits on, and
// from the object that it is parked for; each may be 0.
func (c *Dump) wait(state JavaState, pending, waiting, blocker uint64) Wait {
	kind, monitor := WaitsOn, waiting
	switch {
	case pending != 0 && state != JavaRunnable:
		kind, monitor = WaitsToLock, pending
	case waiting != 0 && state == JavaBlocked: // it was notified and wants the lock back
		kind = WaitsToLock
	case waiting != 0:
	case blocker != 0 && (state == JavaParked || state == JavaTimedParked):
		if o, klass, ok := c.objectAndClass(blocker); ok {
			by, known := c.owners[blocker]
			if !known {
				by = c.exclusiveOwner(blocker, klass)
				c.owners[blocker] = by
			}
			return Wait{Kind: WaitsParked, Object: o, Owner: by.tid, Virtual: by.virtual}
		}
		return Wait{}
	default:
		return Wait{}
	}
	o, ok := c.monitorObject(monitor)
	if !ok {
		return Wait{}
	}
	return Wait{Kind: kind, Object: o, Owner: c.monitorOwner(monitor, o)}
}

// exclusiveOwner returns the thread that holds a lock of java.util.concurrent, from the field of
// AbstractOwnableSynchronizer that records it; none if the object, of class klass, is no such lock
// or nobody holds it.
func (c *Dump) exclusiveOwner(oop, klass uint64) (by owner) {
	ts := c.ts
	f, ok := ts.heap.FieldOfClass(klass, "exclusiveOwnerThread")
	if !ok || f.Signature != "Ljava/lang/Thread;" {
		return by
	}
	thread, ok := ts.heap.Reference(oop + f.Offset)
	if !ok {
		return by
	}
	by.tid = c.carries(thread)
	if by.tid == 0 {
		if by = c.virtualOwner(thread); by.virtual.ID == 0 {
			return owner{}
		}
		// The collector may have moved it, or another thread may have taken it, meanwhile.
		if again, ok := ts.heap.Reference(oop + f.Offset); !ok || again != thread {
			return owner{}
		}
	}
	return by
}

// carries returns the operating system thread of a java.lang.Thread object, 0 for a virtual one.
func (c *Dump) carries(thread uint64) uint32 {
	addr, ok := c.ts.vm.Mem.U64(thread + c.ts.layout.eetop)
	if !ok {
		return 0
	}
	return c.byAddr[addr]
}

// virtualOwner returns a virtual thread, with the thread that runs it if one does.
func (c *Dump) virtualOwner(thread uint64) (by owner) {
	ts := c.ts
	carrier, ok1 := ts.heap.FieldOf(thread, "carrierThread")
	id, ok2 := ts.heap.FieldOf(thread, "tid")
	if !ok1 || !ok2 || carrier.Signature != "Ljava/lang/Thread;" || id.Signature != "J" {
		return by
	}
	v, ok := ts.i64(thread + id.Offset)
	if !ok || v <= 0 {
		return by
	}
	by.virtual.ID = uint64(v)
	if f, ok := ts.heap.FieldOf(thread, "name"); ok && f.Signature == "Ljava/lang/String;" {
		if s, ok := ts.heap.Reference(thread + f.Offset); ok {
			by.virtual.Name, _ = ts.heap.JavaString(s)
		}
	}
	if at, ok := ts.heap.Reference(thread + carrier.Offset); ok {
		by.tid = c.carries(at)
	}
	return by
}

// compiling finds what a compiler thread is compiling.
func (ts *Threads) compiling(info *Info, thread uint64) {
	t := ts.vm.Tables
	if ts.off.compilerEnv == vmstructs.Absent {
		return
	}
	env, ok := ts.vm.Mem.U64(thread + ts.off.compilerEnv)
	if !ok || env == 0 {
		return
	}
	task, ok := ts.vm.Mem.Member(env, t.Field("ciEnv::_task"))
	if !ok || task == 0 {
		return
	}
	ptr, ok := ts.vm.Mem.Member(task, t.Field("CompileTask::_method"))
	if !ok {
		return
	}
	name, ok := ts.methodName(ptr)
	tier, ok2 := ts.vm.Mem.Member(task, vmstructs.Field{OK: true, Offset: t.Field("CompileTask::_comp_level").Offset, Width: 4})
	if !ok || !ok2 || tier > 4 {
		return
	}
	info.Compiling, info.Tier = name, int(tier)
	if bci, ok := ts.vm.Mem.Member(task, vmstructs.Field{OK: true, Offset: t.Field("CompileTask::_osr_bci").Offset, Width: 4, Signed: true}); ok {
		info.Loop = int64(bci) >= 0
	}
}
