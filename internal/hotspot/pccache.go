package hotspot

import (
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/walk"
)

// how is the rule by which the caller of a frame is found, given a return address.
type how uint8

const (
	howNone        how = iota // no return address points here
	howFrame                  // the frame has a fixed size
	howDeopt                  // a frame marked for deoptimisation: the real pc is in it
	howInterpreter            // D.2
	howCallStub               // the C++ side called Java
	howBarrier                // the frames below are in heap chunks
	howUpcall                 // native code called Java through a foreign function's upcall
	howAligned                // the frame has a fixed size, but the stack was aligned for the call
	howAdapter                // an adapter that called the VM
	howFramePtr               // a hand-made stub that has a frame, if any, on rbp
)

// pcEntry is all that a walk needs to know about a return address.
type pcEntry struct {
	pc    uint64
	blob  *blob
	low   uint64 // how many bytes the stack pointer is below the frame's
	ref   uint64 // for an exact PcDesc, or one just below a poll
	near  uint64 // for a callee that is no safepoint: the next PcDesc
	frame uint32 // bytes
	how   how
	kind  walk.Kind
	exact bool // the pc has a PcDesc of its own
	poll  bool // it has none, but a poll's PcDesc lies within 8 bytes below
}

const (
	pcCacheBits   = 12
	pcCacheProbes = 4
)

// pcCache maps return addresses to what they mean. Only addresses that mean something are kept,
// because code may appear at the others. An entry outlives batches: its blob is checked at each use
// (holds).
type pcCache struct {
	slots []pcEntry
}

// pcSlot spreads pcs: return addresses differ mostly in their low bits, and
// methods lie on 32- or 64-byte boundaries.
func pcSlot(pc uint64) uint32 {
	return uint32(pc * 0x9E3779B97F4A7C15 >> (64 - pcCacheBits))
}

// cached is classify for an entry that lies in its first slot and has been checked in this batch;
// nil otherwise.
func (vm *VM) cached(pc uint64) *pcEntry {
	pcs := &vm.stepping.pcs
	if s := pcSlot(pc); int(s) < len(pcs.slots) && pc != 0 {
		if e := &pcs.slots[s]; e.pc == pc && (e.blob == nil || e.blob.batch == vm.Batch && vm.fresh(e.blob)) {
			return e
		}
	}
	return nil
}

// remembered returns what was last known of a return address, checked or not; nil if nothing is.
func (vm *VM) remembered(pc uint64) *pcEntry {
	pcs := &vm.stepping.pcs
	if pcs.slots == nil || pc == 0 {
		return nil
	}
	const mask = 1<<pcCacheBits - 1
	s := pcSlot(pc)
	for i := range uint32(pcCacheProbes) {
		switch e := &pcs.slots[(s+i)&mask]; e.pc {
		case pc:
			return e
		case 0:
			return nil
		}
	}
	return nil
}

// holds reports whether e is still right. A blob is compared with the process once a batch.
func (vm *VM) holds(e *pcEntry) bool { return e.blob == nil || vm.fresh(e.blob) }

// classify returns what a return address means, nil if the VM does not know it. The entry is valid
// until the next call.
func (vm *VM) classify(pc uint64) *pcEntry {
	pcs := &vm.stepping.pcs
	if pcs.slots == nil {
		pcs.slots = make([]pcEntry, 1<<pcCacheBits)
	}
	const mask = 1<<pcCacheBits - 1
	s := pcSlot(pc)
	for i := range uint32(pcCacheProbes) {
		e := &pcs.slots[(s+i)&mask]
		if e.pc == pc && pc != 0 {
			if vm.holds(e) {
				return e
			}
			*e = pcEntry{}
		}
		if e.pc == 0 {
			return vm.fill(e, pc)
		}
	}
	return vm.fill(&pcs.slots[s], pc)
}

// fill decodes pc into e, or leaves e as it is and returns nil.
func (vm *VM) fill(e *pcEntry, pc uint64) *pcEntry {
	var n pcEntry
	n.pc = pc
	switch {
	case pc == 0:
		return nil
	case pc == vm.callStubReturn:
		n.how, n.kind = howCallStub, walk.KindStub
		if b := vm.find(pc); b != nil {
			n.blob, n.ref = b, uint64(b.id)<<32
		}
	case vm.inInterpreter(pc):
		n.how, n.kind = howInterpreter, walk.KindInterpreted
	default:
		b := vm.find(pc)
		if b == nil || !b.contains(pc) {
			return nil
		}
		if d := vm.describedOnlyBefore(b, pc); d != nil {
			b = d
		}
		n.blob = b
		n.frame = uint32(min(b.frameSize, maxFrame+1))
		n.ref = uint64(b.id) << 32
		n.near = n.ref
		n.kind = kindOf(b)
		n.how = n.rule(b)
		switch {
		case b.kind == blobNMethod:
			vm.describe(&n)
		case b.nm != nil && b.nm.enterSpecial:
			vm.stepping.enterSpecial = pc
		}
	}
	*e = n
	return e
}

// rule chooses how to step over a frame of b that was reached by a return address.
func (e *pcEntry) rule(b *blob) how {
	switch b.kind {
	case blobNMethod:
		if b.isDeoptPC(e.pc) {
			return howDeopt
		}
	case blobContinuation:
		return howBarrier
	case blobUpcall:
		return howUpcall
	case blobAdapter:
		return howAdapter
	case blobVtable:
		return howNone
	}
	switch {
	case b.frameSize > maxFrame:
		return howNone
	case b.frameSize >= 16 && (b.kind == blobDeopt || b.kind == blobUncommonTrap):
		return howAligned
	case b.frameSize >= 16:
		return howFrame
	}
	return howFramePtr
}

// describe finds the PcDesc of a return address in a compiled method (docs/hotspot.md, "PcDescs").
func (vm *VM) describe(e *pcEntry) {
	b := e.blob
	e.near = refOf(b, b.atOrAfter(e.pc))
	if i := b.exact(e.pc); i >= 0 {
		e.ref, e.exact = refOf(b, i), true
		return
	}
	// From JDK 11 on, a loop poll's return address is moved past the polling instruction, which is
	// at most 8 bytes long.
	i := b.atOrAfter(e.pc)
	if i < 0 {
		i = len(b.nm.pcs)
	}
	if i > 0 {
		if d := e.pc - b.codeBegin - uint64(uint32(b.nm.pcs[i-1].pc)); d <= 8 {
			e.ref, e.poll = refOf(b, i-1), true
			return
		}
	}
	e.ref = e.near
	if vm.Arch == cpu.AMD64 && b.kind == blobNMethod {
		e.low = vm.pushed(b, e.pc)
	}
}

// refOf returns the Frame.Ref of the element i of a compiled method's PcDescs.
func refOf(b *blob, i int) uint64 {
	r := uint64(b.id) << 32
	if i >= 0 && i < len(b.nm.pcs) && b.nm.pcs[i].scope != 0 {
		r |= uint64(uint32(i + 1))
	}
	return r
}

// isDeoptPC reports whether pc is the address that a frame marked for deoptimisation seems to
// return to.
func (b *blob) isDeoptPC(pc uint64) bool {
	if b.nm == nil {
		return false
	}
	for _, d := range b.nm.deopt {
		if d != 0 && pc >= d && pc-d <= b.nm.deoptSlack {
			return true
		}
	}
	return false
}

// kindOf returns the kind of the frames that run a blob's code.
func kindOf(b *blob) walk.Kind {
	switch b.kind {
	case blobNativeMethod:
		return walk.KindNativeMethod
	case blobInterpreter:
		return walk.KindInterpreted
	case blobNMethod:
		switch {
		case b.nm == nil || b.nm.level <= 0:
			return walk.KindCompiled
		case b.nm.level <= 3:
			return walk.KindC1
		}
		return walk.KindC2
	}
	return walk.KindStub
}
