package hotspot

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

// ThreadInfo is what the VM knows about one of its threads.
type ThreadInfo struct {
	State    ThreadState
	Name     string
	ID       int64 // java.lang.Thread.threadId
	Daemon   bool
	Priority int
	Kind     ThreadKind
	Wait     Wait

	Compiling string // the method that a compiler thread is compiling: java.util.HashMap.get; "" for none
	Tier      int    // tier that it is compiled for: 1 to 4
	Loop      bool   // it is compiled to be entered in a loop (on-stack replacement)
}

// Thread reads what a thread is and is doing now; false if it is not a Java thread. Anything that
// could not be read reliably is left out.
func (c *ThreadDump) Thread(tid uint32) (info ThreadInfo, ok bool) {
	i, ok := c.byTID[tid]
	if !ok {
		return info, false
	}
	vm, t := c.vm, &c.threads[i]
	info.Kind = KindJava
	r := threadRead{vm: vm, t: t}
	r.read()
	if vm.off.threadState != absent {
		info.State.VM = vmState(binary.LittleEndian.Uint32(r.words[0][:]))
	}
	if vm.off.threadObj == absent || !vm.heap.OK {
		return info, true
	}
	info.Name, _ = c.Name(tid)
	info.Kind = kindOfJava(info.Name)
	vm.heap.Refresh()
	blocker, known := uint64(0), false
	if r.object != nil {
		blocker, known = vm.threadObject(&info, t, r.object, r.holder)
	}
	for try := 0; try < 3 && !known; try++ { // the collector may move the object meanwhile
		blocker, known = vm.readThread(&info, t)
	}
	if info.Kind == KindCompiler {
		vm.compiling(&info, t.addr)
	}
	info.Wait = c.wait(info.State.Java, vmstructs.Word(r.words[1][:], 0), vmstructs.Word(r.words[2][:], 0), blocker)
	if info.Wait.Owner == tid {
		info.Wait = Wait{} // it has just got it
	}
	return info, true
}

// threadRead is what is read of a thread together.
type threadRead struct {
	vm    *VM
	t     *dumpedThread
	words [3][8]byte // state, monitor to enter, monitor waited on

	object, holder []byte // nil: not where they were when the names were read
}

// read reads all of it, with one system call if possible.
func (r *threadRead) read() {
	vm, t := r.vm, r.t
	var room [len(r.words) + 4]target.Read
	reqs := room[:0]
	for i, off := range [...]uint64{vm.off.threadState, vm.off.pendingMonitor, vm.off.waitingMonitor} {
		if off != absent {
			reqs = append(reqs, target.Read{Addr: t.addr + off, Buf: r.words[i][:]})
		}
	}
	f := &vm.threads.layout
	if !vm.heap.Handles || !f.ok || t.oop == 0 || f.holder != absent && t.holder == 0 {
		vm.Mem.ReadV(reqs)
		return
	}
	// The object is read between two reads of the reference to it.
	var before, after [8]byte
	object, holder := make([]byte, f.span), make([]byte, f.holderSpan)
	n := len(reqs)
	reqs = append(reqs, target.Read{Addr: t.object, Buf: before[:]}, target.Read{Addr: t.oop, Buf: object})
	if f.holder != absent {
		reqs = append(reqs, target.Read{Addr: t.holder, Buf: holder})
	}
	reqs = append(reqs, target.Read{Addr: t.object, Buf: after[:]})
	vm.Mem.ReadV(reqs)
	for _, q := range reqs[n:] {
		if !q.OK {
			return
		}
	}
	if before != after || vm.heap.Address(vmstructs.Word(before[:], 0)) != t.oop {
		return
	}
	if f.holder != absent {
		if at, _ := vm.heap.ReferenceIn(object, f.holder); at != t.holder {
			return
		}
	}
	r.object, r.holder = object, holder
}

// readThread reads a thread's object, and returns the object that it is parked for; false unless
// the object points back to the thread and is not moved meanwhile.
func (vm *VM) readThread(info *ThreadInfo, t *dumpedThread) (blocker uint64, ok bool) {
	oop, ok := vm.heap.Handle(t.object)
	if !ok {
		return 0, false
	}
	f := vm.threadLayout(oop)
	if !f.ok {
		return 0, false
	}
	b := make([]byte, f.span)
	if vm.Mem.Reader.ReadAt(b, oop) != nil {
		return 0, false
	}
	var in []byte
	if f.holder != absent {
		holder, ok := vm.heap.ReferenceIn(b, f.holder)
		if in = make([]byte, f.holderSpan); !ok || vm.Mem.Reader.ReadAt(in, holder) != nil {
			return 0, false
		}
	}
	if blocker, ok = vm.threadObject(info, t, b, in); !ok {
		return 0, false
	}
	again, ok := vm.heap.Handle(t.object)
	return blocker, ok && again == oop
}

// threadObject decodes a thread's object and its holder, and returns the object that the thread is
// parked for; false unless the object points back to the thread.
func (vm *VM) threadObject(info *ThreadInfo, t *dumpedThread, object, holder []byte) (blocker uint64, ok bool) {
	f := &vm.threads.layout
	if vmstructs.Word(object, f.eetop) != t.addr {
		return 0, false
	}
	if f.id != absent {
		info.ID = int64(vmstructs.Word(object, f.id))
	}
	if f.parkBlocker != absent {
		blocker, _ = vm.heap.ReferenceIn(object, f.parkBlocker)
	}
	in := object
	if f.holder != absent {
		in = holder
	}
	info.State.Java = javaStates[binary.LittleEndian.Uint32(in[f.status:])]
	if f.prio != absent {
		info.Priority = int(int32(binary.LittleEndian.Uint32(in[f.prio:])))
	}
	if f.daemon != absent {
		info.Daemon = in[f.daemon] != 0
	}
	return blocker, true
}

// weakSince is the release from which an ObjectMonitor keeps its object by a WeakHandle (16
// share/runtime/objectMonitor.hpp).
const weakSince = 16

// monitorObject returns the object that a monitor belongs to.
func (c *ThreadDump) monitorObject(monitor uint64) (Object, bool) {
	vm := c.vm
	v, ok := vm.Mem.Member(monitor, vm.Field("ObjectMonitor::_object"))
	if !ok || v == 0 {
		return Object{}, false
	}
	if vm.Major >= weakSince {
		if v, ok = vm.Mem.U64(v); !ok || v == 0 {
			return Object{}, false
		}
	}
	return c.object(vm.heap.Address(v))
}

// wait finds what a thread waits for, from the monitors that it waits to enter and waits on, and
// from the object that it is parked for; each may be 0.
func (c *ThreadDump) wait(state JavaState, pending, waiting, blocker uint64) Wait {
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
func (c *ThreadDump) exclusiveOwner(oop, klass uint64) (by owner) {
	vm := c.vm
	f, ok := vm.heap.FieldOfClass(klass, "exclusiveOwnerThread")
	if !ok || f.Signature != "Ljava/lang/Thread;" {
		return by
	}
	thread, ok := vm.heap.Reference(oop + f.Offset)
	if !ok {
		return by
	}
	by.tid = c.carries(thread)
	if by.tid == 0 {
		if by = c.virtualOwner(thread); by.virtual.ID == 0 {
			return owner{}
		}
		// The collector may have moved it, or another thread may have taken it, meanwhile.
		if again, ok := vm.heap.Reference(oop + f.Offset); !ok || again != thread {
			return owner{}
		}
	}
	return by
}

// carries returns the operating system thread of a java.lang.Thread object, 0 for a virtual one.
func (c *ThreadDump) carries(thread uint64) uint32 {
	addr, ok := c.vm.Mem.U64(thread + c.vm.threads.layout.eetop)
	if !ok {
		return 0
	}
	return c.byAddr[addr]
}

// virtualOwner returns a virtual thread, with the thread that runs it if one does.
func (c *ThreadDump) virtualOwner(thread uint64) (by owner) {
	vm := c.vm
	carrier, ok1 := vm.heap.FieldOf(thread, "carrierThread")
	id, ok2 := vm.heap.FieldOf(thread, "tid")
	if !ok1 || !ok2 || carrier.Signature != "Ljava/lang/Thread;" || id.Signature != "J" {
		return by
	}
	v, ok := vm.i64(thread + id.Offset)
	if !ok || v <= 0 {
		return by
	}
	by.virtual.ID = uint64(v)
	if f, ok := vm.heap.FieldOf(thread, "name"); ok && f.Signature == "Ljava/lang/String;" {
		if s, ok := vm.heap.Reference(thread + f.Offset); ok {
			by.virtual.Name, _ = vm.heap.JavaString(s)
		}
	}
	if at, ok := vm.heap.Reference(thread + carrier.Offset); ok {
		by.tid = c.carries(at)
	}
	return by
}

// compiling finds what a compiler thread is compiling.
func (vm *VM) compiling(info *ThreadInfo, thread uint64) {
	t := vm.Tables
	if vm.off.compilerEnv == absent {
		return
	}
	env, ok := vm.Mem.U64(thread + vm.off.compilerEnv)
	if !ok || env == 0 {
		return
	}
	task, ok := vm.Mem.Member(env, t.Field("ciEnv::_task"))
	if !ok || task == 0 {
		return
	}
	ptr, ok := vm.Mem.Member(task, t.Field("CompileTask::_method"))
	if !ok {
		return
	}
	id, ok := vm.method(ptr)
	m := vm.methodAt(id)
	tier, ok2 := vm.Mem.Member(task, vmstructs.Field{OK: true, Offset: t.Field("CompileTask::_comp_level").Offset, Width: 4})
	if !ok || !ok2 || m == nil || tier > 4 {
		return
	}
	info.Compiling, info.Tier = m.function, int(tier)
	if bci, ok := vm.Mem.Member(task, vmstructs.Field{OK: true, Offset: t.Field("CompileTask::_osr_bci").Offset, Width: 4, Signed: true}); ok {
		info.Loop = int64(bci) >= 0
	}
}
