package hotspot

import (
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// In a VM that frees code, the position of all code is recorded, not only of the code that was
// sampled: a sample's pc lies in the code that is there now if that code was there before the
// sample. A compile ID is never reused, so the same ID at the same place is the same code.

const (
	// maxStanding is how many blocks are examined in a batch.
	maxStanding = 2048
	// maxStandingSpans is how many ranges may wait to be examined.
	maxStandingSpans = 4096
	// restless is for how many ns nothing must have been freed before code in a place that was free
	// counts as the first that came there.
	restless = 1e9
	// segmapBytes is how many bytes of a segment map are read at once.
	segmapBytes = 16 << 10
	// maxStandingMaps is from how many places they are read at once.
	maxStandingMaps = 256
)

// standing is what is known of the compiled code in a heap.
type standing struct {
	on    bool // something was freed since the heap was first examined
	again bool // the record has turned out to be out of date
	// When code was last seen to have been freed, in VM.Clock time; in which batch; and when it was
	// last seen before that batch.
	freed, freedBefore uint64
	freedIn            uint32
	pages              []*[512]standingCode
	waiting            []freeSpan // ranges that may hold something else by now
	top                uint64     // up to where ranges have been examined or wait
}

// standingRoom is scratch space for examining ranges, one for all heaps of all VMs of a Finder.
type standingRoom struct {
	heads  []byte
	reqs   []target.Read
	maps   []target.Read
	segmap []byte
}

// standingCode is the code whose block begins in a segment.
type standingCode struct {
	compileID int32
	since     uint32 // the batch in which it was first seen there; 0: nothing is
}

// freedCode notes that a heap's code was freed since the last batch.
func (vm *VM) freedCode(h *codeHeap) {
	s := &h.standing
	if s.freedIn != vm.Batch {
		s.freedBefore, s.freedIn = s.freed, vm.Batch
	}
	s.on, s.freed = true, vm.Clock()
}

// restless reports whether code was freed in b's heap shortly before the sample, and in an earlier
// batch.
func (vm *VM) restless(b *blob, time uint64) bool {
	h := vm.heapOf(b.start)
	if h == nil || !h.standing.on {
		return false
	}
	last := h.standing.freed
	if h.standing.freedIn == vm.Batch {
		last = h.standing.freedBefore
	}
	return last != 0 && time <= last+restless
}

// census finds the ranges that were allocated in a heap since the last batch began.
func (vm *VM) census(h *codeHeap) {
	s, now, before := &h.standing, &h.freed.states[0], &h.freed.states[1]
	if !s.on || now.batch == 0 {
		return
	}
	if s.pages == nil {
		s.pages, s.top = make([]*[512]standingCode, len(h.pages)), h.low
	}
	switch {
	case before.batch == 0 && s.top > h.low, s.again && len(s.waiting) == 0, len(s.waiting) > maxStandingSpans:
		// It is not known which ranges were allocated: all are examined again.
		s.waiting, s.top, s.again = s.waiting[:0], h.low, false
	default:
		s.waiting = appendTaken(s.waiting, before.blocks, now.blocks)
	}
	if now.top > s.top {
		s.waiting = append(s.waiting, freeSpan{start: s.top, end: now.top})
		s.top = now.top
	}
	vm.lookAtStanding(h)
}

// appendTaken appends the parts of the blocks of a that are not in b.
func appendTaken(out, a, b []freeSpan) []freeSpan {
	i := 0
	for _, s := range a {
		at := s.start
		for at < s.end {
			for i < len(b) && b[i].end <= at {
				i++
			}
			if i == len(b) || b[i].start >= s.end {
				out = append(out, freeSpan{start: at, end: s.end})
				break
			}
			if b[i].start > at {
				out = append(out, freeSpan{start: at, end: b[i].start})
			}
			at = b[i].end
		}
	}
	return out
}

// lookAtStanding reads the headers of the blocks in the waiting ranges.
func (vm *VM) lookAtStanding(h *codeHeap) {
	s, room, l := &h.standing, vm.code.standing, &vm.code.layout
	n := int(l.blockHeader) + int(max(l.compileID.Offset+4, l.name.Offset+8))
	if !l.compileID.OK || n > l.headerLen {
		s.waiting = s.waiting[:0]
		return
	}
	if room == nil {
		room = &standingRoom{}
		vm.code.standing = room
	}
	if len(room.heads) < maxStanding*n {
		room.heads, room.segmap = make([]byte, maxStanding*n), make([]byte, segmapBytes)
	}
	room.reqs = room.reqs[:0]
	done := 0
	for done < len(s.waiting) && len(room.reqs) < maxStanding {
		done += vm.lookAtSegments(h, s.waiting[done:], n)
	}
	s.waiting = append(s.waiting[:0], s.waiting[done:]...)
	if len(room.reqs) == 0 {
		return
	}
	vm.Mem.ReadV(room.reqs)
	for i := range room.reqs {
		r := &room.reqs[i]
		if !r.OK || l.used.Load(r.Buf) == 0 {
			continue
		}
		if k := kindNames[vm.code.names[l.name.Load(r.Buf[l.blockHeader:])]]; k != blobNMethod && k != blobNativeMethod {
			continue
		}
		seg := (r.Addr - h.low) >> h.shift
		page := s.pages[seg>>9]
		if page == nil {
			page = new([512]standingCode)
			s.pages[seg>>9] = page
		}
		if e, id := &page[seg&511], int32(l.compileID.Load(r.Buf[l.blockHeader:])); e.since == 0 || e.compileID != id {
			*e = standingCode{compileID: id, since: vm.Batch}
		}
	}
}

// lookAtSegments reads the segment maps of the first of some waiting ranges together, and appends
// where blocks begin there to the reads of n bytes each. It returns how many ranges it has finished,
// and removes from the next one what it has read.
func (vm *VM) lookAtSegments(h *codeHeap, waiting []freeSpan, n int) (done int) {
	room := vm.code.standing
	room.maps = room.maps[:0]
	free := room.segmap
	for i := range waiting {
		w := &waiting[i]
		first, end := (w.start-h.low)>>h.shift, (w.end-h.low)>>h.shift
		if w.start < h.low || w.end > h.reserved || end <= first {
			w.start, first, end = w.end, 0, 0 // nothing is there
		}
		size := min(end-first, uint64(len(free)))
		if size == 0 && end > first || len(room.maps) == maxStandingMaps {
			break
		}
		room.maps = append(room.maps, target.Read{Addr: h.segmap + first, Buf: free[:size]})
		free = free[size:]
	}
	vm.Mem.ReadV(room.maps)
	for i := range room.maps {
		w, part := &waiting[i], room.maps[i].Buf
		if len(part) == 0 || !room.maps[i].OK {
			done++
			continue
		}
		first := (w.start - h.low) >> h.shift
		for k, back := range part {
			if back != 0 {
				continue
			}
			at := len(room.reqs)
			if at == maxStanding {
				w.start += uint64(k) << h.shift // the others in the next batch
				return done
			}
			room.reqs = append(room.reqs, target.Read{Addr: h.low + (first+uint64(k))<<h.shift, Buf: room.heads[at*n : (at+1)*n]})
		}
		if w.start += uint64(len(part)) << h.shift; w.start < w.end {
			return done
		}
		done++
	}
	return done
}

// batchBefore returns the last batch that had begun before a sample was taken, 0 if that is too
// long ago.
func (vm *VM) batchBefore(time uint64) uint32 {
	began := &vm.code.began
	for i := range uint32(len(began)) {
		if i >= vm.Batch {
			break
		}
		if at := began[(vm.Batch-i)%uint32(len(began))]; at != 0 && at <= time {
			return vm.Batch - i
		}
	}
	return 0
}

// stood returns how sure it is that b, which is there now, has been the only blob in its place
// since a sample was taken.
func (vm *VM) stood(b *blob, time uint64) walk.Provenance {
	h := vm.heapOf(b.start)
	if h == nil || b.nm == nil {
		return walk.Exact // such code is made when the VM starts, and stays
	}
	if b.bornAt != 0 && time >= b.bornAt {
		return walk.Exact
	}
	if !h.standing.on {
		if len(vm.code.dead) > 0 && b.born == vm.Batch {
			return walk.Heuristic
		}
		return walk.Exact
	}
	batch, at := vm.batchBefore(time), b.start-vm.code.layout.blockHeader
	if batch == 0 {
		return walk.Heuristic
	}
	switch e := vm.standsAt(b); {
	case e == nil:
	case e.compileID != b.nm.compileID:
		// A freed place was reused between two looks at the free list.
		h.standing.again = true
		vm.freedCode(h)
	case e.since <= batch:
		return walk.Exact
	}
	for i := range h.freed.states {
		if f := &h.freed.states[i]; f.batch == batch {
			if f.holds(at, at+b.segments<<h.shift) {
				// Nothing was there then. restless covers the case that other code was made, ran
				// and was freed before that.
				return walk.Derived
			}
			break
		}
	}
	return walk.Heuristic
}

// standsAt returns the record of the place of b, nil if there is none.
func (vm *VM) standsAt(b *blob) *standingCode {
	h := vm.heapOf(b.start)
	if h == nil || h.standing.pages == nil {
		return nil
	}
	seg := (b.start - vm.code.layout.blockHeader - h.low) >> h.shift
	page := h.standing.pages[seg>>9]
	if page == nil || page[seg&511].since == 0 {
		return nil
	}
	return &page[seg&511]
}
