package native

import (
	"golang.org/x/arch/x86/x86asm"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/walk"
)

// startSize is more bytes than the entry code of any C library takes before it calls C: 34 bytes in
// glibc's programs, 62 in its dynamic linker, 30 in musl.
const startSize = 96

// entered reports whether addr lies in the code at a program's entry point. Not all of that code
// has tables that say that there is no caller. It ends where it stops (hlt) or jumps to an address
// that was passed to it.
func (r *codeReader) entered(arch cpu.Arch, mem walk.Memory, entry, addr uint64) bool {
	if addr-entry >= startSize {
		return false
	}
	if arch != cpu.AMD64 {
		return addr-entry < 48
	}
	for pc := entry; pc <= addr; {
		inst, ok := r.decode(mem, pc, entry, entry+startSize)
		if !ok {
			return false
		}
		next := pc + uint64(inst.Len)
		if addr < next {
			return true
		}
		_, relative := inst.Args[0].(x86asm.Rel)
		if inst.Op == x86asm.HLT || inst.Op == x86asm.RET || inst.Op == x86asm.JMP && !relative {
			return false
		}
		pc = next
	}
	return false
}
