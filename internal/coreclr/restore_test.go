package coreclr

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/walk"
)

// The runtime's code that goes on with a method after an exception, as 9.0.1 has it: its caller is found at
// each instruction, and where the stack is the method's already, nothing is guessed.
func TestRestoreCode(t *testing.T) {
	const base, sp, ra, rbp = 0x1000, 0x7000, 0x2005, 0x7f80
	if at := FindRestore(append(make([]byte, 100), restoreCode...)); at != 100 {
		t.Errorf("found at %d", at)
	}
	broken := slices.Clone(restoreCode)
	broken[0x99] = 0x90
	if at := FindRestore(broken); at != -1 {
		t.Errorf("other code found at %d", at)
	}
	b := make([]byte, 0x8000)
	copy(b[base:], restoreCode)
	b[ra-5] = 0xe8 // call
	for _, c := range []struct {
		off    uint64
		pushed bool
		rbx    bool // it is still the caller's
	}{{0, false, true}, {1, true, true}, {4, true, true}, {0x0e, true, true}, {0x15, true, false}, {0x38, true, false}, {0x6b, true, false}, {0x99, true, false}, {0xa2, true, false}, {0xa3, false, true}} {
		at := uint64(sp)
		le := binary.LittleEndian
		if c.pushed {
			at -= 8
			le.PutUint64(b[at:], rbp)
		}
		le.PutUint64(b[sp:], ra)
		vm := &VM{mem: &memoryImage{b}, restore: base}
		vm.code.open()
		var st walk.Stack
		cur := &walk.Cursor{Stack: &st, Mem: vm.mem, Leaf: true, Regs: cpu.Registers{Arch: cpu.AMD64, PC: base + c.off, Known: 1<<16 - 1}}
		cur.Regs.R[cpu.RSP], cur.Regs.R[cpu.RBP] = at, 0x4444
		if !c.pushed {
			cur.Regs.R[cpu.RBP] = rbp
		}
		if !vm.Owns(cur.Regs.PC) || vm.Step(cur) != walk.Stepped {
			t.Errorf("at %#x no caller is found", c.off)
			continue
		}
		r := &cur.Regs
		if r.PC != ra || r.SP() != sp+8 || r.R[cpu.RBP] != rbp || (r.Known&(1<<cpu.RBX) != 0) != c.rbx {
			t.Errorf("at %#x the caller is at %#x, sp %#x, rbp %#x, known %#x", c.off, r.PC, r.SP(), r.R[cpu.RBP], r.Known)
		}
	}
	vm := &VM{mem: &memoryImage{b}, restore: base}
	vm.code.open()
	var st walk.Stack
	cur := &walk.Cursor{Stack: &st, Mem: vm.mem, Leaf: true, Regs: cpu.Registers{Arch: cpu.AMD64, PC: base + restoreSwitched, Known: 1<<16 - 1}}
	if vm.Step(cur) != walk.NotMine || len(st.Frames) != 0 {
		t.Error("it goes on where there is no method")
	}
}
