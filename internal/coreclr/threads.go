package coreclr

import (
	"encoding/binary"
	"unicode/utf16"

	"github.com/candid-profiler/candid/internal/symbol"
)

// Bounds of the list of threads.
const (
	maxThreads    = 1 << 16
	maxThreadName = 512 // characters
)

// Thread is a thread that has run, or may run, managed code.
type Thread struct {
	TID  uint32
	ID   uint32 // the runtime's number for it
	Name string // "" if it has none, or it could not be read
	at   uint64 // the runtime's Thread
}

// Threads lists the runtime's threads. It is false if not all of them could be read.
func (vm *VM) Threads() ([]Thread, bool) {
	at, ok := vm.global("ThreadStore", vm.lay.slots.threadStore)
	if !ok || vm.lay.thread.link == 0 || vm.lay.store.first == 0 {
		return nil, false
	}
	store, err := vm.word(at)
	if err != nil || store == 0 {
		return nil, false
	}
	l := &vm.lay.thread
	var out []Thread
	link, err := vm.word(store + vm.lay.store.first)
	for n := 0; err == nil && link != 0 && n < maxThreads; n++ {
		thread := link - l.link
		var tid, id [8]byte
		if vm.mem.ReadAt(tid[:], thread+l.os) != nil || vm.mem.ReadAt(id[:4], thread+l.id) != nil {
			return out, false
		}
		if own, ok := vm.tid(binary.LittleEndian.Uint64(tid[:])); ok {
			out = append(out, Thread{TID: own, ID: binary.LittleEndian.Uint32(id[:]), Name: vm.threadName(thread), at: thread})
		}
		link, err = vm.word(link)
	}
	return out, err == nil && link == 0
}

// tid returns candid's id of a thread by the one that the runtime knows; false if there is no such thread.
func (vm *VM) tid(known uint64) (uint32, bool) {
	switch {
	case known == 0 || known >= 1<<32:
		return 0, false
	case vm.system.TID != nil:
		return vm.system.TID(uint32(known))
	}
	return uint32(known), true
}

// word reads a word of the process as it is now.
func (vm *VM) word(at uint64) (uint64, error) {
	var b [8]byte
	err := vm.mem.ReadAt(b[:], at)
	return binary.LittleEndian.Uint64(b[:]), err
}

// threadName returns the name that the program gave a thread. It is in the object that stands for
// the thread, which the collector may move at any time: the object must refer back to the thread,
// and its place must be the same after the name was read. The name is the first field that refers
// to a string.
func (vm *VM) threadName(thread uint64) string {
	handle, err := vm.word(thread + vm.lay.thread.handle)
	if err != nil || handle == 0 || vm.lay.thread.handle == 0 {
		return ""
	}
	object, err := vm.word(handle &^ 1)
	if err != nil || object == 0 || object&7 != 0 {
		return ""
	}
	strings, ok := vm.global("StringMethodTable", vm.lay.slots.strings)
	if !ok {
		return ""
	}
	str, err := vm.word(strings)
	const words = 12 // of System.Threading.Thread: references first, then the thread's address
	var fields [8 * words]byte
	if err != nil || str == 0 || vm.mem.ReadAt(fields[:], object+8) != nil {
		return ""
	}
	name, back := "", false
	for i := 0; i < words; i++ {
		v := binary.LittleEndian.Uint64(fields[8*i:])
		if back = v == thread; back {
			break
		}
		if name != "" || v == 0 || v&7 != 0 {
			continue
		}
		if t, err := vm.word(v); err == nil && t&^7 == str {
			name = vm.text(v)
		}
	}
	if again, err := vm.word(handle &^ 1); !back || err != nil || again != object {
		return ""
	}
	return symbol.Printable(name)
}

// text reads a managed string: its length, then 16-bit characters.
func (vm *VM) text(object uint64) string {
	length, first := uint64(8), uint64(12)
	if vm.desc != nil {
		if v, ok := vm.desc.field("String", "m_StringLength"); ok {
			length = v
		}
		if v, ok := vm.desc.field("String", "m_FirstChar"); ok {
			first = v
		}
	}
	var b [4]byte
	if vm.mem.ReadAt(b[:], object+length) != nil {
		return ""
	}
	n := min(binary.LittleEndian.Uint32(b[:]), maxThreadName)
	chars := make([]byte, 2*n)
	if vm.mem.ReadAt(chars, object+first) != nil {
		return ""
	}
	out := make([]uint16, n)
	for i := range out {
		out[i] = binary.LittleEndian.Uint16(chars[2*i:])
	}
	return string(utf16.Decode(out))
}
