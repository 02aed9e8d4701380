package hotspot

import (
	"bytes"

	"golang.org/x/arch/x86/x86asm"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/hotspot/simulate"
	"github.com/candid-profiler/candid/internal/walk"
	"github.com/candid-profiler/candid/internal/x86"
)

// The interpreter leaves a method by taking its frame off and jumping: leave; pop the return
// address into a register; set rsp to what the caller had, which was read from the frame before;
// jump to that register. The registers depend on the release and on whether the method is native.
// This file therefore simulates the few instructions up to the jump, on the registers and the stack
// that were copied.
//
// A method that continues compiled, in the middle of a loop, leaves its frame likewise, but its
// caller's address is put back on an aligned stack for the compiled code
// (cpu/x86/templateTable_x86.cpp, TemplateTable::branch).

// Bounds on the code that is followed to the jump.
const (
	maxLeaving     = 16 // instructions
	maxLeavingCode = 96 // bytes

	staysSlots = 512 // places that are remembered as not leaving a method
)

// leaving finds the caller of a thread that was stopped in the interpreter between taking a
// method's frame off and the jump to its caller.
func (vm *VM) leaving(c *walk.Cursor) (f found, ok bool) {
	if c.Regs.Arch != cpu.AMD64 {
		return f, false
	}
	// Very little of the interpreter's code leaves a method.
	stays := &vm.stepping.stays[c.Regs.PC%staysSlots]
	if *stays == c.Regs.PC {
		return f, false
	}
	code := vm.stepping.code[:min(maxLeavingCode, vm.interpHi-c.Regs.PC)]
	if c.Mem == nil || !c.Mem.Bytes(c.Regs.PC, code) || !jumpsAway(code) {
		*stays = c.Regs.PC
		return f, false
	}
	x, set, at := vm.ahead(c), false, c.Regs.PC
	for range maxLeaving {
		inst, err := x86.Decode(code)
		if err != nil || inst.Len > len(code) {
			return f, false
		}
		if inst.Op == x86asm.JMP && vm.migrates(c, at) {
			f, ok = foundBy(x.Return())
			return f, ok && vm.validRA(f.ra)
		}
		if inst.Op == x86asm.JMP {
			f, ok = foundBy(x.Jump(&inst))
			// A jump alone may be one within the interpreter.
			return f, ok && (set || vm.javaCaller(f.ra) || vm.beginsBarrier(f.ra)) && vm.validRA(f.ra)
		}
		if !leaves(inst.Op) || !x.Do(&inst) {
			*stays = c.Regs.PC
			return f, false
		}
		to, isReg := simulate.RegisterOf(inst.Args[0])
		set = set || inst.Op == x86asm.POP || inst.Op == x86asm.MOV && isReg && to == cpu.RSP
		code = code[inst.Len:]
		at += uint64(inst.Len)
	}
	return f, false
}

// leaves reports whether the instruction occurs in leaving a method. It does not accept leave,
// before which the frame is complete, nor calls.
func leaves(op x86asm.Op) bool {
	switch op {
	case x86asm.POP, x86asm.MOV, x86asm.AND, x86asm.PUSH, x86asm.CMP, x86asm.TEST, x86asm.NOP, x86asm.LEA, x86asm.MOVZX, x86asm.XOR,
		x86asm.JE, x86asm.JNE, x86asm.JA, x86asm.JBE, x86asm.JB, x86asm.JAE:
		return true
	}
	return false
}

// jumpsAway reports whether code may hold jmp reg or jmp [reg+n]: FF with 4 in the middle bits of
// the next byte, and no table, as the jump to the next bytecode's code has.
func jumpsAway(code []byte) bool {
	for i := range max(0, len(code)-1) {
		if code[i] == 0xFF && code[i+1]&0x38 == 0x20 && code[i+1] >= 0x40 {
			return true
		}
	}
	return false
}

// alignedReturn is and rsp,-16; push rcx.
var alignedReturn = []byte{0x48, 0x83, 0xE4, 0xF0, 0x51}

// migrates reports whether the jump at pc is the one into compiled code.
func (vm *VM) migrates(c *walk.Cursor, pc uint64) bool {
	n := len(alignedReturn)
	return pc-vm.interpLo >= uint64(n) && bytes.Equal(c.Code(pc-uint64(n), n), alignedReturn)
}

// excepted finds the caller if the deoptimisation blob was jumped to with an exception, as
// forward_exception does after an allocation stub. The return address is in rdx then. The blob
// makes room for it with a 0, saves all registers, and puts it there (generate_deopt_blob in
// cpu/x86/sharedRuntime_x86_64.cpp, exception_offset).
func (l *leaf) excepted() (f found, ok bool) {
	if l.b.kind != blobDeopt || !l.known() || l.c.Regs.Known&(1<<cpu.RDX) == 0 || !l.vm.codeRA(l.c.Regs.R[cpu.RDX]) {
		return found{}, false
	}
	f = found{ra: l.c.Regs.R[cpu.RDX], sp: l.sp, fp: l.fp}
	room := l.sp // where the 0 is
	switch {
	case exceptedEntry.at(l.code, l.off), exceptedEntry.at(l.code, l.off-7), exceptedEntry.at(l.code, l.off-14):
		return f, true
	case exceptedEntry.at(l.code, l.off-16):
	case exceptedEntry.at(l.code, l.off-17):
		room += 8
	case l.fp >= l.sp && l.fp <= l.sp+l.fs:
		room = l.fp + 8
	default:
		return found{}, false
	}
	if room > l.sp {
		if f.fp, ok = l.c.Word(room - 8); !ok {
			return found{}, false
		}
		f.saved = true
	}
	f.sp = room + 8
	w, ok := l.c.Word(room)
	return f, ok && w == 0
}

// exceptedEntry is mov [r15+exception_pc],rdx; mov [r15+exception_oop],rax; push 0; push rbp.
var exceptedEntry = pat("49 89 97 ?? ?? ?? ?? 49 89 87 ?? ?? ?? ?? 6A 00 55")

// forwarding finds where forward_exception's return address lies while it has the VM look for a
// handler. The stub then pops the address and jumps to the handler, which reading the code takes
// for a call in the stub's place whose caller has the next word as its return address. The stack
// may have been aligned for the call.
func (vm *VM) forwarding(c *walk.Cursor, b *blob, pc uint64) (at uint64, ok bool) {
	if c.Regs.Arch != cpu.AMD64 || b.kind != blobStubRoutines {
		return 0, false
	}
	l := leaf{code: vm.codeOf(b), off: int(pc - b.codeBegin)}
	if l.off < 0 || !l.forwards() {
		return 0, false
	}
	if unalign.at(l.code, l.off) {
		return c.Regs.SP() + 8, true
	}
	return c.Regs.SP(), true
}

// unalign is add rsp,8.
var unalign = pat("48 83 C4 08")

// ahead begins the simulation of a thread. The result is valid until the next one begins.
func (vm *VM) ahead(c *walk.Cursor) *simulate.Thread {
	x := &vm.stepping.ahead
	x.Begin(c)
	return x
}

// foundBy is what a simulation found.
func foundBy(k simulate.Caller, ok bool) (found, bool) {
	return found{ra: k.RA, sp: k.SP, fp: k.FP}, ok
}
