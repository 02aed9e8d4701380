package hotspot

import (
	"slices"

	"github.com/candid-profiler/candid/internal/walk"
)

// Code may be freed between a sample and its walk, and its memory given to other code. This file
// says what a pc means then.

const (
	// maxFreedScan is how far before a pc the header of a freed blob is looked for, bytes.
	maxFreedScan = 64 << 10
	// maxFreedScans is how many such scans are made in a batch.
	maxFreedScans = 64
)

// diedHere returns the blob whose code held pc and that was found dead in this batch; nil if there
// is none.
func (vm *VM) diedHere(pc uint64) *blob {
	for _, b := range vm.code.dead {
		if b.contains(pc) {
			return b
		}
	}
	return nil
}

// late returns the blob that held pc when the sample was taken, if nothing is there now: the blob
// that was there when the last batch ended, or the one whose header the freed block still holds. It
// can be used until the next batch begins. It is nil if there is none.
func (vm *VM) late(h *codeHeap, pc uint64) *blob {
	b := vm.diedHere(pc)
	if b == nil {
		if b = vm.readFreed(h, pc); b == nil {
			return nil
		}
		vm.died++
	}
	b.late, b.batch, b.used = vm.Batch, vm.Batch, vm.Batch
	l := &vm.code.layout
	header := vm.code.header[:min(uint64(l.cookieLen), b.cookieLen)]
	if vm.Mem.Reader.ReadAt(header, b.start-l.blockHeader) == nil {
		b.intact = b.freed || l.intact(header, b)
	}
	for seg := (b.start - h.low) >> h.shift; seg <= (b.end-1-h.low)>>h.shift; seg++ {
		if p := h.slot(seg); *p == 0 || *p == noBlob {
			*p = b.id
		}
	}
	return b
}

// intact reports whether a freed block still has the header of b.
func (l *blobLayout) intact(header []byte, b *blob) bool {
	if l.used.Load(header) != 0 || uint64(len(header)) <= l.blockHeader {
		return false
	}
	h := header[l.blockHeader:]
	return l.name.Load(h) == b.cookie.name && l.size.Load(h) == b.cookie.size &&
		(b.nm == nil || int32(l.compileID.Load(h)) == b.cookie.compileID)
}

// unchanged checks the nmethod again after its debug information and the Methods that it leads to
// were read. If it is still what it was, what was read is right, because a live nmethod keeps those
// classes loaded.
func (vm *VM) unchanged(b *blob) bool {
	l := &vm.code.layout
	header := vm.code.header[:min(uint64(l.cookieLen), b.cookieLen)]
	if !vm.Mem.Read(header, b.start-l.blockHeader) {
		return vm.ended()
	}
	if !l.same(header, b) {
		vm.kill(b)
		return false
	}
	b.seen = vm.Mem.Reads
	return true
}

// describedOnlyBefore returns the blob that died in this batch and had a call that returns to pc,
// if the blob that has taken its place has no such call.
func (vm *VM) describedOnlyBefore(now *blob, pc uint64) *blob {
	if now.contested != vm.Batch || now.exact(pc) >= 0 {
		return nil
	}
	if d := vm.diedHere(pc); d != nil && d.exact(pc) >= 0 {
		d.late, d.batch, d.used = vm.Batch, vm.Batch, vm.Batch
		return d
	}
	return nil
}

// doubtful reports whether there is anything for doubt to decide.
func (vm *VM) doubtful(b *blob) bool {
	return b.dead || b.contested == vm.Batch || vm.Batch-b.born <= 1 && b.nm != nil
}

// doubt returns the best provenance possible for the claim that a frame's pc lay in b at time, when
// the sample was taken. exact says that pc is the return address of a call in b.
//
// If b was there before time, the claim is certain. Otherwise two blobs may have had pc in their
// code: the one that is there now and the one that was there when the last batch ended. Then only a
// call that returns there in one of them alone decides. Code that is seen for the first time may
// also have replaced code that was never seen. If code is freed all the time, still more blobs may
// have been there, and the same code may have come back.
func (vm *VM) doubt(b *blob, pc, time uint64, exact bool) walk.Provenance {
	if b.freed {
		return walk.Heuristic
	}
	restless := vm.restless(b, time)
	if b.dead && b.born != vm.Batch {
		// It was there when the last batch ended, and nothing else is there now.
		if restless {
			return walk.Heuristic
		}
		return walk.Derived
	}
	stood := vm.stood(b, time)
	switch {
	case b.nm != nil && stood == walk.Exact:
		return walk.Exact
	case b.contested == vm.Batch:
		if d := vm.diedHere(pc); d != nil && (!exact || d.exact(pc) >= 0) {
			return walk.Heuristic
		}
	case b.nm == nil:
		return walk.Exact
	}
	switch {
	case exact && (stood != walk.Heuristic || !restless):
		// A call of this very code returns here. Other code in its place would have one here only
		// by chance.
		return walk.Derived
	case restless:
		return walk.Heuristic
	}
	return stood
}

// readFreed looks for the header of a compiled method at pc that was freed before it was ever
// examined. Freeing leaves the header as it was, but for its first word (8 to 25
// share/memory/heap.hpp, FreeBlock). Its debug information is not used, because that may be freed
// too.
func (vm *VM) readFreed(h *codeHeap, pc uint64) *blob {
	c, l := &vm.code, &vm.code.layout
	if c.scans++; c.scans > maxFreedScans || c.live >= maxBlobs || pc < h.low || pc >= h.high {
		return nil
	}
	names := c.names
	last := h.low + (pc-h.low)>>h.shift<<h.shift
	first := max(h.low, last-min(last, maxFreedScan))
	window := make([]byte, last-first+uint64(l.headerLen))
	if n := h.high - first; n < uint64(len(window)) {
		window = window[:n]
	}
	if vm.Mem.Reader.ReadAt(window, first) != nil {
		return nil
	}
	for at := last; at >= first; at -= 1 << h.shift {
		header := window[at-first:]
		if uint64(len(header)) < uint64(l.cookieLen) {
			continue
		}
		if len(header) > l.headerLen {
			header = header[:l.headerLen]
		}
		k, ok := kindNames[names[l.name.Load(header[l.blockHeader:])]]
		if !ok || k != blobNMethod && k != blobNativeMethod {
			if at < 1<<h.shift {
				return nil
			}
			continue
		}
		start := at + l.blockHeader
		b, ok := l.decodeAny(header, start, h.high)
		if !ok || !b.contains(pc) {
			return nil // the nearest header before pc does not reach it
		}
		b.cookieLen = uint64(len(header))
		b.name, b.kind = names[b.cookie.name], k
		b.id = uint32(len(c.blobs))
		b.dead, b.freed = true, true
		vm.decodeFreed(b, slices.Clone(header[l.blockHeader:]))
		c.blobs = append(c.blobs, b)
		c.dead = append(c.dead, b)
		return b
	}
	return nil
}

// decodeFreed reads the nmethod part of a freed blob, without its debug information and the name of
// its method, whose memory may hold something else by now.
func (vm *VM) decodeFreed(b *blob, h []byte) {
	l := &vm.code.layout
	b.nm = &nmethod{
		compileID: int32(l.compileID.Load(h)), level: int8(l.level.Load(h)),
		entry: b.codeBegin, verifiedEntry: b.codeBegin, stubBegin: b.codeEnd,
	}
	if l.stubOffset.OK {
		if at := b.start + l.stubOffset.Load(h); b.contains(at) {
			b.nm.stubBegin = at
		}
	}
}
