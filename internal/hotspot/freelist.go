package hotspot

import (
	"encoding/binary"
	"slices"

	"github.com/candid-profiler/candid/internal/target"
)

// A code heap puts freed blocks on a list, and allocates new code from there first. A block that
// was on the list at a moment held nothing at that moment.

// freeList is what a code heap records about its freed blocks: the first block, where the last one
// was inserted, the number of segments in all of them, and the number of blocks; before JDK 11 only
// the first block and the segments. The VM does not publish these fields; they follow
// _log2_segment_size (CodeHeap in 8 share/vm/memory/heap.hpp, 11 to 25 share/memory/heap.hpp).
type freeList [4]uint64

// freeSpan is a block of a free list.
type freeSpan struct{ start, end, next uint64 }

const (
	// freeListBefore is how many bytes before _log2_segment_size the numbers of committed and
	// reserved segments and the segment size lie. They prove that the place is right.
	freeListBefore = 24
	// freeListBytes is how many bytes are read from there.
	freeListBytes = freeListBefore + 8 + 8 + 8*len(freeList{})
	// maxFreeBlocks bounds the length of a list that is followed, and maxFreeHops how many of its
	// blocks may be ones that were not on it before.
	maxFreeBlocks, maxFreeHops = 4096, 1024
)

// freedBlocks is what is known of the free list of a heap.
type freedBlocks struct {
	known   bool      // list and the newest of states are current
	states  [3]freeAt // when the last batches began, newest first
	scratch []freeSpan
	heads   []byte
	reqs    []target.Read
}

// freeAt is the places of a heap that held nothing at a moment.
type freeAt struct {
	batch  uint32     // in which it was read; 0: it was not
	top    uint64     // end of the part that was ever used
	blocks []freeSpan // ascending
}

// decodeFreeList decodes the list, and the end of the part of the heap that was ever used, from
// what lies around _log2_segment_size; false if that is not a CodeHeap of a known layout.
func (vm *VM) decodeFreeList(h *codeHeap, b []byte) (list freeList, top uint64, ok bool) {
	w := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	committed, reserved, next := w(0), w(1), w(4)
	if w(2) != 1<<h.shift || uint64(uint32(w(3))) != uint64(h.shift) || next > committed || committed > reserved || reserved > (h.reserved-h.low)>>h.shift {
		return list, 0, false
	}
	known := len(list)
	if vm.major < 11 {
		known = 2
	}
	for i := range known {
		list[i] = w(5 + i)
	}
	list[3] = uint64(uint32(list[3]))
	return list, h.low + next<<h.shift, list[0] == 0 || list[0] >= h.low && list[0] < h.reserved
}

// beginFreeLists reads the free lists of all heaps at the beginning of a batch.
func (vm *VM) beginFreeLists() {
	c := &vm.code
	at := vm.t.field("CodeHeap::_log2_segment_size").offset
	if vm.Clock == nil || at < freeListBefore {
		return
	}
	if n := len(c.heaps) * freeListBytes; len(c.lists) != n {
		c.lists = make([]byte, n)
	}
	c.reqs = c.reqs[:0]
	for i := range c.heaps {
		c.reqs = append(c.reqs, target.Read{Addr: c.heaps[i].addr + at - freeListBefore, Buf: c.lists[i*freeListBytes : (i+1)*freeListBytes]})
	}
	vm.peek.readV(c.reqs)
	for i := range c.heaps {
		h := &c.heaps[i]
		list, top, ok := freeList{}, uint64(0), false
		if c.reqs[i].OK {
			list, top, ok = vm.decodeFreeList(h, c.reqs[i].Buf)
		}
		vm.observe(h, list, top, ok)
		vm.census(h)
	}
	c.began[vm.batch%uint32(len(c.began))] = vm.Clock()
}

// observe takes over a heap's current free list, and follows it.
func (vm *VM) observe(h *codeHeap, list freeList, top uint64, ok bool) {
	f := &h.freed
	last := len(f.states) - 1
	oldest := f.states[last].blocks
	copy(f.states[1:], f.states[:last])
	now := &f.states[0]
	now.blocks = oldest[:0] // so that each has its own memory
	// The list is followed even if the heap's record of it is the same: its head and size may recur
	// after other blocks were freed and allocated.
	f.known, now.batch = false, 0
	for range 4 { // it may change while it is followed
		if !ok {
			break
		}
		blocks, whole := vm.followFreeList(h, list)
		f.scratch = blocks
		again, end, still := vm.readFreeList(h)
		if still && whole && again == list {
			f.known = true
			now.batch, now.top = vm.batch, end
			now.blocks = append(now.blocks, blocks...)
			break
		}
		list, ok = again, still
	}
	if known := &f.states[1]; known.batch != 0 && (!f.known || !within(now.blocks, known.blocks)) {
		vm.freedCode(h)
	}
}

func (vm *VM) readFreeList(h *codeHeap) (freeList, uint64, bool) {
	var b [freeListBytes]byte
	if vm.peek.r.ReadAt(b[:], h.addr+vm.t.field("CodeHeap::_log2_segment_size").offset-freeListBefore) != nil {
		return freeList{}, 0, false
	}
	return vm.decodeFreeList(h, b[:])
}

// followFreeList returns the blocks of a list; false if they do not match the heap's counts because
// the list has changed meanwhile.
func (vm *VM) followFreeList(h *codeHeap, list freeList) ([]freeSpan, bool) {
	l, f := &vm.code.layout, &h.freed
	n := int(l.blockHeader) + 8
	// Most blocks were on the list before: these are read together.
	old := f.states[1].blocks
	if need := n * (len(old) + 1); cap(f.heads) < need {
		f.heads = make([]byte, need+need/2)
	}
	heads := f.heads[:cap(f.heads)]
	f.reqs = f.reqs[:0]
	for i := range old {
		f.reqs = append(f.reqs, target.Read{Addr: old[i].start, Buf: heads[i*n : (i+1)*n]})
	}
	if len(old) > 0 {
		vm.peek.readV(f.reqs)
	}
	one := heads[len(old)*n : (len(old)+1)*n]
	out, hops, i := f.scratch[:0], 0, 0
	var segments uint64
	for at := list[0]; at != 0; {
		if len(out) >= maxFreeBlocks || at < h.low || at >= h.reserved || (at-h.low)&(1<<h.shift-1) != 0 || len(out) > 0 && at < out[len(out)-1].end {
			return out, false
		}
		for i < len(old) && old[i].start < at {
			i++
		}
		head := one
		if i < len(old) && old[i].start == at && f.reqs[i].OK {
			head = f.reqs[i].Buf
		} else if hops++; hops > maxFreeHops || vm.peek.r.ReadAt(one, at) != nil {
			return out, false
		}
		length := l.length.load(head)
		if l.used.load(head) != 0 || length == 0 || length > (h.reserved-at)>>h.shift {
			return out, false
		}
		next := binary.LittleEndian.Uint64(head[l.blockHeader:])
		segments += length
		out = append(out, freeSpan{start: at, end: at + length<<h.shift, next: next})
		at = next
	}
	if vm.major < 11 {
		return out, segments == list[1]
	}
	return out, segments == list[2] && uint64(len(out)) == list[3]
}

// within reports whether all of a lies in b. Both ascend.
func within(a, b []freeSpan) bool {
	i := 0
	for _, s := range a {
		for i < len(b) && b[i].end <= s.start {
			i++
		}
		if i == len(b) || s.start < b[i].start || s.end > b[i].end {
			return false
		}
	}
	return true
}

// holds reports whether the range is one of the blocks or part of one.
func (f *freeAt) holds(start, end uint64) bool {
	if start >= f.top {
		return true
	}
	i, ok := slices.BinarySearchFunc(f.blocks, start, func(s freeSpan, at uint64) int {
		switch {
		case s.end <= at:
			return -1
		case s.start > at:
			return 1
		}
		return 0
	})
	return ok && end <= f.blocks[i].end
}

// heapOf returns the heap that an address lies in, nil if in none.
func (vm *VM) heapOf(addr uint64) *codeHeap {
	for i := range vm.code.heaps {
		if h := &vm.code.heaps[i]; addr-h.low < h.reserved-h.low {
			return h
		}
	}
	return nil
}
