package hotspot

import (
	"slices"

	"github.com/candid-profiler/candid/internal/walk"
)

// Code may be freed between a sample and the moment at which it is walked, and its place
// given to other code. This file says what a pc means then.

const (
	// maxFreedScan is how far before a pc the header of a freed blob is looked for, bytes.
	maxFreedScan = 64 << 10
	// maxFreedScans is how often that is done in a batch.
	maxFreedScans = 64
)

// diedHere gives the blob that was found dead in this batch and had pc in its code, nil
// if there is none.
func (vm *VM) diedHere(pc uint64) *blob {
	for _, b := range vm.code.dead {
		if b.contains(pc) {
			return b
		}
	}
	return nil
}

// late gives the blob that pc lay in when the sample was taken, where nothing is now: the
// one that was there when the last batch ended, or the one whose header the freed block still has. It can
// be used until the next batch begins. nil if there is none.
func (vm *VM) late(h *codeHeap, pc uint64) *blob {
	b := vm.diedHere(pc)
	if b == nil {
		if b = vm.readFreed(h, pc); b == nil {
			return nil
		}
		vm.died++
	}
	b.late, b.batch, b.used = vm.batch, vm.batch, vm.batch
	l := &vm.code.layout
	header := vm.code.header[:min(uint64(l.cookieLen), b.cookieLen)]
	if vm.peek.r.ReadAt(header, b.start-l.blockHeader) == nil {
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
	if l.used.load(header) != 0 || uint64(len(header)) <= l.blockHeader {
		return false
	}
	h := header[l.blockHeader:]
	return l.name.load(h) == b.cookie.name && l.size.load(h) == b.cookie.size &&
		(b.nm == nil || int32(l.compileID.load(h)) == b.cookie.compileID)
}

// unchanged looks once more, after an nmethod's debug information and the Methods that it
// leads to were read, whether it still is what it was before: then so is what was read.
// It keeps those classes loaded.
func (vm *VM) unchanged(b *blob) bool {
	l := &vm.code.layout
	header := vm.code.header[:min(uint64(l.cookieLen), b.cookieLen)]
	if vm.peek.r.ReadAt(header, b.start-l.blockHeader) != nil {
		return vm.ended()
	}
	if !l.same(header, b) {
		vm.kill(b)
		return false
	}
	return true
}

// describedOnlyBefore gives the blob that died in this batch whose call returns to pc, if
// the one that has taken its place has none there.
func (vm *VM) describedOnlyBefore(now *blob, pc uint64) *blob {
	if now.contested != vm.batch || now.exact(pc) >= 0 {
		return nil
	}
	if d := vm.diedHere(pc); d != nil && d.exact(pc) >= 0 {
		d.late, d.batch, d.used = vm.batch, vm.batch, vm.batch
		return d
	}
	return nil
}

// doubtful reports whether there is something that doubt has to decide.
func (vm *VM) doubtful(b *blob) bool {
	return b.dead || b.contested == vm.batch || vm.batch-b.born <= 1 && b.nm != nil
}

// doubt is how sure it can be at best that a frame's pc lay in b at time, when the sample
// was taken. exact says that pc is where a call in b returns to.
//
// If b was there before that, it did. Otherwise two blobs may have had pc in their code,
// the one that is there now and one that was there when the last batch ended: then only
// a call that returns there in one of them alone decides. And code that is seen for the
// first time may have taken the place of some that was never seen. Where code is freed
// all the time even more may have been there, and come again in the same shape.
func (vm *VM) doubt(b *blob, pc, time uint64, exact bool) walk.Provenance {
	if b.freed {
		return walk.Heuristic
	}
	restless := vm.restless(b, time)
	if b.dead && b.born != vm.batch {
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
	case b.contested == vm.batch:
		if d := vm.diedHere(pc); d != nil && (!exact || d.exact(pc) >= 0) {
			return walk.Heuristic
		}
	case b.nm == nil:
		return walk.Exact
	}
	switch {
	case exact && (stood != walk.Heuristic || !restless):
		// A call of this very code returns here, which other code in its place would
		// have had only by chance.
		return walk.Derived
	case restless:
		return walk.Heuristic
	}
	return stood
}

// readFreed looks for the header of a compiled method at pc that was freed before it was ever looked
// at. Freeing leaves it as it was, but for its first word (8 to 25
// share/memory/heap.hpp, FreeBlock). What it says of its debug information is gone: that may be freed, too.
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
	if vm.peek.r.ReadAt(window, first) != nil {
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
		k, ok := kindNames[names[l.name.load(header[l.blockHeader:])]]
		if !ok || k != blobNMethod && k != blobNativeMethod {
			if at < 1<<h.shift {
				return nil
			}
			continue
		}
		start := at + l.blockHeader
		b, ok := l.decodeAny(header, start, h.high)
		if !ok || !b.contains(pc) {
			return nil // the nearest one before pc does not reach it
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

// decodeFreed reads what a freed blob of a Java method adds, without its debug
// information and the name of its method, whose memory may hold another by now.
func (vm *VM) decodeFreed(b *blob, h []byte) {
	l := &vm.code.layout
	b.nm = &nmethod{
		compileID: int32(l.compileID.load(h)), level: int8(l.level.load(h)),
		entry: b.codeBegin, verifiedEntry: b.codeBegin, stubBegin: b.codeEnd,
	}
	if l.stubOffset.ok {
		if at := b.start + l.stubOffset.load(h); b.contains(at) {
			b.nm.stubBegin = at
		}
	}
}
