package threads

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/hotspot/metadata"
	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/javaname"
	"github.com/candid-profiler/candid/internal/target"
)

// Dump is the VM's threads at one moment, with what is needed to tell who holds a lock. Its
// information about a waiting thread stays true for as long as the thread waits; ReadLocks reads
// again who holds what.
type Dump struct {
	ts      *Threads
	threads []dumpedThread
	byTID   map[uint32]int    // index into threads
	byAddr  map[uint64]uint32 // JavaThread to tid
	byOwner map[uint64]uint32 // 25+: what monitors call an owner to tid
	holds   map[uint32][]Object
	owners  map[uint64]owner  // of what threads wait for, by monitor or lock, so that all waiters get the same answer
	names   map[uint32]string // by tid, as far as they were requested
	named   bool              // readNames has been called
	classes map[uint64]string // by Klass
}

type dumpedThread struct {
	Thread
	low, high uint64 // stack
	vthread   uint64 // _vthread as stored; 0 if there is none
	state     VMState

	// oop and holder are where its object was when the names were read, and the object's holder; 0:
	// not known.
	oop, holder uint64
}

// DumpThreads reads the VM's list of threads and who owns which monitor. It costs some microseconds
// per thread.
func (ts *Threads) DumpThreads() *Dump {
	c := &Dump{
		ts: ts, byTID: make(map[uint32]int), byAddr: make(map[uint64]uint32),
		byOwner: make(map[uint64]uint32),
		names:   make(map[uint32]string), classes: make(map[uint64]string),
	}
	list, _ := ts.List()
	ts.heap.Begin()
	ts.heap.Refresh()
	const size = 40
	buf := make([]byte, size*len(list))
	reqs := make([]target.Read, 0, 5*len(list))
	want := func(t *Thread, off uint64, to []byte) {
		if off != vmstructs.Absent {
			reqs = append(reqs, target.Read{Addr: t.Addr + off, Buf: to})
		}
	}
	for i := range list {
		b := buf[size*i:][:size]
		want(&list[i], ts.off.stackBase, b[:8])
		want(&list[i], ts.off.stackSize, b[8:16])
		want(&list[i], ts.off.ownerID, b[16:24])
		want(&list[i], ts.off.threadState, b[24:28])
		want(&list[i], ts.off.vthread, b[32:40])
	}
	ts.vm.Mem.ReadV(reqs)
	for i, t := range list {
		b := buf[size*i:]
		th := dumpedThread{Thread: t, high: vmstructs.Word(b, 0), state: vmState(binary.LittleEndian.Uint32(b[24:])), vthread: vmstructs.Word(b, 32)}
		th.low = th.high - min(vmstructs.Word(b, 8), th.high)
		c.byTID[t.TID] = len(c.threads)
		c.threads = append(c.threads, th)
		c.byAddr[t.Addr] = t.TID
		if ts.off.ownerID != vmstructs.Absent {
			c.byOwner[vmstructs.Word(b, 16)] = t.TID
		}
	}
	c.readHolds()
	return c
}

// ReadLocks reads again who holds what. All later results of Thread and Holds refer to this one
// moment.
func (c *Dump) ReadLocks() {
	ts := c.ts
	ts.heap.Refresh()
	if ts.off.ownerID != vmstructs.Absent { // a carrier has the id of the virtual thread that it runs
		reqs, b := make([]target.Read, len(c.threads)), make([]byte, 8*len(c.threads))
		for i := range c.threads {
			reqs[i] = target.Read{Addr: c.threads[i].Addr + ts.off.ownerID, Buf: b[8*i:][:8]}
		}
		ts.vm.Mem.ReadV(reqs)
		clear(c.byOwner)
		for i := range reqs {
			if reqs[i].OK {
				c.byOwner[vmstructs.Word(b, 8*uint64(i))] = c.threads[i].TID
			}
		}
	}
	c.readHolds()
}

func (c *Dump) readHolds() {
	c.holds, c.owners = make(map[uint32][]Object), make(map[uint64]owner)
	if c.ts.heap.OK {
		c.readLockStacks()
		c.readMonitors()
	}
}

// Holds returns the objects whose monitors a thread owns, as far as the VM records that. Objects
// that a thread has locked without a monitor, by a word on its own stack as VMs up to 21 do, are
// not among them.
func (c *Dump) Holds(tid uint32) []Object { return c.holds[tid] }

// maxLockStack bounds the objects of one lock stack; HotSpot's have room for 8.
const maxLockStack = 64

// readLockStacks notes which objects each thread has locked without a monitor.
func (c *Dump) readLockStacks() {
	ts := c.ts
	top, base := ts.vm.Field("LockStack::_top"), ts.vm.Field("LockStack::_base[0]")
	if ts.off.lockStack == vmstructs.Absent || !top.OK || !base.OK {
		return
	}
	// The top is an offset from the start of the JavaThread.
	first := ts.off.lockStack + base.Offset
	tops := make([]byte, 4*len(c.threads))
	reqs := make([]target.Read, len(c.threads))
	for i, t := range c.threads {
		reqs[i] = target.Read{Addr: t.Addr + ts.off.lockStack + top.Offset, Buf: tops[4*i:][:4]}
	}
	ts.vm.Mem.ReadV(reqs)
	for i, t := range c.threads {
		end := uint64(binary.LittleEndian.Uint32(tops[4*i:]))
		if !reqs[i].OK || end <= first || end-first > 8*maxLockStack || (end-first)%8 != 0 {
			continue
		}
		raw := make([]byte, end-first)
		if ts.vm.Mem.Reader.ReadAt(raw, t.Addr+first) != nil {
			continue
		}
		for ; len(raw) >= 8; raw = raw[8:] {
			// References that a thread itself holds have no colour in generational ZGC.
			oop := vmstructs.Word(raw, 0)
			if !ts.heap.Generational() {
				oop = ts.heap.Address(oop)
			}
			if o, ok := c.object(oop); ok {
				c.hold(t.TID, o)
			}
		}
	}
}

// maxMonitors bounds how many monitors are looked at for their owners.
const maxMonitors = 50_000

// readMonitors notes who owns which monitor.
func (c *Dump) readMonitors() {
	t := c.ts.vm.Tables
	if head := t.Field("ObjectSynchronizer::_in_use_list"); head.OK {
		at, ok := c.ts.vm.Mem.U64(head.Addr + t.Field("MonitorList::_head").Offset)
		next := t.Field("ObjectMonitor::_next_om")
		for seen := make(map[uint64]bool); ok && at != 0 && !seen[at] && len(seen) < maxMonitors && next.OK; {
			seen[at] = true
			c.noteMonitor(at)
			at, ok = c.ts.vm.Mem.Member(at, next)
		}
		return
	}
	// Up to 11 they lie in blocks, whose first element only links the blocks.
	size := t.Sizes["PaddedObjectMonitor"]
	if size == 0 {
		size = t.Sizes["ObjectMonitor"]
	}
	block, next := t.Ints["ObjectSynchronizer::_BLOCKSIZE"], t.Field("ObjectMonitor::FreeNext")
	at, ok := c.ts.vm.Mem.Static(t.Field("ObjectSynchronizer::gBlockList"))
	if size == 0 || size > 4096 || block < 2 || block > 4096 || !next.OK {
		return
	}
	owner, object := t.Field("ObjectMonitor::_owner"), t.Field("ObjectMonitor::_object")
	raw := make([]byte, size*uint64(block))
	for n := 0; ok && at != 0 && n < maxMonitors; n += int(block) {
		if c.ts.vm.Mem.Reader.ReadAt(raw, at) != nil {
			return
		}
		for i := uint64(1); i < uint64(block); i++ {
			if m := raw[i*size:][:size]; owner.Load(m) != 0 && object.Load(m) != 0 {
				c.noteMonitor(at + i*size)
			}
		}
		at, ok = next.Load(raw[:size]), true
	}
}

func (c *Dump) noteMonitor(at uint64) {
	if v, ok := c.ts.vm.Mem.Member(at, c.ts.vm.Field("ObjectMonitor::_owner")); !ok || v == 0 {
		return // as most are
	}
	if o, ok := c.monitorObject(at); ok {
		c.monitorOwner(at, o)
	}
}

// owner is the holder of what others wait for.
type owner struct {
	tid     uint32 // 0: it cannot be told, or no operating system thread has it now
	virtual Virtual
}

// Virtual is a virtual thread; ID 0: none.
type Virtual struct {
	ID   uint64
	Name string
}

// monitorOwner returns the thread that owns a monitor of an object, 0 if none does or it cannot be
// told. The object is added to those that the thread holds.
func (c *Dump) monitorOwner(monitor uint64, o Object) uint32 {
	if known, ok := c.owners[monitor]; ok {
		return known.tid
	}
	tid := c.owner(monitor, o)
	c.owners[monitor] = owner{tid: tid}
	if tid != 0 {
		c.hold(tid, o)
	}
	return tid
}

// maxHolds bounds the objects that are listed for one thread.
const maxHolds = 1000

func (c *Dump) hold(tid uint32, o Object) {
	if h := c.holds[tid]; len(h) < maxHolds && !slices.Contains(h, o) {
		c.holds[tid] = append(h, o)
	}
}

// owner returns the thread that owns a monitor of an object, 0 if none does or it cannot be told.
func (c *Dump) owner(monitor uint64, o Object) uint32 {
	f := c.ts.vm.Field("ObjectMonitor::_owner")
	v, ok := c.ts.vm.Mem.Member(monitor, f)
	if !ok || v == 0 {
		return 0
	}
	if anonymous, has := c.ts.vm.Tables.Longs["ObjectMonitor::ANONYMOUS_OWNER"]; has && v == anonymous {
		// Another thread made the monitor, for an object that its owner had locked without one and
		// still has on its lock stack.
		for tid, held := range c.holds {
			if slices.Contains(held, o) {
				return tid
			}
		}
		return 0
	}
	if c.ts.off.ownerID != vmstructs.Absent && strings.HasPrefix(f.Type, "int64") {
		return c.byOwner[v]
	}
	if tid, ok := c.byAddr[v]; ok {
		return tid
	}
	// The owner had locked the object by a word on its own stack, before another
	// thread made a monitor of it.
	for i := range c.threads {
		if t := &c.threads[i]; v >= t.low && v < t.high {
			return t.TID
		}
	}
	return 0
}

// Name returns the Java name of a thread; false if it is not a Java thread or its name cannot be
// told for sure. It is read once.
func (c *Dump) Name(tid uint32) (string, bool) {
	i, ok := c.byTID[tid]
	if !ok || c.ts.off.threadObj == vmstructs.Absent || !c.ts.heap.OK {
		return "", false
	}
	if !c.named {
		c.named = true
		c.readNames()
	}
	if name, ok := c.names[tid]; ok {
		return name, true
	}
	name, ok := c.ts.steadyName(c.threads[i].Thread)
	if ok {
		c.names[tid] = name
	}
	return name, ok
}

// Virtual is Threads.VirtualThread, using the classes that the Dump has read.
func (c *Dump) Virtual(tid uint32) (id uint64, name string, ok bool) {
	ts := c.ts
	i, ok := c.byTID[tid]
	if !ok || ts.off.vthread == vmstructs.Absent || ts.off.threadObj == vmstructs.Absent || !ts.heap.OK {
		return 0, "", false
	}
	if c.runsItself(&c.threads[i]) {
		return 0, "", false
	}
	for range 3 {
		if id, name, sure := ts.mounted(c.threads[i].Addr); sure {
			return id, name, id != 0
		}
	}
	return 0, "", false
}

// Carriers reports whether the VM has carrier threads: it starts them for the first virtual thread.
func (c *Dump) Carriers() bool {
	ts := c.ts
	if ts.off.vthread == vmstructs.Absent || ts.off.threadObj == vmstructs.Absent || !ts.heap.OK {
		return false
	}
	for i := range c.threads {
		if oop, ok := ts.heap.Handle(c.threads[i].object); ok {
			if o, ok := c.object(oop); ok && o.Class == "jdk.internal.misc.CarrierThread" {
				return true
			}
		}
	}
	return false
}

// runsItself reports whether a thread certainly carries no virtual thread, with a single read.
func (c *Dump) runsItself(t *dumpedThread) bool {
	ts := c.ts
	if !ts.heap.Handles || t.object == 0 || t.vthread == 0 {
		return false
	}
	var b [4][8]byte
	reqs := [...]target.Read{
		{Addr: t.Addr + ts.off.threadObj, Buf: b[0][:]}, {Addr: t.Addr + ts.off.vthread, Buf: b[1][:]},
		{Addr: t.object, Buf: b[2][:]}, {Addr: t.vthread, Buf: b[3][:]},
	}
	if ts.vm.Mem.ReadV(reqs[:]) < len(reqs) || vmstructs.Word(b[0][:], 0) != t.object || vmstructs.Word(b[1][:], 0) != t.vthread {
		return false
	}
	own := vmstructs.Word(b[2][:], 0)
	return own != 0 && own == vmstructs.Word(b[3][:], 0)
}

// object returns an object with the name of its class; false if there is no object at oop.
func (c *Dump) object(oop uint64) (Object, bool) {
	o, _, ok := c.objectAndClass(oop)
	return o, ok
}

// objectAndClass is object and also returns the Klass.
func (c *Dump) objectAndClass(oop uint64) (o Object, klass uint64, ok bool) {
	if oop == 0 || oop&7 != 0 {
		return Object{}, 0, false
	}
	klass, ok = c.ts.heap.KlassOf(oop)
	if !ok || klass == 0 || klass&7 != 0 {
		return Object{}, 0, false
	}
	name, ok := c.classes[klass]
	if !ok {
		if name = c.ts.heap.ClassName(klass); name == "" {
			return Object{}, 0, false
		}
		_, name = javaname.Class(name)
		name = metadata.Printable(name)
		c.classes[klass] = name
	}
	return Object{Addr: oop, Class: name}, klass, true
}

// InJava lists the threads that a safepoint would have to wait for: those in
// Java code or in the VM.
func (c *Dump) InJava() []uint32 {
	var out []uint32
	for i := range c.threads {
		if s := c.threads[i].state; s == VMInJava || s == VMInVM {
			out = append(out, c.threads[i].TID)
		}
	}
	return out
}
