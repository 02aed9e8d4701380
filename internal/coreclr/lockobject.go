package coreclr

import (
	"encoding/binary"
	"strings"

	"github.com/candid-profiler/candid/internal/walk"
)

// lockClass is the type of .NET 9 and later whose objects are locks. The runtime knows nothing of them.
const lockClass = "System.Threading.Lock"

// lockWait is where a thread keeps the Lock that it waits to enter.
type lockWait struct {
	slot  uint64 // a word of its stack
	table uint64 // the MethodTable of Lock
}

// lockFields are the fields of a Lock, as offsets in the object.
type lockFields struct {
	owner, state, event uint64
	ok                  bool
}

// maxLockStack bounds how much of a stack is searched for a Lock: the frames between the kernel and the
// method that waits.
const maxLockStack = 16 << 10

// ReadStack looks for the Lock that a waiting thread is about to enter. Its stack from sp up is stack, and
// frames are those that were walked on it. The method of Lock that waits uses the object afterwards, so it
// is kept in its frame, or in a register that a function which it called has saved. What else is there may
// be left from before, so the Lock must be the only one there that is waited for; Blocked says whose
// it is.
func (d *ThreadDump) ReadStack(tid uint32, frames []walk.Frame, sp uint64, stack []byte) {
	delete(d.locks, tid)
	vm := d.vm
	inner, table := -1, uint64(0)
	for i := range frames {
		if table = vm.lockTable(&frames[i]); table != 0 {
			inner = i
			break
		}
	}
	if inner <= 0 || inner+1 >= len(frames) {
		return // no method of Lock waits
	}
	// The address at which the caller of that method goes on ends the search.
	stack = stack[:min(len(stack), maxLockStack)]
	at, word := 0, func(i int) uint64 { return binary.LittleEndian.Uint64(stack[i:]) }
	for _, f := range frames[1 : inner+2] {
		if f.Kind == walk.KindKernel || f.Flags&walk.ReturnAddress == 0 {
			continue
		}
		for ; ; at += 8 {
			if at+8 > len(stack) {
				return
			}
			if word(at) == f.PC {
				break
			}
		}
		at += 8
	}
	found := lockWait{table: table}
	object := uint64(0)
	for i := 0; i+8 <= at; i += 8 {
		v := word(i)
		if v == object {
			continue
		}
		if _, ok := vm.lockState(v, table); !ok {
			continue
		}
		if object != 0 {
			return // it cannot be told which
		}
		object, found.slot = v, sp+uint64(i)
	}
	if object != 0 {
		d.locks[tid] = found
	}
}

// lockTable returns the MethodTable of Lock if a frame is one of its methods, else 0.
func (vm *VM) lockTable(f *walk.Frame) uint64 {
	pc := f.PC
	if f.Flags&walk.ReturnAddress != 0 {
		pc--
	}
	e := vm.at(pc)
	if e == nil || e.code == nil || e.code.method == 0 || !strings.HasPrefix(vm.name(e.code).function, lockClass+".") {
		return 0
	}
	m, ok := vm.methodDesc(e.code.method)
	if !ok || vm.typeName(m.table, 0) != lockClass || vm.moduleAt(vm.methodTable(m.table).module).name != "System.Private.CoreLib" {
		return 0
	}
	return m.table
}

// lockState reads the state of the Lock at an address: whose it is by the system's number for the thread, 0
// if it is nobody's. It is false if no thread waits for it or it is no Lock.
func (vm *VM) lockState(at, table uint64) (owner uint32, ok bool) {
	if at == 0 || at&7 != 0 {
		return 0, false
	}
	const most = 64
	var b [most]byte
	le := binary.LittleEndian
	// The collector marks objects in the lowest bits of the first word.
	if vm.mem.ReadAt(b[:8], at) != nil || le.Uint64(b[:])&^7 != table {
		return 0, false
	}
	f := vm.fieldsOfLock(table)
	if !f.ok || max(f.owner, f.state)+4 > most || f.event+8 > most || vm.mem.ReadAt(b[:], at) != nil || le.Uint64(b[:])&^7 != table {
		return 0, false
	}
	// The number of waiting threads is above the other bits of the state (src/libraries/
	// System.Private.CoreLib/src/System/Threading/Lock.cs: State), and an event is made for the first.
	const locked, waiters = 1, ^uint32(1<<6 - 1)
	state := le.Uint32(b[f.state:])
	if state&waiters == 0 || le.Uint64(b[f.event:]) == 0 {
		return 0, false
	}
	if state&locked != 0 {
		owner = le.Uint32(b[f.owner:])
	}
	return owner, true
}

// fieldsOfLock returns where the fields of a Lock are.
func (vm *VM) fieldsOfLock(table uint64) lockFields {
	if !vm.lockFields.ok {
		const header = 8
		of := vm.fieldsOf(table)
		owner, ok1 := of["_owningThreadId"]
		state, ok2 := of["_state"]
		event, ok3 := of["_waitEvent"]
		vm.lockFields = lockFields{owner: header + owner.off, state: header + state.off, event: header + event.off, ok: ok1 && ok2 && ok3}
	}
	return vm.lockFields
}

// waitsForLock reads which Lock a thread waits to enter now; false if it waits for none.
func (d *ThreadDump) waitsForLock(tid uint32) (m Monitor, ok bool) {
	w, ok := d.locks[tid]
	if !ok {
		return m, false
	}
	object, err := d.vm.word(w.slot)
	if err != nil {
		return m, false
	}
	owner, ok := d.vm.lockState(object, w.table)
	if !ok {
		return m, false
	}
	m.Object = Object{Addr: object, Class: lockClass}
	if tid, ok := d.vm.tid(uint64(owner)); ok && d.byTID[tid] != nil {
		m.Owner = tid
	}
	return m, true
}
