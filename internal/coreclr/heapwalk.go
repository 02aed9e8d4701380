package coreclr

import (
	"encoding/binary"
	"time"
)

// heapReader reads all objects of the heap and keeps those that tell of pending asynchronous methods.
type heapReader struct {
	vm     *VM
	free   uint64 // MethodTable of what is between objects
	task   uint64 // MethodTable of Task, 0 until it was seen
	flags  uint64 // offsets in a Task: m_stateFlags, m_continuationObject; 0: not known
	next   uint64
	types  map[uint64]*heapType
	recent [1 << 12]*heapType
	// machines counts the types of state machines.
	machines int
	piece    []byte
	found    foundObjects

	until   time.Time   // when to give up
	stopped func() bool // whether to give up before; nil: never
	bytes   uint64      // how much may still be read
	read    uint64      // how much was read
}

// over reports whether to give up.
func (h *heapReader) over() bool {
	return h.stopped != nil && h.stopped() || !time.Now().Before(h.until)
}

// foundObjects are objects that were seen, each as it was then.
type foundObjects struct {
	boxes map[uint64]*heapType    // by address
	tasks map[uint64]continuation // tasks that had not ended and that something awaits, by address
	full  bool                    // there are more
}

// continuation is what a task calls when it has ended.
type continuation struct{ table, to uint64 }

// Bounds of what is kept.
const (
	pieceSize = 1 << 20
	maxBoxes  = 1 << 18
	maxTasks  = 1 << 19
)

// stop is why the heap was not read to its end.
type stop uint8

const (
	stopNot   stop = iota
	stopTime       // the time is over, or it was interrupted
	stopBytes      // the bound of bytes was reached
)

func newHeapReader(vm *VM, until time.Time, bytes uint64) *heapReader {
	h := &heapReader{vm: vm, types: map[uint64]*heapType{}, piece: make([]byte, pieceSize), until: until, bytes: bytes}
	h.found.boxes, h.found.tasks = map[uint64]*heapType{}, map[uint64]continuation{}
	if vm.desc != nil {
		if at, ok := vm.desc.pointer("FreeObjectMethodTable"); ok {
			h.free, _ = vm.word(at)
		}
	}
	return h
}

// pass reads all regions once. It returns how many of them were not understood to their end.
func (h *heapReader) pass(m *heapMap) (broken int, why stop) {
	for table, t := range h.types { // what was no type may be one now
		if t.bad {
			delete(h.types, table)
		}
	}
	clear(h.recent[:])
	for _, r := range m.regions {
		ok, why := h.region(r, m.gaps)
		if why != stopNot {
			return broken, why
		}
		if !ok {
			broken++
		}
	}
	return broken, stopNot
}

// region reads the objects of a region. It is false if something there is no object.
func (h *heapReader) region(r region, gaps []region) (ok bool, why stop) {
	for at := r.start; at < r.end && r.end-at >= minObject; {
		if h.over() {
			return false, stopTime
		}
		n := min(uint64(len(h.piece)), r.end-at)
		if n > h.bytes {
			return false, stopBytes
		}
		h.bytes, h.read = h.bytes-n, h.read+n
		b := h.piece[:n]
		if h.vm.mem.ReadAt(b, at) != nil {
			return false, stopNot
		}
		next, ok := h.objects(b, at, r.end, gaps)
		if !ok || next <= at {
			return false, stopNot
		}
		at = next
	}
	return true, stopNot
}

// objects looks at the objects in b, which is memory from base on. It returns where the first object begins
// that is not in b whole as far as that matters, at most end; false if something is no object. What threads
// allocate in is left out: gaps, and memory that is still zero because a thread has begun to allocate there
// since the gaps were read.
func (h *heapReader) objects(b []byte, base, end uint64, gaps []region) (next uint64, ok bool) {
	le := binary.LittleEndian
	size := uint64(len(b))
	zeros := false
	gap := 0
	for pos := uint64(0); ; {
		for gap < len(gaps) && gaps[gap].end <= base+pos {
			gap++
		}
		if gap < len(gaps) && gaps[gap].start <= base+pos {
			pos, zeros = gaps[gap].end-base, false
		}
		if pos >= end-base {
			return end, true
		}
		if pos+16 > size {
			return base + pos, true
		}
		word := le.Uint64(b[pos:])
		if word == 0 {
			zeros = true
			pos += 8
			continue
		}
		// The collector marks objects in the lowest bits.
		t := h.typeAt(word &^ 7)
		if t.bad {
			if zeros { // it may be the word before an object, which holds a hash code or a lock
				zeros = false
				pos += 8
				continue
			}
			return base + pos, false
		}
		zeros = false
		length := t.base
		switch {
		case t.free:
			count := le.Uint64(b[pos+8:])
			if count > maxRegion {
				return base + pos, false
			}
			length += count
		case t.component != 0:
			length += t.component * uint64(le.Uint32(b[pos+8:]))
		}
		length = max((length+7)&^7, minObject)
		if length > end-base-pos {
			return base + pos, false
		}
		if t.task || t.box != nil {
			if length > size-pos {
				return base + pos, pos > 0 // it is whole in the next piece, if it is in one at all
			}
			h.keep(t, base+pos, b[pos:pos+length])
		}
		pos += length
	}
}

// keep keeps an object if it may be of interest.
func (h *heapReader) keep(t *heapType, addr uint64, b []byte) {
	f := &h.found
	if t.box != nil {
		if !t.box.unknown && t.box.machine == 0 {
			if _, waits := t.box.waits(b, addr); !waits {
				return // it runs, or has ended
			}
		}
		if len(f.boxes) < maxBoxes {
			f.boxes[addr] = t
		} else {
			f.full = true
		}
	}
	if !t.task || h.flags == 0 || h.next+8 > uint64(len(b)) || h.flags+4 > uint64(len(b)) {
		return
	}
	le := binary.LittleEndian
	to := le.Uint64(b[h.next:])
	if to == 0 || to&7 != 0 || le.Uint32(b[h.flags:])&taskEnded != 0 {
		return
	}
	if len(f.tasks) < maxTasks {
		f.tasks[addr] = continuation{t.table, to}
	} else {
		f.full = true
	}
}

// waits returns the state of the machine in an object, and whether it waits at an await: then its state is
// not negative, and its builder refers to the box, whose address is box.
func (t *boxType) waits(object []byte, box uint64) (state int32, waits bool) {
	if uint64(len(object)) < t.size {
		return 0, false
	}
	state = int32(binary.LittleEndian.Uint32(object[t.state:]))
	if state < 0 {
		return state, false
	}
	for at := t.builder.start; at+8 <= t.builder.end; at += 8 {
		if binary.LittleEndian.Uint64(object[at:]) == box {
			return state, true
		}
	}
	return state, false
}
