package coreclr

import "encoding/binary"

// Object is an object of the heap. The collector may move it at any time.
type Object struct {
	Addr  uint64
	Class string
}

// Monitor is the lock of an object, or an object that is a Lock, and how a thread waits for it.
type Monitor struct {
	Object Object
	Wait   bool   // for a notification, Monitor.Wait, and not to enter it
	Owner  uint32 // tid of the thread that is in it; 0: none, or it cannot be told
}

// ThreadDump is the list of threads at one moment. What a thread waits for is read when it is asked
// for.
type ThreadDump struct {
	vm    *VM
	Whole bool // they are all threads of the runtime
	list  []Thread
	byTID map[uint32]*Thread
	held  map[uint32][]Object // by tid
	locks map[uint32]lockWait // by tid, what ReadStack has found
}

// DumpThreads reads the list of threads.
func (vm *VM) DumpThreads() *ThreadDump {
	d := &ThreadDump{vm: vm, byTID: map[uint32]*Thread{}, locks: map[uint32]lockWait{}}
	d.list, d.Whole = vm.Threads()
	for i := range d.list {
		t := &d.list[i]
		d.byTID[t.TID] = t
	}
	d.ReadLocks()
	return d
}

// Thread returns the thread with a tid; false if it is not one of the runtime's.
func (d *ThreadDump) Thread(tid uint32) (Thread, bool) {
	t := d.byTID[tid]
	if t == nil {
		return Thread{}, false
	}
	return *t, true
}

// ReadLocks reads again which monitors and Locks that threads wait to enter are held by whom.
func (d *ThreadDump) ReadLocks() {
	d.held = map[uint32][]Object{}
	seen := map[uint64]bool{}
	for i := range d.list {
		if m, ok := d.Blocked(d.list[i].TID); ok && m.Owner != 0 && !seen[m.Object.Addr] {
			seen[m.Object.Addr] = true
			d.held[m.Owner] = append(d.held[m.Owner], m.Object)
		}
	}
}

// Holds returns the objects whose monitors a thread holds, and the Locks, as far as others wait to enter them.
func (d *ThreadDump) Holds(tid uint32) []Object { return d.held[tid] }

// Kinds of what a thread waits for (src/coreclr/vm/threaddebugblockinginfo.h: DebugBlockingItemType).
const (
	waitsToEnter = iota
	waitsForNotification
)

// lockedState is the bit of a monitor's state that says that a thread is in it
// (src/coreclr/vm/syncblk.h: AwareLock::LockState).
const lockedState = 1

// Blocked reads which monitor or Lock a thread waits for now; false if it waits for none.
func (d *ThreadDump) Blocked(tid uint32) (Monitor, bool) {
	if m, ok := d.inMonitor(tid); ok {
		return m, true
	}
	return d.waitsForLock(tid)
}

// inMonitor reads which monitor a thread waits for now; false if it waits for none. While a thread waits
// for a monitor, the runtime keeps an item for debuggers on the thread's stack, to which the Thread
// refers. It leads to the monitor, which is the beginning of a SyncBlock, that to its entry in the table
// of all, and the entry to the object.
func (d *ThreadDump) inMonitor(tid uint32) (m Monitor, ok bool) {
	vm, t := d.vm, d.byTID[tid]
	l := &vm.lay.monitor
	table, known := vm.global("SyncTableEntries", vm.lay.slots.syncTable)
	if t == nil || !known || vm.lay.thread.blocking == 0 {
		return m, false
	}
	item, err := vm.word(t.at + vm.lay.thread.blocking)
	if err != nil || item == 0 || item&7 != 0 {
		return m, false
	}
	block, err1 := vm.word(item)
	kind, err2 := vm.word(item + l.kind)
	var head [maxMonitor]byte
	if err1 != nil || err2 != nil || block == 0 || block&7 != 0 || vm.mem.ReadAt(head[:], block) != nil {
		return m, false
	}
	le := binary.LittleEndian
	const precious = 1 << 31
	index := le.Uint32(head[l.index:]) &^ precious
	entries, err := vm.word(table)
	if err != nil || entries == 0 || index == 0 {
		return m, false
	}
	// The entry leads back: otherwise it is no monitor.
	back, err1 := vm.word(entries + syncEntry*uint64(index))
	object, err2 := vm.word(entries + syncEntry*uint64(index) + 8)
	if err1 != nil || err2 != nil || back != block || object == 0 || object&7 != 0 {
		return m, false
	}
	m.Object.Addr = object
	class, err := vm.word(object)
	if err == nil {
		m.Object.Class = vm.typeName(class&^7, 0)
	}
	switch uint32(kind) {
	case waitsToEnter:
		if le.Uint32(head[:])&lockedState != 0 {
			if owner, ok := vm.tid(le.Uint64(head[l.owner:])); ok && d.byTID[owner] != nil {
				m.Owner = owner
			}
		}
	case waitsForNotification:
		m.Wait = true
	default:
		return m, false
	}
	return m, true
}

const (
	syncEntry  = 16 // bytes of an entry of the table: SyncBlock, Object
	maxMonitor = 48
)

// global returns the address of one of the runtime's variables: by the descriptor's name for it, or
// without a descriptor by its place in g_dacTable; false if it has neither.
func (vm *VM) global(name string, slot uint64) (uint64, bool) {
	if vm.desc != nil {
		return vm.desc.pointer(name)
	}
	if slot == 0 {
		return 0, false
	}
	at, err := vm.word(vm.dac + 8*slot)
	return at, err == nil && at != 0
}
