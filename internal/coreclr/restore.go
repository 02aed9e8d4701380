package coreclr

import (
	"bytes"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/ehframe"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/walk"
)

// restoreCode is the runtime's own code with which a method goes on after it has caught an exception, or in
// its optimized code in the middle of a loop (JIT_Patchpoint in src/coreclr/vm/jithelpers.cpp):
// ClrRestoreNonvolatileContextWorker in src/coreclr/vm/amd64/Context.S of .NET 9 and 10. It loads the
// method's registers from a CONTEXT, then its stack pointer, and jumps to it. Its unwind information on Unix
// is wrong from the second instruction on: it takes rbp, which was only pushed, for the address of the frame.
var restoreCode = []byte{
	0x55, 0x49, 0x89, 0xfa, 0x49, 0x89, 0xf3, 0x41, 0xf6, 0x42, 0x30, 0x02, 0x74, 0x54, // push rbp; r10 = context; r11 = shadow stack; if it has integers
	0x49, 0x8b, 0x9a, 0x90, 0, 0, 0, 0x49, 0x8b, 0x8a, 0x80, 0, 0, 0, 0x49, 0x8b, 0x92, 0x88, 0, 0, 0, // rbx, rcx, rdx
	0x4d, 0x8b, 0x82, 0xb8, 0, 0, 0, 0x4d, 0x8b, 0x8a, 0xc0, 0, 0, 0, // r8, r9
	0x49, 0x8b, 0xaa, 0xa0, 0, 0, 0, 0x49, 0x8b, 0xb2, 0xa8, 0, 0, 0, 0x49, 0x8b, 0xba, 0xb0, 0, 0, 0, // rbp, rsi, rdi
	0x4d, 0x8b, 0xa2, 0xd8, 0, 0, 0, 0x4d, 0x8b, 0xaa, 0xe0, 0, 0, 0, 0x4d, 0x8b, 0xb2, 0xe8, 0, 0, 0, 0x4d, 0x8b, 0xba, 0xf0, 0, 0, 0, // r12 to r15
	0x41, 0xf6, 0x42, 0x30, 0x01, 0x74, 0x39, // if it has the stack pointer
	0x4d, 0x85, 0xdb, 0x74, 0x24, 0xf3, 0x48, 0x0f, 0x1e, 0xc8, 0x49, 0x29, 0xc3, 0x49, 0xc1, 0xeb, 0x03, 0x48, 0xc7, 0xc0, 0xff, 0, 0, 0, // the shadow stack
	0x49, 0x39, 0xc3, 0x49, 0x0f, 0x42, 0xc3, 0xf3, 0x48, 0x0f, 0xae, 0xe8, 0x49, 0x29, 0xc3, 0x77, 0xef,
	0x49, 0x8b, 0x82, 0xf8, 0, 0, 0, 0x49, 0x8b, 0xa2, 0x98, 0, 0, 0, 0xff, 0xe0, // rax = rip; rsp; jmp rax
	0x5d, 0xc3, // pop rbp; ret
}

// Offsets in restoreCode.
const (
	restorePushed   = 0x01 // rbp is on the stack
	restoreLoading  = 0x15 // from here on registers are the method's
	restoreSwitched = 0xa0 // the stack is the method's
	restorePop      = 0xa2
	restoreRet      = 0xa3
)

// FindRestore returns the offset of restoreCode in a piece of code, -1 if it is not there.
func FindRestore(code []byte) int { return bytes.Index(code, restoreCode) }

// inRestore reports whether an address is in restoreCode.
func (vm *VM) inRestore(pc uint64) bool {
	return vm.restore != 0 && pc-vm.restore < uint64(len(restoreCode))
}

// Rules for restoreCode, with rbp on the stack: while the other registers are still the caller's, and
// when they are not.
var restoreRules = func() (rules [2]*ehframe.Rule) {
	for i, keep := range []uint32{1<<cpu.RBX | 1<<cpu.RBP | 1<<cpu.R12 | 1<<cpu.R13 | 1<<cpu.R14 | 1<<cpu.R15, 1 << cpu.RBP} {
		rules[i] = &ehframe.Rule{
			CFAReg: cpu.RSP, CFAOff: 16, RA: ehframe.Save{Reg: 16, How: ehframe.AtCFA, Off: -8},
			Saves: []ehframe.Save{{Reg: cpu.RBP, How: ehframe.AtCFA, Off: -16}}, Keep: keep,
		}
	}
	return rules
}()

// stepRestore steps over restoreCode.
func (vm *VM) stepRestore(c *walk.Cursor) walk.Verdict {
	off := c.Regs.PC - vm.restore
	f := walk.Frame{PC: c.Regs.PC, Kind: walk.KindStub, Prov: c.Prov}
	if off >= restoreSwitched && off < restorePop {
		// The method is entered where it goes on, with all of its registers.
		if c.Regs.Known&(1<<cpu.RAX) == 0 || vm.at(c.Regs.R[cpu.RAX]) == nil {
			return walk.NotMine
		}
		c.Stack.Push(f)
		c.Regs.PC = c.Regs.R[cpu.RAX]
		return vm.Step(c)
	}
	r := restoreRules[1]
	switch {
	case off < restorePushed, off == restoreRet:
		r = pushedRules[0]
	case off < restoreLoading:
		r = restoreRules[0]
	}
	if ra, _, ok := native.Caller(c, r); !ok || !c.AfterCall(ra) {
		return walk.NotMine
	}
	c.Stack.Push(f)
	if !native.Follow(c, r) {
		return walk.Stuck
	}
	c.Prov = max(c.Prov, walk.Derived)
	return walk.Stepped
}
