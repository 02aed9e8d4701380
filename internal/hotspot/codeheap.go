package hotspot

import (
	"errors"
	"fmt"
	"slices"

	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/target"
)

// Bounds on what the code cache may claim.
const (
	maxHeaps    = 16      // VMs have one or three
	maxReserved = 4 << 30 // bytes of one code heap; HotSpot allows 2 GiB
	maxHops     = 4096    // steps back through the segment map
	maxBlobs    = 1 << 20 // cached at a time
	// keepCode is how much copied code is kept before all copies are dropped, bytes.
	keepCode = 2 << 20
	// maxCode is the largest piece of code that is copied, bytes.
	maxCode = 8 << 20
	// aheadBatches is for how many batches after its last use a blob or method is checked together
	// with all others at the beginning of a batch. After that it is checked at its first use in a
	// batch, with the others on the same stack, and never if nobody asks for it.
	aheadBatches = 1
)

// segPage maps 512 segments to the ids of the blobs that lie there. 0: not looked up yet; noBlob:
// there is none.
type segPage [512]uint32

const noBlob = ^uint32(0)

// codeHeap is a CodeHeap of the VM.
type codeHeap struct {
	addr          uint64 // of the CodeHeap
	low, high     uint64 // committed
	reserved      uint64 // end of what is reserved
	segmap        uint64 // of the segment at low
	shift         uint   // log2 of the size of a segment
	pages         []*segPage
	boundsInBatch uint32 // when high was last read

	freed    freedBlocks
	standing standing
}

// codeCache holds the code blobs decoded so far.
type codeCache struct {
	layout   blobLayout
	heaps    []codeHeap
	blobs    []*blob // by id; nil if dead since before the last batch
	live     int
	recent   []*blob // used in the last batches: BeginBatch checks them all together
	ahead    []*blob // scratch: to be checked together
	none     []*uint32
	dead     []*blob           // since the last batch began
	scans    int               // scans for headers of freed blobs, in this batch
	jvmci    bool              // compilers may be written in Java; no VM changes this after its start
	names    map[uint64]string // of kinds, which are constants in the VM's library, by address
	copied   int               // bytes in blob.code of all blobs
	pcs      int               // capacity, in elements, of nmethod.pcs of all blobs
	leaf     bool              // a thread was stopped in the code that is looked up
	header   []byte            // scratch
	reqs     []target.Read
	first    []target.Read // of a batch
	bufs     []byte
	standing *standingRoom
	lists    []byte    // scratch of beginFreeLists
	began    [4]uint64 // when the last batches began, in VM.Clock time, by batch
}

// openCode finds the code heaps and the interpreter.
func (vm *VM) openCode() error {
	t, c := vm.Tables, &vm.code
	layout, err := newBlobLayout(t)
	if err != nil {
		return err
	}
	c.layout = layout
	c.header = make([]byte, layout.headerLen)
	c.blobs = []*blob{nil}
	c.names = make(map[uint64]string)

	var heaps []uint64
	if f := t.Field("CodeCache::_heap"); f.OK {
		if h, ok := vm.Mem.Static(f); ok && h != 0 {
			heaps = append(heaps, h)
		}
	} else if f := t.Field("CodeCache::_heaps"); f.OK {
		array, _ := vm.Mem.Static(f)
		n, ok1 := vm.Mem.Member(array, t.Field("GrowableArrayBase::_len", "GenericGrowableArray::_len"))
		data, ok2 := vm.Mem.Member(array, t.Field("GrowableArray<int>::_data"))
		if ok1 && ok2 && n <= maxHeaps {
			for i := uint64(0); i < n; i++ {
				if h, ok := vm.Mem.U64(data + 8*i); ok && h != 0 {
					heaps = append(heaps, h)
				}
			}
		}
	} else {
		return fmt.Errorf("the VM does not publish its code cache: %w", vmstructs.ErrNotHotSpot)
	}
	for _, addr := range heaps {
		h, err := vm.openCodeHeap(addr)
		if err != nil {
			return err
		}
		c.heaps = append(c.heaps, h)
	}
	if len(c.heaps) == 0 {
		return fmt.Errorf("the code cache is not set up: %w", vmstructs.ErrNotReady)
	}

	if vm.interpLo, vm.interpHi, err = vm.interpreterRange(); err != nil {
		return err
	}

	if f := t.Field("StubRoutines::_call_stub_return_address"); f.OK {
		if vm.callStubReturn, _ = vm.Mem.Static(f); vm.callStubReturn == 0 {
			return fmt.Errorf("the call stub is not set up: %w", vmstructs.ErrNotReady)
		}
	} else {
		vm.Note("the VM does not publish its call stub: stacks end at the first call from native code into Java")
	}
	vm.continuationReturnPC, _ = vm.Mem.Static(t.Field("ContinuationEntry::_return_pc"))
	c.jvmci = vm.FlagSet("EnableJVMCI")
	return nil
}

// openCodeHeap reads the bounds and the segment size of a code heap.
func (vm *VM) openCodeHeap(addr uint64) (codeHeap, error) {
	t := vm.Tables
	memory, segmap, shift := t.Field("CodeHeap::_memory"), t.Field("CodeHeap::_segmap"), t.Field("CodeHeap::_log2_segment_size")
	low, high, top := t.Field("VirtualSpace::_low"), t.Field("VirtualSpace::_high"), t.Field("VirtualSpace::_high_boundary")
	if !memory.OK || !segmap.OK || !shift.OK || !low.OK || !high.OK || !top.OK {
		return codeHeap{}, fmt.Errorf("the VM does not publish the layout of its code heaps: %w", vmstructs.ErrNotHotSpot)
	}
	h := codeHeap{addr: addr}
	var ok [5]bool
	var sh uint64
	h.low, ok[0] = vm.Mem.Member(addr+memory.Offset, low)
	h.high, ok[1] = vm.Mem.Member(addr+memory.Offset, high)
	h.reserved, ok[2] = vm.Mem.Member(addr+memory.Offset, top)
	h.segmap, ok[3] = vm.Mem.Member(addr+segmap.Offset, low)
	sh, ok[4] = vm.Mem.Member(addr, shift)
	h.shift = uint(sh)
	switch {
	case slices.Contains(ok[:], false):
		return codeHeap{}, errors.New("read the code heap's geometry: memory cannot be read")
	case h.low == 0 || h.segmap == 0:
		return codeHeap{}, fmt.Errorf("the code heap is not set up: %w", vmstructs.ErrNotReady)
	case sh < 4 || sh > 16 || h.high < h.low || h.reserved < h.high || h.reserved-h.low > maxReserved:
		return codeHeap{}, fmt.Errorf("the code heap [%#x, %#x) of %#x with segments of 1<<%d bytes is not plausible: %w", h.low, h.high, h.reserved, sh, vmstructs.ErrNotHotSpot)
	}
	h.pages = make([]*segPage, (h.reserved-h.low)>>h.shift/512+1)
	return h, nil
}

// inCodeCache reports whether pc lies in memory that the VM has reserved for
// generated code.
func (vm *VM) inCodeCache(pc uint64) bool {
	for i := range vm.code.heaps {
		if h := &vm.code.heaps[i]; pc-h.low < h.reserved-h.low {
			return true
		}
	}
	return false
}

// find returns the blob that pc lies in, or nil. The result holds for this batch; callers that keep
// a blob for longer call fresh.
func (vm *VM) find(pc uint64) *blob {
	for i := range vm.code.heaps {
		h := &vm.code.heaps[i]
		if pc-h.low >= h.reserved-h.low {
			continue
		}
		seg := (pc - h.low) >> h.shift
		if page := h.pages[seg>>9]; page != nil {
			if id := page[seg&511]; id == noBlob {
				return nil
			} else if id != 0 {
				b := vm.code.blobs[id]
				if vm.fresh(b) {
					if pc >= b.start && pc < b.end {
						return b
					}
					return nil
				}
			}
		}
		return vm.lookup(h, pc)
	}
	return nil
}

// fresh reports whether b is unchanged since it was decoded.
func (vm *VM) fresh(b *blob) bool {
	if b.batch == vm.Batch {
		b.used = vm.Batch
		return !b.dead || b.late == vm.Batch
	}
	return vm.recheck(b)
}

// recheck is fresh for a blob that was not checked in this batch.
func (vm *VM) recheck(b *blob) bool {
	if b.dead {
		return false
	}
	l := &vm.code.layout
	header := vm.code.header[:min(uint64(l.cookieLen), b.cookieLen)]
	if !vm.Mem.Read(header, b.start-l.blockHeader) {
		if !vm.ended() {
			vm.kill(b)
			return false
		}
	} else if !l.same(header, b) {
		vm.kill(b)
		return false
	} else {
		b.seen = vm.Mem.Reads
	}
	b.batch, b.used = vm.Batch, vm.Batch
	vm.code.recent = append(vm.code.recent, b)
	return true
}

// ended reports whether nothing of the process can be read any more because it is ending. The
// samples that are still to be walked were taken while the code was there, so the cache is kept.
func (vm *VM) ended() bool {
	if len(vm.code.heaps) == 0 {
		return false
	}
	_, ok := vm.Mem.U64(vm.code.heaps[0].addr)
	return !ok
}

// kill drops a blob whose memory holds something else.
func (vm *VM) kill(b *blob) {
	if b.dead {
		return
	}
	b.dead = true
	vm.died++
	c := &vm.code
	c.live--
	c.dead = append(c.dead, b)
	// Torn code is read again, whatever has become of it.
	if h := vm.heapOf(b.start); h != nil && vm.Clock != nil && (b.nm == nil || !b.nm.torn) {
		vm.freedCode(h)
	}
	vm.release(b)
}

// release marks the segments that still point to b as not looked up.
func (vm *VM) release(b *blob) {
	for i := range vm.code.heaps {
		if h := &vm.code.heaps[i]; b.start-h.low < h.reserved-h.low {
			h.release(b)
		}
	}
}

// claim makes the segments of b point to it.
func (h *codeHeap) claim(b *blob) {
	for seg := (b.start - h.low) >> h.shift; seg <= (b.end-1-h.low)>>h.shift; seg++ {
		*h.slot(seg) = b.id
	}
}

// release marks the segments that still point to b as not looked up.
func (h *codeHeap) release(b *blob) {
	for seg := (b.start - h.low) >> h.shift; seg <= (b.end-1-h.low)>>h.shift; seg++ {
		if page := h.pages[seg>>9]; page != nil && page[seg&511] == b.id {
			page[seg&511] = 0
		}
	}
}

// slot is what is known of a segment.
func (h *codeHeap) slot(seg uint64) *uint32 {
	page := h.pages[seg>>9]
	if page == nil {
		page = new(segPage)
		h.pages[seg>>9] = page
	}
	return &page[seg&511]
}

// lookup decodes the blob at pc, which is not cached yet.
func (vm *VM) lookup(h *codeHeap, pc uint64) *blob {
	if b := vm.read(h, pc); b != nil {
		for _, d := range vm.code.dead {
			if d.start < b.end && b.start < d.end {
				b.contested = vm.Batch
			}
		}
		return b
	}
	if b := vm.late(h, pc); b != nil {
		return b
	}
	if p := h.slot((pc - h.low) >> h.shift); *p == 0 {
		*p = noBlob
		vm.code.none = append(vm.code.none, p)
	}
	return nil
}

// bury removes a dead blob. Its id stays taken.
func (vm *VM) bury(b *blob) {
	if vm.code.blobs[b.id] = nil; b.late != 0 {
		vm.release(b)
	}
	vm.code.copied -= len(b.code)
	b.code = nil
	if b.nm != nil {
		vm.code.pcs -= cap(b.nm.pcs)
		b.nm.pcs = nil
		b.nm.scopes = nil
	}
}

// blobAt returns the blob with the given id, alive or dead, or nil.
func (vm *VM) blobAt(id uint32) *blob {
	if int(id) >= len(vm.code.blobs) {
		return nil
	}
	return vm.code.blobs[id]
}
