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
	if vm.Major < 11 {
		known = 2
	}
	for i := range known {
		list[i] = w(5 + i)
	}
	list[3] = uint64(uint32(list[3]))
	return list, h.low + next<<h.shift, list[0] == 0 || list[0] >= h.low && list[0] < h.reserved
}

// freeListReads appends what has to be read of the free lists when a batch begins: for each heap the
// list's record, and then the blocks that were on the list before.
func (vm *VM) freeListReads(out []target.Read) []target.Read {
	c := &vm.code
	at := vm.Field("CodeHeap::_log2_segment_size").Offset
	if vm.Clock == nil || at < freeListBefore {
		return out
	}
	if n := len(c.heaps) * freeListBytes; len(c.lists) != n {
		c.lists = make([]byte, n)
	}
	for i := range c.heaps {
		h := &c.heaps[i]
		out = append(out, target.Read{Addr: h.addr + at - freeListBefore, Buf: c.lists[i*freeListBytes : (i+1)*freeListBytes]})
		out = vm.blockReads(out, h, h.freed.states[0].blocks)
	}
	return out
}

// blockReads appends the reads of a heap's free blocks.
func (vm *VM) blockReads(out []target.Read, h *codeHeap, blocks []freeSpan) []target.Read {
	f, n := &h.freed, int(vm.code.layout.blockHeader)+8
	if need := n * (len(blocks) + 1); cap(f.heads) < need {
		f.heads = make([]byte, need+need/2)
	}
	heads := f.heads[:cap(f.heads)]
	for i := range blocks {
		out = append(out, target.Read{Addr: blocks[i].start, Buf: heads[i*n : (i+1)*n]})
	}
	return out
}

// beginFreeLists takes over the free lists of all heaps when a batch begins. reqs are those of
// freeListReads, which were read.
func (vm *VM) beginFreeLists(reqs []target.Read) {
	c := &vm.code
	if len(reqs) == 0 {
		return
	}
	for i := range c.heaps {
		h := &c.heaps[i]
		list, top, ok := freeList{}, uint64(0), false
		if reqs[0].OK {
			list, top, ok = vm.decodeFreeList(h, reqs[0].Buf)
		}
		n := 1 + len(h.freed.states[0].blocks)
		vm.observe(h, list, top, ok, reqs[1:n])
		vm.census(h)
		reqs = reqs[n:]
	}
	c.began[vm.Batch%uint32(len(c.began))] = vm.Clock()
}

// observe takes over a heap's current free list, and follows it. known are the blocks that were on it
// before, read after the list's record.
func (vm *VM) observe(h *codeHeap, list freeList, top uint64, ok bool, known []target.Read) {
	f := &h.freed
	last := len(f.states) - 1
	oldest := f.states[last].blocks
	copy(f.states[1:], f.states[:last])
	now := &f.states[0]
	now.blocks = oldest[:0] // so that each has its own memory
	// The list is followed even if the heap's record of it is the same: its head and size may recur
	// after other blocks were freed and allocated.
	f.known, now.batch = false, 0
	for i := range 4 { // it may change while it is followed
		if !ok {
			break
		}
		if i > 0 {
			if f.reqs = vm.blockReads(f.reqs[:0], h, f.states[1].blocks); len(f.reqs) > 0 {
				vm.Mem.ReadV(f.reqs)
			}
			known = f.reqs
		}
		blocks, whole := vm.followFreeList(h, list, known)
		f.scratch = blocks
		again, end, still := list, top, true
		if list[0] != 0 { // a list without blocks was so when its record was read
			again, end, still = vm.readFreeList(h)
		}
		if still && whole && again == list {
			f.known = true
			now.batch, now.top = vm.Batch, end
			now.blocks = append(now.blocks, blocks...)
			break
		}
		if list[0] == 0 {
			again, end, still = vm.readFreeList(h)
		}
		list, top, ok = again, end, still
	}
	if known := &f.states[1]; known.batch != 0 && (!f.known || !within(now.blocks, known.blocks)) {
		vm.freedCode(h)
	}
}

func (vm *VM) readFreeList(h *codeHeap) (freeList, uint64, bool) {
	var b [freeListBytes]byte
	if !vm.Mem.Read(b[:], h.addr+vm.Field("CodeHeap::_log2_segment_size").Offset-freeListBefore) {
		return freeList{}, 0, false
	}
	return vm.decodeFreeList(h, b[:])
}

// followFreeList returns the blocks of a list; false if they do not match the heap's counts because
// the list has changed meanwhile. known are the blocks that were on it before, read after list.
func (vm *VM) followFreeList(h *codeHeap, list freeList, known []target.Read) ([]freeSpan, bool) {
	l, f := &vm.code.layout, &h.freed
	n := int(l.blockHeader) + 8
	old, heads := f.states[1].blocks, f.heads[:cap(f.heads)]
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
		if i < len(old) && old[i].start == at && known[i].OK {
			head = known[i].Buf
		} else if hops++; hops > maxFreeHops || !vm.Mem.Read(one, at) {
			return out, false
		}
		length := l.length.Load(head)
		if l.used.Load(head) != 0 || length == 0 || length > (h.reserved-at)>>h.shift {
			return out, false
		}
		next := binary.LittleEndian.Uint64(head[l.blockHeader:])
		segments += length
		out = append(out, freeSpan{start: at, end: at + length<<h.shift, next: next})
		at = next
	}
	if vm.Major < 11 {
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
