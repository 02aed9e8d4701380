package hotspot

import (
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/hotspot/simulate"
	"github.com/candid-profiler/candid/internal/walk"
)

const (
	// maxFrame bounds a compiled frame, in bytes. HotSpot's own frames are far smaller; a larger
	// size is a torn read.
	maxFrame = 256 << 10

	// maxStubFrame bounds the frames of hand-made stubs, in bytes; the entry barriers' and C1's
	// stubs' frames hold all vector registers.
	maxStubFrame = 4096

	// maxSearch is how many words above the place that the rules name are searched for a return
	// address (the string search intrinsics move rsp).
	maxSearch = 12
)

var (
	_ walk.Stepper    = (*VM)(nil)
	_ walk.Stateful   = (*VM)(nil)
	_ walk.StackMover = (*VM)(nil)
)

// stepping is the stepper's state between frames. A VM is used by one walk at a time.
type stepping struct {
	pcs pcCache

	// entryPC is the pc of the call stub or upcall stub that was stepped over last, and below is
	// where the anchor of the Java frames below the native frames is (Resume).
	entryPC, below uint64
	callStub       codeRange
	barrier        codeRange

	// prov and flags are put on the next frame if it was found by a weaker rule than its callee's
	// own.
	prov  walk.Provenance
	flags walk.FrameFlags

	// unfilled says that the frame just stepped over belongs to code that replaces a compiled frame
	// by interpreted ones, or is one of those and still empty.
	unfilled bool

	leaf  leaf
	slots *interpreterSlots // of the last interpreter frame

	code  [maxFramelessCode]byte // of the interpreter, from the pc of a thread
	ahead simulate.Thread
	stays [staysSlots]uint64 // pcs in it from which it does not leave a method
	// catches are the pcs from which no caller is asked for its handler.
	catches [staysSlots]uint64

	framelessLo, framelessHi uint64 // bounds of the entries without frames

	// enterSpecial is the last seen return address of a call in enterSpecial.
	enterSpecial uint64
	// continuations says that code of continuations has been seen on a stack.
	continuations bool

	readings readings
}

// javaRegs returns the registers that survive a call between generated code.
func javaRegs(a cpu.Arch) uint32 {
	if a == cpu.ARM64 {
		return 1<<cpu.XSP | 1<<cpu.X29
	}
	return 1<<cpu.RSP | 1<<cpu.RBP
}

// Owns reports whether pc lies in code that the VM generated. It implements walk.Stepper.
func (vm *VM) Owns(pc uint64) bool { return vm.inCodeCache(pc) || vm.archive.contains(pc) }

func (vm *VM) inInterpreter(pc uint64) bool { return pc >= vm.interpLo && pc < vm.interpHi }

// Settled reports whether the next frame's step depends on nothing that the last step left. It
// implements walk.Stateful.
func (vm *VM) Settled() bool {
	return vm.stepping.prov == walk.Exact && vm.stepping.flags == 0 && !vm.stepping.unfilled
}

// Step steps over the frame at the Cursor. It implements walk.Stepper.
func (vm *VM) Step(c *walk.Cursor) walk.Verdict {
	if c.Leaf {
		return vm.stepLeaf(c)
	}
	pc := c.Regs.PC
	e := vm.cached(pc)
	if e == nil {
		pc = stripPC(c, pc)
		vm.lookAheadInCode(c, pc)
		if e = vm.classify(pc); e == nil {
			return walk.NotMine
		}
	}
	if e.how == howFrame {
		vm.stepping.unfilled = false
		return vm.stepFrame(c, e)
	}
	if e.how == howInterpreter {
		return vm.stepInterpreted(c)
	}
	vm.stepping.unfilled = e.how == howAligned
	switch e.how {
	case howDeopt:
		return vm.stepDeopt(c, e)
	case howCallStub:
		return vm.stepCallStub(c, e)
	case howBarrier:
		return vm.stepBarrier(c, e)
	case howUpcall:
		return vm.stepUpcall(c, e)
	case howAligned:
		return vm.stepAligned(c, e)
	case howAdapter:
		return vm.stepAdapter(c, e)
	case howFramePtr:
		return vm.stepFramePointer(c, e)
	}
	return walk.NotMine
}

// stepFrame steps over a frame whose size is fixed, reached by a return address
// (docs/hotspot.md, "Compiled frames").
func (vm *VM) stepFrame(c *walk.Cursor, e *pcEntry) walk.Verdict {
	ref, prov, flags := e.ref, walk.Exact, walk.ReturnAddress
	if e.blob.kind == blobNMethod && !e.exact {
		switch {
		case c.LeafCallee:
			if ref = e.near; !vm.names.precise {
				flags |= walk.Coarse
			}
		case !e.poll:
			// Every other call has a PcDesc, so this is not the return address of a call.
			prov, flags = walk.Derived, flags|walk.Coarse
		}
	}
	if vm.doubtful(e.blob) {
		// Its callers are found from what the blob says about its frame.
		doubt := vm.doubt(e.blob, e.pc, c.Time, e.exact)
		prov, c.Prov = max(prov, doubt), max(c.Prov, doubt)
	}
	sp := c.Regs.SP()
	if c.Unextended != 0 {
		sp = c.Unextended
	}
	if e.blob.kind == blobNativeMethod && e.blob.nm != nil && e.blob.nm.enterSpecial {
		markVirtual(c)
		flags |= walk.Virtual
	}
	vm.push(c, e.pc, ref, e.kind, prov, flags)
	return vm.popFrame(c, sp+e.low+uint64(e.frame))
}

// popFrame moves the Cursor to the caller of a frame that ends at end, where the return address and
// below it the saved frame pointer are.
func (vm *VM) popFrame(c *walk.Cursor, end uint64) walk.Verdict {
	if end <= c.Regs.SP() || end&7 != 0 {
		return walk.Stuck
	}
	if off := end - 16 - c.Copy.Base; off < uint64(len(c.Copy.Bytes)) && uint64(len(c.Copy.Bytes))-off >= 16 {
		pair := c.Copy.Bytes[off : off+16 : off+16]
		vm.enter(c, binary.LittleEndian.Uint64(pair[8:]), end, binary.LittleEndian.Uint64(pair))
		return walk.Stepped
	}
	ra, ok := c.Word(end - 8)
	if !ok {
		return walk.Stuck
	}
	fp, ok := c.Word(end - 16)
	if !ok {
		return walk.Stuck
	}
	vm.stepping.flags |= walk.Stitched
	vm.enter(c, ra, end, fp)
	return walk.Stepped
}

// enter moves the Cursor to the generated code's caller.
func (vm *VM) enter(c *walk.Cursor, ra, sp, fp uint64) {
	c.Regs.PC = stripPC(c, ra)
	c.Regs.SetSP(sp)
	c.Regs.SetFP(fp)
	c.Regs.Known = javaRegs(c.Regs.Arch)
	c.Leaf, c.LeafCallee, c.Unextended = false, false, 0
}

// stripPC removes pointer authentication bits from a return address.
func stripPC(c *walk.Cursor, pc uint64) uint64 {
	if c.Regs.Arch == cpu.ARM64 {
		return pc & (1<<48 - 1)
	}
	return pc
}

// stepDeopt steps over a frame whose return address was replaced by that of its deopt handler
// (docs/hotspot.md, "Deoptimized frames").
func (vm *VM) stepDeopt(c *walk.Cursor, e *pcEntry) walk.Verdict {
	sp := c.Regs.SP()
	if c.Unextended != 0 {
		sp = c.Unextended
	}
	b, pc0, kind := e.blob, e.pc, e.kind
	if pc, ok := c.Word(sp + b.nm.origPCOffset); ok && b.contains(pc) && !b.isDeoptPC(pc) {
		// The deopt handler is entered only at a safepoint.
		if o := vm.classify(pc); o != nil && o.how == howFrame {
			return vm.stepFrame(c, o)
		}
	}
	vm.push(c, pc0, uint64(b.id)<<32, kind, walk.Derived, walk.ReturnAddress|walk.Coarse)
	return vm.popFrame(c, sp+b.frameSize)
}

// stepAligned steps over the blobs that replace compiled frames by interpreted ones. When they call
// the VM to fill those in, their own frame is on rbp and the stack is aligned below it, so the
// frame is up to 15 bytes larger (generate_deopt_blob, generate_uncommon_trap_blob in
// cpu/x86/sharedRuntime_x86_64.cpp).
func (vm *VM) stepAligned(c *walk.Cursor, e *pcEntry) walk.Verdict {
	vm.push(c, e.pc, e.ref, e.kind, walk.Exact, walk.ReturnAddress)
	end := c.Regs.SP() + uint64(e.frame)
	if fp := c.Regs.FP(); vm.fpKnown(c) && fp&7 == 0 && fp+16 > end && fp+16-end < 16 {
		end = fp + 16
	}
	return vm.popFrame(c, end)
}

// stepAdapter steps over an adapter from compiled to interpreted code that calls the VM to have its
// caller's call patched (SharedRuntime::fixup_callers_callsite, gen_c2i_adapter in
// cpu/{x86,aarch64}/sharedRuntime_*.cpp). On x86-64 it keeps its stack pointer at entry, where the
// return address is, in r13, which the VM preserves; on AArch64 it makes a frame.
func (vm *VM) stepAdapter(c *walk.Cursor, e *pcEntry) walk.Verdict {
	if c.Regs.Arch == cpu.ARM64 {
		return vm.stepFramePointer(c, e)
	}
	vm.push(c, e.pc, e.ref, e.kind, walk.Exact, walk.ReturnAddress)
	// A collector's barrier at its entry may call too. The code then continues where it would
	// reject the call.
	if vm.stepByReading(c, e.blob, e.pc) {
		return walk.Stepped
	}
	at, fp, known := c.Regs.R[cpu.R13], c.Regs.FP(), c.Regs.Known
	if known&(1<<cpu.R13) == 0 || at <= c.Regs.SP() || at-c.Regs.SP() > maxStubFrame || at&7 != 0 {
		return walk.Stuck
	}
	ra, ok := c.Word(at)
	if !ok || !vm.codeRA(ra) {
		return walk.Stuck
	}
	vm.enter(c, ra, at+8, fp)
	c.Regs.Known &= known | 1<<cpu.RSP
	return walk.Stepped
}

// stepFramePointer steps over a stub that publishes no size of its frame: the frame is on the frame
// pointer, or there is none, or only the stack was aligned for a call of C code.
func (vm *VM) stepFramePointer(c *walk.Cursor, e *pcEntry) walk.Verdict {
	barrier := vm.inBarrier(e.blob, e.pc)
	vm.push(c, e.pc, e.ref, e.kind, walk.Derived, walk.ReturnAddress)
	sp, fp := c.Regs.SP(), c.Regs.FP()
	if at, ok := vm.forwarding(c, e.blob, e.pc); ok {
		if ra, ok := c.Word(at); ok && vm.codeRA(ra) {
			vm.enter(c, ra, at+8, fp)
			c.LeafCallee = true
			return walk.Stepped
		}
	}
	if !barrier && vm.stepByReading(c, e.blob, e.pc) {
		return walk.Stepped
	}
	if vm.fpKnown(c) && fp >= sp && fp-sp <= maxStubFrame && fp&7 == 0 {
		saved, ok := c.Word(fp)
		at := fp + 8
		if barrier {
			at += 8
		}
		if ra, ok2 := c.Word(at); ok && ok2 && vm.codeRA(stripPC(c, ra)) {
			vm.enter(c, ra, at+8, saved)
			c.LeafCallee = true
			return walk.Stepped
		}
	}
	for _, at := range [2]uint64{sp, sp + 8} {
		if ra, ok := c.Word(at); ok && vm.codeRA(stripPC(c, ra)) {
			vm.enter(c, ra, at+8, fp)
			c.LeafCallee = true
			return walk.Stepped
		}
	}
	return walk.Stuck
}

func (vm *VM) fpKnown(c *walk.Cursor) bool {
	if c.Regs.Arch == cpu.ARM64 {
		return c.Regs.Known&(1<<cpu.X29) != 0
	}
	return c.Regs.Known&(1<<cpu.RBP) != 0
}

// push appends a frame, with the provenance that its callee's step determined. The walker fills in
// Frame.Owner: a stepper does not know its own index.
func (vm *VM) push(c *walk.Cursor, pc, ref uint64, kind walk.Kind, prov walk.Provenance, flags walk.FrameFlags) {
	s := &vm.stepping
	c.Stack.Push(walk.Frame{
		PC: pc, Ref: ref, Kind: kind,
		Prov: max(prov, s.prov), Flags: flags | s.flags,
	})
	s.prov, s.flags = walk.Exact, 0
}

// validRA reports whether ra is the return address of a call from Java code: it has a PcDesc, or it
// is one of the few places that need none (docs/hotspot.md, "The innermost frame").
func (vm *VM) validRA(ra uint64) bool {
	e := vm.classify(ra)
	if e == nil {
		return false
	}
	switch e.how {
	case howCallStub, howInterpreter, howDeopt, howBarrier, howUpcall:
		return true
	case howFrame:
		if e.blob.kind == blobNMethod {
			return e.exact
		}
		return e.blob.nm != nil && e.blob.nm.enterSpecial
	}
	return false
}

// codeRA reports whether ra may be the return address of a call from generated code without a
// safepoint.
func (vm *VM) codeRA(ra uint64) bool {
	e := vm.classify(ra)
	return e != nil && e.how != howNone && e.how != howAdapter && (e.blob == nil || !e.blob.freed)
}

// MovesStacks reports whether the process has been seen to use virtual threads. It implements
// walk.StackMover.
func (vm *VM) MovesStacks() bool { return vm.stepping.continuations }
