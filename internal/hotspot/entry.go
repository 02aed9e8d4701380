package hotspot

import (
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/walk"
)

// savedRegister is where the call stub keeps a register of the C++ code that
// called it, in words from its frame pointer.
type savedRegister struct {
	reg  uint8
	slot int8
}

// callStubRow describes the call stub's frame on one platform. On all platforms it has the caller's
// frame pointer at 0 and the return address at +1.
type callStubRow struct {
	arch    cpu.Arch
	wrapper int8 // slot of the JavaCallWrapper
	saved   []savedRegister
}

// callStubRows holds the layouts of cpu/x86/stubGenerator_x86_64.cpp (generate_call_stub) and
// cpu/aarch64/stubGenerator_aarch64.cpp, the same in all releases. The position of the wrapper,
// which the VM publishes on x86, tells Windows from the others.
var callStubRows = []callStubRow{
	{cpu.AMD64, -6, []savedRegister{{cpu.RBX, -7}, {cpu.R12, -8}, {cpu.R13, -9}, {cpu.R14, -10}, {cpu.R15, -11}}},
	{cpu.AMD64, +2, []savedRegister{{cpu.RBX, -1}, {cpu.RSI, -2}, {cpu.RDI, -3}, {cpu.R12, -4}, {cpu.R13, -5}, {cpu.R14, -6}, {cpu.R15, -7}}},
	{cpu.ARM64, -8, []savedRegister{{19, -9}, {20, -10}, {21, -11}, {22, -12}, {23, -13}, {24, -14}, {25, -15}, {26, -16}, {27, -17}, {28, -18}}},
}

func (vm *VM) callStubRow(arch cpu.Arch) *callStubRow {
	for i := range callStubRows {
		if r := &callStubRows[i]; r.arch == arch && int64(r.wrapper)*8 == vm.off.entryWrapper {
			return r
		}
	}
	return nil
}

// stepCallStub steps over the stub through which C++ code called Java, into the C++ code, and
// restores the registers that the C++ code expects to be preserved.
func (vm *VM) stepCallStub(c *walk.Cursor, e *pcEntry) walk.Verdict {
	fp := c.Regs.FP()
	vm.push(c, c.Regs.PC, e.ref, walk.KindStub, walk.Exact, walk.ReturnAddress)
	row := vm.callStubRow(c.Regs.Arch)
	if !vm.fpKnown(c) || row == nil || fp <= c.Regs.SP() || fp-c.Regs.SP() > maxFrame || fp&7 != 0 {
		return walk.Stuck
	}
	// A wrong frame pointer is recognised by the wrapper: it must be an object in the frame of the
	// C++ function that called the stub.
	if !vm.noteEntry(c, c.Regs.PC, fp) {
		return walk.Stuck
	}
	ra, ok := c.Word(fp + 8)
	if !ok {
		return walk.Stuck
	}
	caller, ok := c.Word(fp)
	if !ok {
		return walk.Stuck
	}
	known := javaRegs(c.Regs.Arch)
	for _, r := range row.saved {
		if v, ok := c.Word(slot(fp, int64(r.slot))); ok {
			c.Regs.R[r.reg] = v
			known |= 1 << r.reg
		}
	}
	vm.enter(c, ra, fp+16, caller)
	c.Regs.Known = known
	vm.stepping.flags = 0
	return walk.Stepped
}

// noteEntry remembers where the anchor of the Java frames below the call stub's
// C++ caller is; false if fp is not the call stub's frame.
func (vm *VM) noteEntry(c *walk.Cursor, pc, fp uint64) bool {
	s := &vm.stepping
	s.entryPC, s.below = pc, 0
	w, ok := c.Word(fp + uint64(vm.off.entryWrapper))
	if !ok || w <= fp || w-fp > maxFrame || w&7 != 0 {
		return false
	}
	if vm.off.wrapperAnchor != vmstructs.Absent {
		s.below = w + vm.off.wrapperAnchor
	}
	return true
}

// javaAnchor is where a thread left Java code.
type javaAnchor struct{ sp, pc, fp uint64 }

// readAnchor reads the anchor at addr. Words come from the stack's copy if they lie in it, else
// from the process.
func (vm *VM) readAnchor(c *walk.Cursor, addr uint64) (a javaAnchor, ok bool) {
	o := &vm.off
	if o.lastSP == vmstructs.Absent || o.lastPC == vmstructs.Absent || o.lastFP == vmstructs.Absent {
		return a, false
	}
	if a.sp, ok = vm.word(c, addr+o.lastSP); !ok {
		return a, false
	}
	if a.pc, ok = vm.word(c, addr+o.lastPC); !ok {
		return a, false
	}
	a.fp, ok = vm.word(c, addr+o.lastFP)
	return a, ok
}

// word reads a word that may change: from the copy, or uncached from the process.
func (vm *VM) word(c *walk.Cursor, addr uint64) (uint64, bool) {
	if c.InCopy(addr) {
		return c.Word(addr)
	}
	return vm.Mem.U64(addr)
}

// Resume moves a Cursor that got stuck in native code to the next Java frame below it: from the
// anchor that the last call stub's wrapper keeps, or, before any call stub, from the anchor of the
// thread itself, which is read from the running process and believed only if the copied stack
// agrees. It appends no frame; the frames that follow are marked as derived, because the native
// frames between are missing. It returns false if there is no Java frame below or none can be
// believed; the Cursor is then unchanged.
func (vm *VM) Resume(c *walk.Cursor) bool {
	s := &vm.stepping
	var a javaAnchor
	var ok, stitched bool
	if vm.passedEntry(c) {
		if s.below == 0 {
			return false
		}
		a, ok = vm.readAnchor(c, s.below)
		stitched = !c.InCopy(s.below)
		s.below = 0
	} else {
		thread, known := vm.Threads.JavaThread(c.TID)
		if !known || vm.off.anchor == vmstructs.Absent {
			return false
		}
		a, ok = vm.readAnchor(c, thread+vm.off.anchor)
		stitched = true
	}
	if !ok || a.sp == 0 || !vm.anchorHolds(c, &a, stitched) {
		return false
	}
	vm.enter(c, a.pc, a.sp, a.fp)
	if a.fp == 0 {
		c.Regs.Known &^= 1<<cpu.RBP | 1<<cpu.X29
		if c.Regs.Arch == cpu.ARM64 {
			c.Regs.Known |= 1 << cpu.XSP
		} else {
			c.Regs.Known |= 1 << cpu.RSP
		}
	}
	s.prov = walk.Derived
	s.flags = 0
	if stitched {
		s.flags = walk.Stitched
	}
	return true
}

// passedEntry reports whether this walk has stepped over a call or upcall stub.
func (vm *VM) passedEntry(c *walk.Cursor) bool {
	if vm.stepping.entryPC == 0 {
		return false
	}
	for i := len(c.Stack.Frames) - 1; i >= 0; i-- {
		if c.Stack.Frames[i].PC == vm.stepping.entryPC {
			return true
		}
	}
	return false
}

// anchorHolds reports whether an anchor fits the stack, and fills in its pc if the VM left it out.
func (vm *VM) anchorHolds(c *walk.Cursor, a *javaAnchor, live bool) bool {
	if a.sp&7 != 0 || a.sp < c.Regs.SP() || c.High != 0 && a.sp >= c.High || a.sp-c.Regs.SP() > 64<<20 {
		return false
	}
	ra, ok := c.Word(a.sp - 8)
	if !ok {
		return false
	}
	ra = stripPC(c, ra)
	if a.pc == 0 {
		a.pc = ra
	}
	e := vm.classify(a.pc)
	if e == nil || e.how == howNone {
		return false
	}
	if !live || c.Regs.Arch == cpu.ARM64 {
		return true
	}
	// The thread has run on since the copy. If it is still in the same call, the
	// word below the anchor's stack pointer returns into the same code.
	if vm.inInterpreter(a.pc) {
		return vm.inInterpreter(ra)
	}
	return e.blob != nil && e.blob.contains(ra)
}

// recoverFP finds the frame pointer of the interpreter frame that native code returns to, if
// unwinding the native code has lost it: the thread's anchor keeps it while the native code runs.
func (vm *VM) recoverFP(c *walk.Cursor) bool {
	thread, ok := vm.Threads.JavaThread(c.TID)
	if !ok || vm.off.anchor == vmstructs.Absent {
		return false
	}
	a, ok := vm.readAnchor(c, thread+vm.off.anchor)
	if !ok || a.fp == 0 || a.sp < c.Regs.SP() || a.sp-c.Regs.SP() > maxInterpreted {
		return false
	}
	old := c.Regs
	c.Regs.SetFP(a.fp)
	if !vm.frameSetUp(c, vm.slots(c)) {
		c.Regs = old
		return false
	}
	if c.Regs.Arch == cpu.ARM64 {
		c.Regs.Known |= 1 << cpu.X29
	} else {
		c.Regs.Known |= 1 << cpu.RBP
	}
	vm.stepping.prov = walk.Derived
	vm.stepping.flags |= walk.Stitched
	return true
}

// savedExceptionPC reads the pc of the thread's last poll or implicit exception.
func (vm *VM) savedExceptionPC(tid uint32) (uint64, bool) {
	thread, ok := vm.Threads.JavaThread(tid)
	if !ok || vm.off.savedExceptionPC == vmstructs.Absent {
		return 0, false
	}
	return vm.Mem.U64(thread + vm.off.savedExceptionPC)
}
