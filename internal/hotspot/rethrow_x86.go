package hotspot

import (
	"bytes"

	"golang.org/x/arch/x86/x86asm"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/walk"
	"github.com/candid-profiler/candid/internal/x86"
)

// The frame of a method that an exception leaves is taken off like any other, but then the
// interpreter asks the VM for its caller's handler: push rax (the exception); push rdx (the
// caller's return address); call SharedRuntime::exception_handler_for_return_address, with the
// stack aligned one way or the other; mov rbx,rax; pop rdx; pop rax; jmp rbx
// (cpu/x86/templateInterpreterGenerator_x86.cpp, generate_throw_exception, the same since JDK 8).
// Throughout, rbp is the caller's, which means nothing if the caller is compiled.

// rethrowEnd is mov rbx,rax; pop rdx; pop rax; jmp rbx.
var rethrowEnd = []byte{0x48, 0x8B, 0xD8, 0x5A, 0x58, 0xFF, 0xE3}

const (
	maxRethrow     = 24 // instructions
	maxRethrowCode = 128
)

// rethrowing finds the caller of a method that an exception has left, for a thread in the
// interpreter between taking the method's frame off and the last jump, or in code that is called in
// between.
func (vm *VM) rethrowing(c *walk.Cursor) (f found, ok bool) {
	const before = 5 // bytes: the end up to its jump
	if c.Regs.Arch != cpu.AMD64 || c.Mem == nil || c.Regs.PC < vm.interpLo+before || c.Regs.PC >= vm.interpHi {
		return f, false
	}
	// Very little of the interpreter's code does so.
	never := &vm.stepping.catches[c.Regs.PC%staysSlots]
	if *never == c.Regs.PC {
		return f, false
	}
	code := vm.stepping.code[:min(maxRethrowCode, before+vm.interpHi-c.Regs.PC)]
	if !c.Mem.Bytes(c.Regs.PC-before, code) {
		return f, false
	}
	x := vm.ahead(c)
	for done := 3; done <= before; done++ {
		if !bytes.HasPrefix(code[before-done:], rethrowEnd) {
			continue
		}
		sp := c.Regs.SP()
		switch done {
		case 3: // pop rdx comes next
			if ra, read := c.Word(sp); read {
				f, ok = foundBy(x.Continue(ra, sp+16))
			}
		case 4: // pop rax
			f, ok = foundBy(x.Continue(c.Regs.R[cpu.RDX], sp+8))
		case 5:
			f, ok = foundBy(x.Continue(c.Regs.R[cpu.RDX], sp))
		}
		return f, ok && vm.validRA(f.ra)
	}
	code = code[before:]
	end := bytes.Index(code, rethrowEnd)
	if end < 0 {
		*never = c.Regs.PC
		return f, false
	}
	at := 0
	for range maxRethrow {
		if at == end {
			sp, known := x.SP()
			if !known {
				return f, false
			}
			ra, read := x.Word(sp)
			f, ok = foundBy(x.Continue(ra, sp+16))
			return f, ok && read && vm.validRA(ra)
		}
		if at > end {
			break
		}
		if n := native.VectorLength(code[at:]); n > 0 {
			at += n
			continue
		}
		inst, err := x86.Decode(code[at:])
		if err != nil {
			break
		}
		at += inst.Len
		if rel, isRel := inst.Args[0].(x86asm.Rel); isRel && inst.Op == x86asm.JMP {
			if rel < 0 {
				break
			}
			at += int(rel)
			continue
		}
		// Before leave the frame is complete.
		if inst.Op == x86asm.LEAVE || inst.Op == x86asm.JMP || inst.Op == x86asm.RET || !x.Do(&inst) {
			break
		}
	}
	*never = c.Regs.PC
	return f, false
}
