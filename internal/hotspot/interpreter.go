package hotspot

import (
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/walk"
)

// interpreterSlots is the layout of an interpreter frame, in words from the frame pointer
// (docs/hotspot.md, "Interpreter frames"; cpu/{x86,aarch64}/frame_{x86,aarch64}.hpp of each
// release).
type interpreterSlots struct {
	arch  cpu.Arch
	since int // first JDK with this layout

	method, bcp int64
	senderSP    int64
	locals      int64
	bottom      int64 // the lowest of the fixed slots: initial expression sp

	// registers at the entry of a method and in its bytecodes, by DWARF number
	entryMethod, entrySender, liveBCP int
}

// interpreterRows is searched for the last row that applies. Some slots hold a pointer in some
// versions and a distance from fp in others (locals from 21, last sp and expression sp from 25);
// only their position is used.
var interpreterRows = []interpreterSlots{
	{cpu.AMD64, 8, -3, -7, -1, -6, -8, cpu.RBX, cpu.R13, cpu.R13},
	{cpu.AMD64, 9, -3, -8, -1, -7, -9, cpu.RBX, cpu.R13, cpu.R13},
	{cpu.ARM64, 8, -3, -7, -1, -6, -8, 12, 13, 22},
	{cpu.ARM64, 9, -3, -9, -1, -8, -10, 12, 13, 22},
	{cpu.ARM64, 21, -3, -9, -1, -8, -10, 12, 19, 22},
}

func slotsFor(arch cpu.Arch, major int) *interpreterSlots {
	best := &interpreterRows[0]
	for i := range interpreterRows {
		if r := &interpreterRows[i]; r.arch == arch && r.since <= major {
			best = r
		}
	}
	return best
}

// maxInterpreted bounds the part of the stack below an interpreter frame's fixed part, in bytes:
// the expression stack, locks and what native code that it calls has left.
const maxInterpreted = 64 << 10

// maxLocals bounds the locals between a frame and its caller's stack pointer:
// a method has at most 65,535 of them.
const maxLocals = 65536 * 8

func slot(fp uint64, words int64) uint64 { return fp + uint64(8*words) }

// slots returns the layout for the frame at the Cursor.
func (vm *VM) slots(c *walk.Cursor) *interpreterSlots {
	s := &vm.stepping
	if s.slots == nil || s.slots.arch != c.Regs.Arch {
		s.slots = slotsFor(c.Regs.Arch, vm.Major)
	}
	return s.slots
}

// frameSetUp reports whether fp is the frame pointer of a complete interpreter frame above sp (25
// cpu/x86/frame_x86.inline.hpp:57 makes the same test).
func (vm *VM) frameSetUp(c *walk.Cursor, s *interpreterSlots) bool {
	sp, fp := c.Regs.SP(), c.Regs.FP()
	return fp&7 == 0 && fp > sp && sp <= slot(fp, s.bottom) && fp-sp < maxInterpreted &&
		(c.High == 0 || fp < c.High)
}

// stepInterpreted steps over an interpreter frame that was reached by a return
// address.
func (vm *VM) stepInterpreted(c *walk.Cursor) walk.Verdict {
	s := vm.slots(c)
	if f, ok := vm.frameless(c); ok {
		vm.push(c, c.Regs.PC, 0, walk.KindStub, walk.Exact, walk.ReturnAddress)
		vm.enter(c, f.ra, f.sp, f.fp)
		return walk.Stepped
	}
	if f, ok := vm.rethrowing(c); ok {
		vm.push(c, c.Regs.PC, 0, walk.KindStub, walk.Exact, walk.ReturnAddress)
		vm.enter(c, f.ra, f.sp, f.fp)
		return walk.Stepped
	}
	if !vm.fpKnown(c) && !vm.recoverFP(c) {
		vm.push(c, c.Regs.PC, 0, walk.KindStub, walk.Exact, walk.ReturnAddress)
		return walk.Stuck
	}
	fp := c.Regs.FP()
	if vm.unfilled(c, fp) {
		vm.push(c, c.Regs.PC, 0, walk.KindStub, walk.Exact, walk.ReturnAddress)
		return vm.popInterpreted(c, fp)
	}
	id, bci, ok := vm.interpreted(c, s, fp)
	prov := walk.Exact
	if !ok {
		// The frame pointer does not point at a frame of the interpreter.
		prov = walk.Heuristic
		// A collector's barrier may have made a frame of its own for its call.
		ra, ok1 := c.Word(fp + 8)
		outer, ok2 := c.Word(fp)
		if ok1 && ok2 && !vm.codeRA(stripPC(c, ra)) && outer > fp && outer-fp < maxInterpreted && outer&7 == 0 {
			if id, bci, ok = vm.interpreted(c, s, outer); ok {
				fp, prov = outer, walk.Derived
			}
		}
		c.Prov = max(c.Prov, prov)
	}
	if ok && vm.another(c, s, fp, id) {
		id, bci = 0, -1 // no method has this number
	}
	vm.push(c, c.Regs.PC, methodRef(id, bci, ok), interpretedKind(ok), prov, walk.ReturnAddress)
	if !ok && !vm.frameSetUp(c, s) {
		return walk.Stuck
	}
	return vm.popInterpreted(c, fp)
}

// lastSP is the slot in which an interpreter frame saved the stack pointer with which it left Java
// code, in words from the frame pointer (25 cpu/{x86,aarch64}/frame_{x86,aarch64}.hpp).
const lastSP = -2

// unfilled reports whether the interpreter frame at fp is one of those that replace a compiled
// frame and has not been filled in yet: its caller is set, but its method slot holds what an
// earlier frame left there. Until it is filled in, its last stack pointer is null (25
// cpu/x86/sharedRuntime_x86_64.cpp, generate_deopt_blob; cpu/x86/abstractInterpreter_x86.cpp,
// layout_activation). The outermost frame is filled in first.
func (vm *VM) unfilled(c *walk.Cursor, fp uint64) bool {
	if !vm.stepping.unfilled {
		return false
	}
	last, ok := c.Word(slot(fp, lastSP))
	vm.stepping.unfilled = ok && last == 0
	return vm.stepping.unfilled
}

// interpreted reads what an interpreter frame executes. bci is -1 in native methods.
func (vm *VM) interpreted(c *walk.Cursor, s *interpreterSlots, fp uint64) (id uint32, bci int32, ok bool) {
	m, ok := c.Word(slot(fp, s.method))
	if !ok {
		return 0, -1, false
	}
	if id, ok = vm.nearMethod(m); !ok {
		vm.lookAhead(c, s, fp)
		if id, ok = vm.method(m); !ok {
			return 0, -1, false
		}
	}
	bcp, _ := c.Word(slot(fp, s.bcp))
	return id, vm.bytecodeIndex(id, bcp), true
}

// another reports whether a whole interpreter frame that holds ptr for its Method belongs to
// another method than the one that is at ptr now, because its bytecode pointer does not point into
// that one's bytecodes. The class of the frame's method was then unloaded since the sample, and its
// memory reused.
func (vm *VM) another(c *walk.Cursor, s *interpreterSlots, fp uint64, id uint32) bool {
	bcp, ok := c.Word(slot(fp, s.bcp))
	m := vm.methodAt(id)
	if !ok || m == nil || m.native || bcp == 0 || vm.Major == 8 && bcp < 1<<16 {
		return false
	}
	return bcp-m.codeBase >= uint64(m.codeSize)
}

// bytecodeIndex returns the bci that a bytecode pointer stands for, -1 if none.
func (vm *VM) bytecodeIndex(id uint32, bcp uint64) int32 {
	if bcp == 0 {
		return -1
	}
	// While JDK 8 collects garbage, the slot holds the index itself.
	if vm.Major == 8 && bcp < 1<<16 {
		return int32(bcp)
	}
	return vm.bciFromBCP(id, bcp)
}

// interpretedKind returns the kind of a frame in the interpreter. If the method is not known, as
// while a method is being left, the interpreter's own code is named.
func interpretedKind(known bool) walk.Kind {
	if known {
		return walk.KindInterpreted
	}
	return walk.KindStub
}

// methodRef returns the Frame.Ref of an interpreted method.
func methodRef(id uint32, bci int32, ok bool) uint64 {
	if !ok {
		return 0
	}
	if bci < -1 {
		bci = -1
	}
	return uint64(id)<<32 | uint64(uint32(bci+1))
}

// popInterpreted moves the Cursor to the caller of the interpreter frame at fp.
func (vm *VM) popInterpreted(c *walk.Cursor, fp uint64) walk.Verdict {
	if fp+16 <= c.Regs.SP() {
		return walk.Stuck
	}
	sender, ok := c.Word(fp - 8)
	if !ok {
		return walk.Stuck
	}
	if v := vm.popFrame(c, fp+16); v != walk.Stepped {
		return v
	}
	// If the caller is compiled, an adapter may have pushed arguments between its frame and this
	// one.
	if sender > fp+16 && sender-fp <= maxLocals && sender&7 == 0 {
		c.Unextended = sender
	}
	return walk.Stepped
}
