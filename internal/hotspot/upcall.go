package hotspot

import (
	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/walk"
)

// stepUpcall steps over the stub through which native code called Java (Foreign
// Function & Memory API), into the native code. The stub's frame begins like
// any C function's (cpu/x86/upcallLinker_x86_64.cpp, the same on aarch64) and
// Java code keeps the frame pointer, so it can be stepped over without knowing
// its layout.
func (vm *VM) stepUpcall(c *walk.Cursor, e *pcEntry) walk.Verdict {
	vm.push(c, e.pc, e.ref, walk.KindStub, walk.Exact, walk.ReturnAddress)
	s := &vm.stepping
	s.entryPC, s.below = e.pc, vm.upcallAnchor(c, e)
	fp := c.Regs.FP()
	if vm.fpKnown(c) && fp > c.Regs.SP() && fp-c.Regs.SP() < maxFrame && fp&7 == 0 {
		return vm.popFrame(c, fp+16)
	}
	if e.frame >= 16 {
		s.prov = walk.Derived
		return vm.popFrame(c, c.Regs.SP()+uint64(e.frame))
	}
	return walk.Stuck
}

// upcallAnchor returns the address of the anchor of the Java frames below an upcall's native code,
// 0 if the VM does not publish it (before JDK 25).
func (vm *VM) upcallAnchor(c *walk.Cursor, e *pcEntry) uint64 {
	if vm.off.upcallFrameData == vmstructs.Absent || e.blob == nil {
		return 0
	}
	off, ok := vm.Mem.U32(e.blob.start + vm.off.upcallFrameData)
	if !ok || uint64(off) > maxFrame {
		return 0
	}
	sp := c.Regs.SP()
	if c.Unextended != 0 {
		sp = c.Unextended
	}
	return sp + uint64(off)
}
