package hotspot

import (
	"slices"

	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
)

// read finds and decodes the blob at pc.
func (vm *VM) read(h *codeHeap, pc uint64) (b *blob) {
	if pc < h.high {
		if b = vm.readBlob(h, pc); b != nil {
			return b
		}
	}
	// The heap may have grown: pc, or the end of its blob, may lie in the new part.
	if vm.grown(h); pc < h.high {
		vm.Mem.Younger(func() bool { b = vm.readBlob(h, pc); return b != nil })
	}
	return b
}

// grown reads how far the heap is committed, once a batch.
func (vm *VM) grown(h *codeHeap) {
	if h.boundsInBatch == vm.Batch && vm.Batch != 0 {
		return
	}
	h.boundsInBatch = vm.Batch
	high, ok := vm.Mem.Member(h.addr+vm.Field("CodeHeap::_memory").Offset, vm.Field("VirtualSpace::_high"))
	if ok && high >= h.low && high <= h.reserved {
		h.high = high
	}
}

func (vm *VM) readBlob(h *codeHeap, pc uint64) *blob {
	c, l := &vm.code, &vm.code.layout
	if c.live >= maxBlobs {
		vm.Note("the code cache holds more pieces of code than can be kept")
		return nil
	}
	block, ok := vm.blockOf(h, (pc-h.low)>>h.shift)
	if !ok {
		return nil
	}
	start := h.low + block<<h.shift + l.blockHeader
	if pc < start || start >= h.high {
		return nil
	}
	n := min(uint64(len(c.header)), h.high-start+l.blockHeader)
	header := c.header[:n]
	if !vm.Mem.Read(header, start-l.blockHeader) {
		return nil
	}
	read := vm.Mem.Reads
	b, ok := l.decode(header, start, h.high, h.shift)
	if !ok || pc >= b.end {
		return nil
	}
	b.cookieLen = n
	b.name = vm.blobName(b.cookie.name)
	b.kind = l.kindOf(b, header)
	b.id = uint32(len(c.blobs))
	b.batch, b.used, b.born, b.seen = vm.Batch, vm.Batch, vm.Batch, read
	if vm.Clock != nil {
		b.bornAt = vm.Clock()
	}
	if b.kind == blobNMethod || b.kind == blobNativeMethod {
		vm.decodeNMethod(b, slices.Clone(header[l.blockHeader:]), pc)
	} else {
		b.cookie.method, b.cookie.compileID = 0, 0 // something else lies there now
	}
	// Nothing that was cached for its segments holds any longer.
	for seg := (b.start - h.low) >> h.shift; seg <= (b.end-1-h.low)>>h.shift; seg++ {
		if page := h.pages[seg>>9]; page != nil {
			if id := page[seg&511]; id != 0 && id != noBlob {
				vm.kill(c.blobs[id])
			}
		}
	}
	c.blobs = append(c.blobs, b)
	c.live++
	c.recent = append(c.recent, b)
	h.claim(b)
	return b
}

// blobName reads the name of a blob. Most blobs are named after their kind.
func (vm *VM) blobName(addr uint64) string {
	c := &vm.code
	if name, ok := c.names[addr]; ok {
		return name
	}
	name, _ := vm.Mem.CString(addr, vmstructs.MaxString)
	if _, ok := kindNames[name]; ok && len(c.names) < len(kindNames) {
		c.names[addr] = name
	}
	return name
}

// blockOf walks the segment map back to the first segment of the block that holds segment seg (8
// share/vm/memory/heap.cpp, 25 share/memory/heap.cpp). Each byte is how far to go back; 0 is the
// first segment of a block, 255 a free segment.
func (vm *VM) blockOf(h *codeHeap, seg uint64) (uint64, bool) {
	var window [256]byte
	first := seg + 1 // window[0] belongs to this segment; nothing read yet
	for range maxHops {
		if seg < first {
			first = seg - min(seg, uint64(len(window)-1))
			if !vm.Mem.Near(window[:seg-first+1], h.segmap+first) {
				return 0, false
			}
		}
		switch d := uint64(window[seg-first]); {
		case d == 0:
			return seg, true
		case d == 255 || d > seg:
			return 0, false
		default:
			seg -= d
		}
	}
	return 0, false
}

// codeOf returns a copy of the blob's code. Call sites in it may have been
// patched since. It is nil if the code cannot be read.
func (vm *VM) codeOf(b *blob) []byte {
	if b.code != nil || b.dead && !b.intact {
		return b.code
	}
	n := b.codeEnd - b.codeBegin
	if n == 0 || n > maxCode {
		return nil
	}
	c := &vm.code
	if c.copied+int(n) > keepCode {
		for _, o := range c.blobs {
			if o != nil {
				o.code = nil
			}
		}
		c.copied = 0
	}
	code := make([]byte, n)
	if !vm.Mem.Read(code, b.codeBegin) {
		return nil
	}
	b.code = code
	c.copied += len(code)
	return code
}

// beginCode checks the recently used blobs against the process.
func (vm *VM) beginCode() {
	c := &vm.code
	for _, p := range c.none {
		if *p == noBlob {
			*p = 0
		}
	}
	c.none = c.none[:0]
	// Blobs that died in the last batch have been named by now.
	for _, b := range c.dead {
		vm.bury(b)
	}
	c.dead, c.scans = c.dead[:0], 0
	if vm.continuationReturnPC == 0 {
		vm.continuationReturnPC, _ = vm.Mem.Static(vm.Field("ContinuationEntry::_return_pc"))
	}

	kept := c.recent[:0]
	for _, b := range c.recent {
		if !b.dead && vm.Batch-b.used <= aheadBatches {
			kept = append(kept, b)
		}
	}
	clear(c.recent[len(kept):])
	c.recent = kept
	// Blobs that are still alive are appended once more.
	c.ahead = append(c.ahead[:0], kept...)
	c.recent = c.recent[:0]
	words := len(vm.interpWords.reqs)
	c.first = vm.freeListReads(append(c.first[:0], vm.interpWords.reqs[:]...))
	vm.checkBlobs(c.ahead, c.first)
	clear(c.ahead)
	vm.beginInterpreter(c.first[:words])
	vm.beginFreeLists(c.first[words:])
}
