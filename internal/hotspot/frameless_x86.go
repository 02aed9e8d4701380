package hotspot

import (
	"golang.org/x/arch/x86/x86asm"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/walk"
	"github.com/candid-profiler/candid/internal/x86"
)

// Some methods have an entry of their own in the interpreter that does their work without a frame:
// Math.sin, CRC32.update, Reference.get, Thread.currentThread. If it contains a collector's
// barrier, the entry also pushes registers and calls the VM
// (cpu/x86/templateInterpreterGenerator_x86.cpp, generate_Reference_get_entry, and load_at of the
// collectors' BarrierSetAssemblers). The frame pointer is the caller's throughout. This file
// therefore simulates the rest of the entry, up to the jump to the caller.

const (
	maxFrameless     = 160 // instructions
	maxFramelessCode = 1024
)

// ownEntry occurs in the names of such entries (AbstractInterpreter::print_method_kind).
const ownEntry = "(kind = java_"

// framelessAt returns the piece of the interpreter that pc lies in if it is a method's own entry.
func (vm *VM) framelessAt(pc uint64) *codelet {
	vm.codelets()
	if pc < vm.stepping.framelessLo || pc >= vm.stepping.framelessHi {
		return nil
	}
	if c := vm.codelet(pc); c != nil && c.frameless {
		return c
	}
	return nil
}

// frameless finds the caller of a thread that is in a method's own entry, or in code called from
// there.
func (vm *VM) frameless(c *walk.Cursor) (f found, ok bool) {
	if c.Regs.Arch != cpu.AMD64 || c.Mem == nil {
		return f, false
	}
	entry := vm.framelessAt(c.Regs.PC)
	if entry == nil {
		return f, false
	}
	size := entry.hi - c.Regs.PC
	if size > maxFramelessCode {
		return f, false
	}
	code := vm.stepping.code[:size]
	if !c.Mem.Bytes(c.Regs.PC, code) {
		return f, false
	}
	x := vm.ahead(c)
	at := uint64(0)
	for range maxFrameless {
		if at >= size {
			return f, false
		}
		if n := native.VectorLength(code[at:]); n > 0 {
			at += uint64(n)
			continue
		}
		inst, err := x86.Decode(code[at:])
		if err != nil {
			return f, false
		}
		at += uint64(inst.Len)
		switch inst.Op {
		case x86asm.JMP:
			if rel, isRel := inst.Args[0].(x86asm.Rel); isRel {
				// Only forward jumps, so that this ends. Rare cases are handled elsewhere.
				if rel < 0 {
					return f, false
				}
				at += uint64(rel)
				continue
			}
			f, ok = foundBy(x.Jump(&inst))
			return f, ok && vm.validRA(f.ra)
		case x86asm.RET:
			f, ok = foundBy(x.Return())
			return f, ok && vm.validRA(f.ra)
		}
		if !x.Do(&inst) {
			return f, false
		}
	}
	return f, false
}
