package native

import (
	"testing"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/ehframe"
	"github.com/candid-profiler/candid/internal/walk"
)

type words map[uint64]uint64

func (w words) Word(a uint64) (uint64, bool) { v, ok := w[a]; return v, ok }
func (w words) Bytes(uint64, []byte) bool    { return false }

// armTable is an .eh_frame at 0x1000 as an arm64 compiler makes it for
//
//	0x2000: stp x29, x30, [sp, #-32]!
//	0x2004: mov x29, sp
//	0x2008: str x19, [sp, #16]
//	0x200c: ...
var armTable = []byte{
	16, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 4, 0x78, 30, 1, 0x1b, 0x0c, 31, 0, // CIE: aligned by 4 and -8, ra x30, pcrel sdata4; CFA = sp+0
	24, 0, 0, 0, 24, 0, 0, 0, 0xe4, 0x0f, 0, 0, 0x20, 0, 0, 0, 0, // FDE: 0x2000 (from 0x101c), 32 bytes
	0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3, // +4: CFA = sp+32, x29 at CFA-32, x30 at CFA-24
	0x42, 0x93, 2, 0, // +12: x19 at CFA-16
}

func TestFollowARM64(t *testing.T) {
	table := ehframe.FromBytes(cpu.ARM64, armTable, 0x1000, nil, 0)
	mem := words{0x7000: 0x7100, 0x7008: 0x002f_0000_0000_5554, 0x7010: 0x19}
	for _, c := range []struct {
		pc                  uint64
		wantPC, sp, fp, x19 uint64
	}{
		{0x2000, 0x3334, 0x7000, 0x29, 0xaa}, // before the first instruction: the link register
		{0x2004, 0x5554, 0x7020, 0x7100, 0xaa},
		{0x2010, 0x5554, 0x7020, 0x7100, 0x19},
	} {
		r := table.Lookup(c.pc)
		if r == nil {
			t.Fatalf("no rule for %#x", c.pc)
		}
		cur := walk.Cursor{Mem: mem, Leaf: true, Regs: cpu.Registers{PC: c.pc, Arch: cpu.ARM64, Known: cpu.AllKnown}}
		cur.Regs.R[cpu.XSP], cur.Regs.R[cpu.X29], cur.Regs.R[cpu.X30], cur.Regs.R[19] = 0x7000, 0x29, 0x3334, 0xaa
		if v := follow(&cur, r); v != walk.Stepped {
			t.Fatalf("%#x: verdict %d", c.pc, v)
		}
		// A signature in the upper bits of the return address is stripped.
		if cur.Regs.PC != c.wantPC&(1<<48-1) || cur.Regs.SP() != c.sp || cur.Regs.FP() != c.fp || cur.Regs.R[19] != c.x19 {
			t.Errorf("%#x: caller at %#x, sp %#x, fp %#x, x19 %#x", c.pc, cur.Regs.PC, cur.Regs.SP(), cur.Regs.FP(), cur.Regs.R[19])
		}
		if cur.Regs.Known&(1<<cpu.X29|1<<19) != 1<<cpu.X29|1<<19 || cur.Regs.Known&1 != 0 {
			t.Errorf("%#x: known registers %#x", c.pc, cur.Regs.Known)
		}
	}
	// A caller that is not a leaf has nothing in its link register.
	cur := walk.Cursor{Mem: mem, Regs: cpu.Registers{PC: 0x2000, Arch: cpu.ARM64, Known: 1 << cpu.XSP}}
	if v := follow(&cur, table.Lookup(0x2000)); v != walk.Stuck {
		t.Errorf("without a link register: verdict %d", v)
	}
}
