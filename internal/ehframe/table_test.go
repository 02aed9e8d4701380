package ehframe

import (
	"bytes"
	"debug/elf"
	"os"
	"testing"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/objfile"
)

// words is memory that holds only these words.
type words map[uint64]uint64

func (w words) Word(a uint64) (uint64, bool) { v, ok := w[a]; return v, ok }

func TestEval(t *testing.T) {
	regs := &cpu.Registers{PC: 0x40100b, Known: cpu.AllKnown, Arch: cpu.AMD64}
	regs.R[cpu.RSP], regs.R[cpu.RBP] = 0x7000, 0x7100
	mem := words{0x70f8: 0x1234}
	// The rule that linkers write for PLT entries: rsp+8, and 8 more from the
	// 11th byte of each 16 on. It is the example of the psABI's users.
	plt := []byte{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}
	for _, c := range []struct {
		name string
		expr []byte
		want uint64
		ok   bool
	}{
		{"plt after the push", plt, 0x7010, true},
		{"saved stack pointer", []byte{0x76, 0x78, 0x06}, 0x1234, true}, // breg6 -8, deref
		{"unreadable", []byte{0x76, 0x70, 0x06}, 0, false},
		{"empty", nil, 0, false},
		{"underflow", []byte{0x22}, 0, false},
		{"endless loop", []byte{0x2f, 0xfd, 0xff}, 0, false},
		{"division by zero", []byte{0x31, 0x30, 0x1b}, 0, false},
		{"branch taken", []byte{0x31, 0x31, 0x28, 1, 0, 0x35}, 1, true}, // over lit5
		{"rot", []byte{0x31, 0x32, 0x33, 0x17, 0x13, 0x13}, 3, true},    // 3 goes below 1
		{"cut off", []byte{0x0e, 1, 2}, 0, false},
	} {
		got, ok := Eval(c.expr, regs, mem, 0, false)
		if got != c.want || ok != c.ok {
			t.Errorf("%s: %#x %v, want %#x %v", c.name, got, ok, c.want, c.ok)
		}
	}
	regs.PC = 0x40100a
	if got, _ := Eval(plt, regs, mem, 0, false); got != 0x7008 {
		t.Errorf("plt before the push: %#x", got)
	}
}

// openFile opens a library; the test is skipped if it is not there.
func openFile(t testing.TB, path string) *objfile.File {
	t.Helper()
	r, err := os.Open(path)
	if err != nil {
		t.Skip("no x86-64 glibc here")
	}
	t.Cleanup(func() { r.Close() })
	f, err := objfile.Open(r)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFarReaderEqualsWhole(t *testing.T) {
	f := openFile(t, "/lib/x86_64-linux-gnu/libc.so.6")
	whole, err := Open(f)
	if err != nil {
		t.Fatal(err)
	}
	far, err := Open(f)
	if err != nil {
		t.Fatal(err)
	}
	s := f.Section(".eh_frame")
	far.eh.bytes = source{r: f.SectionReader(s), size: s.Size}
	index := far.eh.index.table.whole
	if len(index) < 3*8*headPairs {
		t.Fatalf("an index of %d bytes, in %d pairs", len(index), far.eh.index.n)
	}
	far.eh.index.table = source{r: bytes.NewReader(index), size: uint64(len(index))}
	text := f.Section(".text")
	for addr := text.Addr; addr < text.Addr+text.Size; addr += 41 {
		a, b := whole.Lookup(addr), far.Lookup(addr)
		if (a == nil) != (b == nil) {
			t.Fatalf("%#x: %v and %v", addr, a, b)
		}
		if a != nil && (a.CFAReg != b.CFAReg || a.CFAOff != b.CFAOff || a.Keep != b.Keep || len(a.Saves) != len(b.Saves)) {
			t.Fatalf("%#x: %+v and %+v", addr, a, b)
		}
	}
}

func FuzzTable(f *testing.F) {
	if e, err := elf.Open("/lib64/ld-linux-x86-64.so.2"); err == nil {
		eh, hdr := e.Section(".eh_frame"), e.Section(".eh_frame_hdr")
		if eh != nil && hdr != nil {
			a, _ := eh.Data()
			b, _ := hdr.Data()
			if len(a) > 600 && len(b) > 100 {
				f.Add(a[:600], b[:100], eh.Addr, hdr.Addr, uint64(0x2000), false)
				f.Add(a[:600], []byte(nil), eh.Addr, uint64(0), uint64(0x2000), false)
			}
		}
		e.Close()
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, []byte{1, 0x1b, 3, 0x3b, 0, 0, 0, 0, 1, 0, 0, 0}, uint64(8), uint64(0), uint64(1), true)
	regs := &cpu.Registers{Known: cpu.AllKnown, Arch: cpu.AMD64}
	f.Fuzz(func(t *testing.T, eh, hdr []byte, ehAddr, hdrAddr, pc uint64, debug bool) {
		for _, arch := range []cpu.Arch{cpu.AMD64, cpu.ARM64} {
			table := FromBytes(arch, eh, ehAddr, hdr, hdrAddr)
			table.eh.debug = debug
			addrs := []uint64{pc, pc + 1, ehAddr}
			for _, p := range table.eh.index.list {
				addrs = append(addrs, p.start)
			}
			for _, addr := range addrs {
				r := table.Lookup(addr)
				if r == nil {
					continue
				}
				if r.CFAExpr == nil && int(r.CFAReg) > cpu.NumRegs {
					t.Fatalf("CFA of register %d", r.CFAReg)
				}
				Eval(r.CFAExpr, regs, words{}, 0, false)
				for _, s := range r.Saves {
					if int(s.Reg) >= cpu.NumRegs {
						t.Fatalf("save of register %d", s.Reg)
					}
					Eval(s.Expr, regs, words{}, 1, true)
				}
			}
		}
	})
}

func BenchmarkLookup(b *testing.B) {
	f := openFile(b, "/lib/x86_64-linux-gnu/libc.so.6")
	t, err := Open(f)
	if err != nil {
		b.Fatal(err)
	}
	text := f.Section(".text")
	b.ReportAllocs()
	addr := text.Addr
	for b.Loop() {
		t.Lookup(addr)
		if addr += 61; addr >= text.Addr+text.Size {
			addr = text.Addr
		}
	}
}
