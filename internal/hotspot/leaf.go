package hotspot

import (
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/walk"
)

// stepLeaf steps over the frame that the thread was stopped in.
func (vm *VM) stepLeaf(c *walk.Cursor) walk.Verdict {
	s := &vm.stepping
	s.prov, s.flags, s.unfilled = walk.Exact, 0, false
	pc := c.Regs.PC
	if vm.inInterpreter(pc) {
		return vm.stepInterpreterLeaf(c)
	}
	if vm.archive.contains(pc) {
		return vm.stepTrampoline(c)
	}
	vm.lookAheadInCode(c, pc)
	vm.code.leaf = true
	b := vm.find(pc)
	vm.code.leaf = false
	if b == nil || !b.contains(pc) {
		return walk.NotMine
	}
	// Rules are called through pointers, so a local leaf would be allocated on the heap.
	l := &s.leaf
	*l = leaf{
		vm: vm, c: c, b: b, pc: pc, off: int(pc - b.codeBegin),
		sp: c.Regs.SP(), fp: c.Regs.FP(), fs: min(b.frameSize, maxFrame),
		code: vm.codeOf(b),
	}
	if vm.doubtful(b) {
		s.prov = vm.doubt(b, pc, c.Time, false)
		c.Prov = max(c.Prov, s.prov)
	}
	vm.pushLeaf(l)
	s.unfilled = b.kind == blobDeopt || b.kind == blobUncommonTrap
	var f found
	var ok bool
	if c.Regs.Arch == cpu.ARM64 {
		f, ok = l.callerAArch64()
	} else {
		if b.kind == blobContinuation {
			if f, ok = l.thawing(); l.uncopied {
				markVirtual(c)
				return walk.Uncopied
			}
		}
		if !ok && l.readable() && vm.stepByReading(c, b, pc) {
			return walk.Stepped
		}
		if !ok {
			f, ok = l.callerX86()
		}
		// The wrapper of Continuation.yield switches stacks on its way out. There only its code
		// tells where the return address is.
		if l.guessed && b.kind == blobNativeMethod && vm.stepByReading(c, b, pc) {
			return walk.Stepped
		}
	}
	if ok && l.plausible(f.ra) {
		return vm.leave(l, f)
	}
	if vm.stepByReading(c, b, pc) {
		return walk.Stepped
	}
	return walk.Stuck
}

// pushLeaf appends the stopped frame.
func (vm *VM) pushLeaf(l *leaf) {
	b := l.b
	ref := uint64(b.id) << 32
	if b.kind == blobNMethod && l.pc >= b.frameComplete {
		pc := l.pc + 1
		if poll, ok := l.polled(); ok {
			pc = poll
		}
		ref = refOf(b, b.atOrAfter(pc))
	}
	if l.inStaticCall() {
		vm.push(l.c, l.pc, uint64(b.id)<<32, walk.KindStub, walk.Exact, 0)
		return
	}
	// Resolve decides whether that place is coarse, as it depends on how the VM was started.
	vm.push(l.c, l.pc, ref, kindOf(b), walk.Exact, 0)
}

// leave moves the Cursor to the caller of a leaf.
func (vm *VM) leave(l *leaf, f found) walk.Verdict {
	c := l.c
	if f.sp < l.sp || f.sp&7 != 0 || f.ra == 0 {
		return walk.Stuck
	}
	sp := l.sp
	f.ra = stripPC(c, f.ra)
	kept := c.Regs.Known
	c.Regs.PC = f.ra
	c.Regs.SetSP(f.sp)
	c.Regs.SetFP(f.fp)
	c.Regs.Known = javaRegs(c.Regs.Arch)
	c.Leaf, c.LeafCallee, c.Unextended = false, false, 0
	if f.own > f.sp {
		c.Unextended = f.own
	}
	switch l.b.kind {
	case blobStubRoutines, blobOther, blobContinuation:
		c.LeafCallee = true
		if vm.inCallStub(l.b, l.pc) {
			vm.noteEntry(c, l.pc, l.fp)
		}
		// C++ calls some stubs. A stub that has pushed nothing has not changed any of the registers
		// that C++ expects to be preserved either.
		if f.sp <= sp+8 && !vm.inCodeCache(f.ra) {
			c.Regs.Known = kept & calleeSaved(c.Regs.Arch)
		}
	case blobAdapter:
		// A c2i adapter makes room for the interpreter's arguments and passes the caller's stack
		// pointer on in a register.
		if l.extended() {
			vm.unextend(c, senderSP(c))
		}
	}
	return walk.Stepped
}

// unextend takes sp for the caller's own stack pointer, if that can be verified.
func (vm *VM) unextend(c *walk.Cursor, sp uint64) {
	if sp <= c.Regs.SP() || sp-c.Regs.SP() > 256*8 || sp&7 != 0 {
		return
	}
	e := vm.classify(c.Regs.PC)
	if e == nil || e.how != howFrame {
		return
	}
	frame := uint64(e.frame)
	if ra, ok := c.Word(sp + frame - 8); ok && vm.codeRA(stripPC(c, ra)) {
		c.Unextended = sp
	}
}

// senderSP returns the value of the register in which a caller of the interpreter leaves its stack
// pointer.
func senderSP(c *walk.Cursor) uint64 {
	if c.Regs.Arch == cpu.ARM64 {
		return c.Regs.R[19]
	}
	return c.Regs.R[cpu.R13]
}

// calleeSaved returns the registers that C code expects its callees to preserve.
func calleeSaved(a cpu.Arch) uint32 {
	if a == cpu.ARM64 {
		return 0x7ff<<19 | 1<<cpu.XSP // x19 to x29
	}
	return 1<<cpu.RBX | 1<<cpu.RBP | 1<<cpu.RSP | 0xf<<cpu.R12
}

// search looks for the nearest return address from addr up. The word is a guess that its PcDesc
// makes a good one.
func (l *leaf) search(addr uint64, valid func(*VM, uint64) bool) (found, bool) {
	for i := range uint64(maxSearch) {
		at := addr + 8*i
		w, ok := l.c.Word(at)
		if !ok {
			break
		}
		if !valid(l.vm, stripPC(l.c, w)) {
			continue
		}
		fp, ok := l.c.Word(at - 8)
		if !ok {
			fp = l.fp
		}
		l.vm.stepping.prov = walk.Derived
		return found{ra: w, sp: at + 8, fp: fp, saved: true}, true
	}
	return found{}, false
}

// returns reports whether ra may be where a leaf of this kind returns to.
func (l *leaf) returns(ra uint64) bool {
	ra = stripPC(l.c, ra)
	switch l.b.kind {
	case blobNMethod:
		return l.vm.validRA(ra)
	case blobStubRoutines, blobOther:
		return l.vm.afterCall(l.c, ra) // C++ calls stubs too
	}
	return l.vm.codeRA(ra)
}

// plausible reports whether ra may be an address that some code returns to.
func (l *leaf) plausible(ra uint64) bool {
	ra = stripPC(l.c, ra)
	return l.c.Regs.Arch == cpu.ARM64 || l.vm.afterCall(l.c, ra)
}
