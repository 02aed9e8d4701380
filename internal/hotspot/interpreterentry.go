package hotspot

import (
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/walk"
)

// stepInterpreterLeaf steps over the frame of a thread that was stopped in the
// interpreter.
func (vm *VM) stepInterpreterLeaf(c *walk.Cursor) walk.Verdict {
	s := vm.slots(c)
	if f, ok := vm.frameless(c); ok {
		id, ok := vm.method(c.Regs.R[s.entryMethod])
		vm.push(c, c.Regs.PC, methodRef(id, 0, ok), interpretedKind(ok), walk.Exact, 0)
		vm.enter(c, f.ra, f.sp, f.fp)
		return walk.Stepped
	}
	if f, ok := vm.leaving(c); ok {
		id, ok := vm.method(c.Regs.R[s.entryMethod])
		vm.push(c, c.Regs.PC, methodRef(id, -1, ok), interpretedKind(ok), walk.Exact, 0)
		vm.enter(c, f.ra, f.sp, f.fp)
		return walk.Stepped
	}
	if f, ok := vm.rethrowing(c); ok {
		vm.push(c, c.Regs.PC, 0, walk.KindStub, walk.Exact, 0)
		vm.enter(c, f.ra, f.sp, f.fp)
		return walk.Stepped
	}
	if f, fpBased, ok := vm.entering(c, s); ok {
		return vm.stepEntering(c, s, f, fpBased)
	}
	if !vm.frameSetUp(c, s) {
		vm.push(c, c.Regs.PC, 0, walk.KindStub, walk.Derived, 0)
		return walk.Stuck
	}
	fp := c.Regs.FP()
	id, bci, ok := vm.interpreted(c, s, fp)
	if ok {
		// The register is the current position, the slot the last saved one.
		if b := vm.bciFromBCP(id, c.Regs.R[s.liveBCP]); b >= 0 {
			bci = b
		}
	}
	prov := walk.Exact
	if !ok {
		prov = walk.Derived
	}
	vm.push(c, c.Regs.PC, methodRef(id, bci, ok), interpretedKind(ok), prov, 0)
	return vm.popInterpreted(c, fp)
}

// entering reports whether the thread is entering or leaving a method, so that its frame is absent
// or incomplete, and returns where its caller continues (docs/hotspot.md, "Interpreter frames").
func (vm *VM) entering(c *walk.Cursor, s *interpreterSlots) (f found, fpBased, ok bool) {
	sp, fp := c.Regs.SP(), c.Regs.FP()
	building := fp >= sp && fp < sp-uint64(8*s.bottom) && fp&7 == 0
	if c.Regs.Arch == cpu.ARM64 {
		if lr := stripPC(c, c.Regs.R[cpu.X30]); !vm.frameSetUp(c, s) && !building && vm.validRA(lr) {
			return found{ra: lr, sp: sp, fp: fp}, false, true
		}
	} else {
		// In code that runs with a whole frame, words on the stack may be old, and registers hold
		// the program's values or what a callee left in them.
		if vm.frameSetUp(c, s) && vm.inWholeFrame(c.Regs.PC) {
			return f, false, false
		}
		if f, ok := vm.built(c, s); ok {
			return f, true, true
		}
		if vm.ownFrame(c, s) {
			return f, false, false
		}
		rax := c.Regs.R[cpu.RAX]
		top, _ := c.Word(sp)
		// An interpreted caller's own frame is whole, and is taken for the leaf's: the method that
		// is being entered is left out.
		if vm.javaCaller(top) || (!vm.frameSetUp(c, s) && vm.validRA(top)) {
			return found{ra: top, sp: sp + 8, fp: fp}, false, true
		}
		if second, ok := c.Word(sp + 8); ok && vm.validRA(second) && vm.pushedFP(c) {
			saved := top
			return found{ra: second, sp: sp + 16, fp: saved}, false, true
		}
		if vm.javaCaller(rax) || (!vm.frameSetUp(c, s) && vm.validRA(rax)) {
			// While the frame is built, and for a few instructions longer, the register holds the
			// return address.
			near := fp >= sp && fp-sp <= uint64(-8*s.bottom)+64
			if !near {
				// Compiled callers use the register for anything, so it is not an address to read
				// from.
				return found{ra: rax, sp: sp, fp: fp}, false, true
			}
			if w, ok := c.Word(fp + 8); !ok || w != rax {
				return found{ra: rax, sp: sp, fp: fp}, false, true
			}
		}
	}
	if !building {
		return f, false, false
	}
	ra, ok1 := c.Word(fp + 8)
	saved, ok2 := c.Word(fp)
	if ok1 && ok2 && vm.validRA(stripPC(c, ra)) {
		return found{ra: ra, sp: fp + 16, fp: saved}, true, true
	}
	return f, false, false
}

// ownFrame reports whether the frame at fp is that of the method which is being entered, and
// whole: the register for the bytecodes points to the first of them. It holds the caller's stack
// pointer until just before the bytecode pointer is pushed, which frameSetUp requires
// (25 cpu/x86/templateInterpreterGenerator_x86.cpp, generate_fixed_frame). What is on the stack
// below, where a synchronized method makes room for its lock, may be old.
func (vm *VM) ownFrame(c *walk.Cursor, s *interpreterSlots) bool {
	if !vm.frameSetUp(c, s) {
		return false
	}
	ptr, ok := c.Word(slot(c.Regs.FP(), s.method))
	if !ok {
		return false
	}
	id, ok := vm.method(ptr)
	m := vm.methodAt(id)
	return ok && m != nil && c.Regs.R[s.liveBCP] == m.codeBase
}

// maxSaved bounds what a collector's barrier saves of the registers, in bytes.
const maxSaved = 1024

// built reports whether the frame of a method that is being entered is complete up to its method
// slot, and returns where its caller continues. The class's mirror is stored next, from 17 on
// through a collector's barrier, which may push much, including the return address that is still in
// a register.
func (vm *VM) built(c *walk.Cursor, s *interpreterSlots) (f found, ok bool) {
	sp, fp := c.Regs.SP(), c.Regs.FP()
	ptr := c.Regs.R[s.entryMethod]
	if fp&7 != 0 || slot(fp, s.method) < sp || slot(fp, s.method)-sp > maxSaved || ptr == 0 {
		return f, false
	}
	if w, ok := c.Word(slot(fp, s.method)); !ok || w != ptr {
		return f, false
	}
	// Before the method is stored, the register for the bytecodes held the caller's stack pointer,
	// so this is not an outer frame of the same method.
	id, ok := vm.method(ptr)
	if m := vm.methodAt(id); !ok || m == nil || c.Regs.R[s.liveBCP] != m.codeBase {
		return f, false
	}
	ra, ok1 := c.Word(fp + 8)
	saved, ok2 := c.Word(fp)
	return found{ra: ra, sp: fp + 16, fp: saved}, ok1 && ok2 && vm.validRA(ra)
}

// pushedFP reports whether the instruction before pc was push rbp.
func (vm *VM) pushedFP(c *walk.Cursor) bool {
	var b [1]byte
	return c.Mem != nil && c.Mem.Bytes(c.Regs.PC-1, b[:]) && b[0] == 0x55
}

// javaCaller reports whether ra returns into compiled code or into the call stub.
func (vm *VM) javaCaller(ra uint64) bool {
	e := vm.classify(ra)
	if e == nil {
		return false
	}
	switch e.how {
	case howCallStub, howDeopt:
		return true
	case howFrame:
		return e.blob.kind == blobNMethod && e.exact || e.blob.nm != nil && e.blob.nm.enterSpecial
	}
	return false
}

// stepEntering steps over a method whose frame is incomplete. The method is taken from the register
// that holds it at entry.
func (vm *VM) stepEntering(c *walk.Cursor, s *interpreterSlots, f found, fpBased bool) walk.Verdict {
	id, ok := vm.method(c.Regs.R[s.entryMethod])
	bci := int32(0)
	if !ok && fpBased {
		if m, read := c.Word(slot(c.Regs.FP(), s.method)); read {
			id, ok = vm.method(m)
		}
	}
	vm.push(c, c.Regs.PC, methodRef(id, bci, ok), interpretedKind(ok), walk.Exact, 0)
	sender, leaving := c.Regs.R[s.entrySender], c.Regs.R[s.entryMethod]
	if fpBased {
		if w, ok := c.Word(c.Regs.FP() - 8); ok && c.Regs.SP() <= c.Regs.FP()-8 {
			sender = w
		}
	}
	if f.sp < c.Regs.SP() {
		return walk.Stuck
	}
	vm.enter(c, f.ra, f.sp, f.fp)
	if vm.unextend(c, sender); c.Unextended == 0 && !ok {
		vm.unextend(c, leaving)
	}
	return walk.Stepped
}
