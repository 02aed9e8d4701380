package native

import (
	hexadecimal "encoding/hex"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/walk"
)

func machineCode(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hexadecimal.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// HotSpot's stubs, and where the caller's stack pointer is at places in them: the return address
// lies in the word below.
func TestReader(t *testing.T) {
	const (
		subtype = "57 56 51 50 48 8b 74 24 30 48 8b 44 24 28 48 8b 7e 28 8b 0f 48 83 c7 08 48 85 c0 f2 48 af " +
			"0f 85 12 00 00 00 48 89 46 20 48 c7 44 24 30 01 00 00 00 58 59 5e 5f c3 48 c7 44 24 30 00 00 00 00 58 59 5e 5f c3"
		// call of C code with 8 bytes for alignment; pop rdx; jmp rbx
		unwind = "48 83 ec 08 e8 00 10 00 00 48 83 c4 08 48 8b d8 49 8b c6 5a ff e3"
		// push rax; push rcx; test; je +5; jmp out of here; pop rcx; pop rax; … jmp rcx
		barrier = "50 51 48 85 c0 59 58 74 05 e9 00 00 10 00 58 48 83 ec 20 50 ff e1"
		cpuid   = "55 53 56 0f a2 89 06 5e 5b 5d c3"
	)
	for _, c := range []struct {
		name  string
		code  string
		pc    int
		tails bool
		off   int32 // of the CFA from rsp; 0: no rule
	}{
		{"before the first push", subtype, 0, true, 8},
		{"between pushes", subtype, 2, true, 24},
		{"in the body", subtype, 0x1e, true, 40},
		{"behind the branch", subtype, 0x36, true, 40},
		{"at the return", subtype, 0x35, true, 8},
		{"before the call's room", unwind, 0, true, 8},
		{"behind the call", unwind, 9, true, 16},
		{"before the return address is popped", unwind, 0x13, true, 8},
		{"barrier", barrier, 2, true, 24},
		{"barrier of a method", barrier, 2, false, 0},
		{"a function", cpuid, 5, true, 32},
		{"its epilogue", cpuid, 9, true, 16},
		// mov rsp,rbx; sub rsp,16; pop rbp; ret, after the first: a virtual thread continues where
		// its frames were brought back from the heap.
		{"another stack", "488be3 4883ec10 5d c3", 3, true, 0},
		{"another stack's address, moved", "488bd8 4833c0 488be3 4883ec10 5d c3", 0, true, -1},
		{"another stack's address", "488bd8 4833c0 488be3 4883ec10 5d c3", 6, true, -2},
		{"a pushed address", "68 00 10 00 00 c3", 0, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r Reader
			rule := r.Rule(machineCode(t, c.code), 0x7000, 0x7000+uint64(c.pc), c.tails)
			switch {
			case rule == nil && (c.off != 0 || c.name == "another stack"):
				t.Fatalf("no rule, want the CFA at rsp+%d", c.off)
			case rule != nil && c.off == 0 && c.name != "another stack":
				t.Fatalf("rule %+v, want none", rule)
			case c.off == -1 && rule.CFAReg == cpu.RAX && rule.CFAOff == 0:
			case c.off == -2 && rule.CFAReg == cpu.RBX && rule.CFAOff == 0:
			case rule != nil && (rule.CFAReg != cpu.RSP || rule.CFAOff != c.off):
				t.Fatalf("CFA at register %d + %d, want rsp+%d", rule.CFAReg, rule.CFAOff, c.off)
			}
		})
	}
}

// Stubs of SHA-512 align the stack, and keep the old stack pointer on it. If the stack was switched
// to one that begins below its pointer, the caller's frame pointer lies there too.
func TestReaderSwitched(t *testing.T) {
	var r Reader
	rule := r.Rule(machineCode(t, "488be3 4883ec10 5d c3"), 0x1000, 0x1003, true)
	if rule == nil || rule.CFAReg != cpu.RSP || rule.CFAOff != 0 || len(rule.Saves) != 1 || rule.Saves[0].Reg != cpu.RBP || rule.Saves[0].Off != -16 {
		t.Errorf("%+v", rule)
	}
	// pop rbp; ret after it, with nothing below the pointer.
	rule = r.Rule(machineCode(t, "488be3 5d c3"), 0x1000, 0x1003, true)
	if rule == nil || rule.CFAOff != 16 || len(rule.Saves) != 1 || rule.Saves[0].Off != -16 {
		t.Errorf("%+v", rule)
	}
}

func TestReaderAligned(t *testing.T) {
	// push rbp; push r15; mov rax,rsp; sub rsp,0x98; and rsp,-32; mov [rsp+0x90],rax;
	// nop; mov rsp,[rsp+0x90]; pop r15; pop rbp; ret
	const code = "55 41 57 48 8b c4 48 81 ec 98 00 00 00 48 83 e4 e0 48 89 84 24 90 00 00 00 90 48 8b a4 24 90 00 00 00 41 5f 5d c3"
	for _, c := range []struct {
		pc   int
		off  int32 // of the CFA from rsp, or from the word at slot
		slot uint64
	}{
		{0, 8, 0}, {1, 16, 0}, {3, 24, 0}, {6, 24, 0}, {25, 24, 0x90}, {26, 24, 0x90}, {34, 24, 0}, {36, 16, 0}, {37, 8, 0},
	} {
		const sp = synthStackBase
		mem := wordsAt{sp + 0x90: sp + 0x100}
		cur := &walk.Cursor{Mem: mem}
		cur.Regs.Arch, cur.Regs.Known = cpu.AMD64, cpu.AllKnown
		cur.Regs.SetSP(sp)
		cur.Regs.R[cpu.RAX] = sp // mov rax,rsp may have left this
		want := uint64(sp) + uint64(c.off)
		if c.slot != 0 {
			want = sp + 0x100 + uint64(c.off)
		}
		mem[want-8] = 0x1234
		var r Reader
		rule := r.Rule(machineCode(t, code), 0x7000, 0x7000+uint64(c.pc), true)
		if rule == nil {
			t.Errorf("+%d: no rule", c.pc)
			continue
		}
		ra, at, ok := Caller(cur, rule)
		if !ok || ra != 0x1234 || at != want-8 {
			t.Errorf("+%d: %#x at %#x (%v), want %#x", c.pc, ra, at, ok, want-8)
		}
		if !Follow(cur, rule) || cur.Regs.SP() != want || cur.Regs.Known&(1<<cpu.R15|1<<cpu.RBP) == 0 {
			t.Errorf("+%d: followed to stack pointer %#x, want %#x", c.pc, cur.Regs.SP(), want)
		}
	}
}

const synthStackBase = 0x7fff_0000_0000

// wordsAt is memory with a few words in it, and 0 everywhere else.
type wordsAt map[uint64]uint64

func (m wordsAt) Word(addr uint64) (uint64, bool) { return m[addr], true }
func (m wordsAt) Bytes(uint64, []byte) bool       { return false }

// The stubs of JDK 25 also have a frame on rbp, and keep the old stack pointer in it.
func TestReaderAlignedFrame(t *testing.T) {
	// push rbp; mov rbp,rsp; push rdx; push rcx; mov rax,rsp; sub rsp,0x70; and
	// rsp,-32; mov [rsp+0x38],rax; mov [rsp+0x40],rbp; mov rbp,7; nop; mov
	// rbp,[rsp+0x40]; mov rsp,[rsp+0x38]; pop rcx; pop rdx; leave; ret
	const code = "55 488bec 52 51 488bc4 4883ec70 4883e4e0 4889442438 48896c2440 48c7c507000000 90 488b6c2440 488b642438 59 5a c9 c3"
	const sp, old, frame = synthStackBase, synthStackBase + 0x90, synthStackBase + 0xa0
	for _, pc := range []int{0, 1, 4, 5, 6, 9, 13, 17, 22, 27, 34, 35, 40, 45, 46, 47, 48} {
		mem := wordsAt{sp + 0x38: old, sp + 0x40: frame, frame: 0x5555, frame + 8: 0x1234}
		cur := &walk.Cursor{Mem: mem}
		cur.Regs.Arch, cur.Regs.Known = cpu.AMD64, cpu.AllKnown
		for reg := range cur.Regs.R {
			cur.Regs.R[reg] = 0x7777 // a value without meaning
		}
		cur.Regs.SetSP(map[int]uint64{0: frame + 8, 1: frame, 4: frame, 5: frame - 8, 6: old, 9: old, 13: old - 0x70, 45: old, 46: old + 8, 47: old + 16, 48: frame + 8}[pc])
		if cur.Regs.SP() == 0 {
			cur.Regs.SetSP(sp)
		}
		if pc >= 4 && pc < 34 || pc >= 40 && pc < 48 {
			cur.Regs.SetFP(frame)
		}
		cur.Regs.R[cpu.RAX] = old
		var r Reader
		rule := r.Rule(machineCode(t, code), 0x7000, 0x7000+uint64(pc), true)
		if rule == nil {
			t.Errorf("+%d: no rule", pc)
			continue
		}
		if ra, at, ok := Caller(cur, rule); !ok || ra != 0x1234 || at != frame+8 {
			t.Errorf("+%d: %#x at %#x (%v), want %#x", pc, ra, at, ok, frame+8)
		}
	}
}

// The code after the system call that starts a thread has no caller in the new thread, and one in
// the old.
func TestNewborn(t *testing.T) {
	// mov $435,%eax; syscall; test %rax,%rax; jl; je; ret
	code := machineCode(t, "90 90 90 90 90 90 90 90 90 b8 b3 01 00 00 0f 05 48 85 c0 7c 14 74 01 c3 31 ed")
	mem := &codeCopy{0x5000, code}
	for pc, want := range map[uint64]bool{0x5010: true, 0x5013: true, 0x5015: true, 0x5009 + 16: true, 0x501a: false} {
		if got := clones(mem, pc); got != want {
			t.Errorf("%#x: %v, want %v", pc, got, want)
		}
	}
	c := &walk.Cursor{Leaf: true}
	c.Regs.Arch = cpu.AMD64
	if !newborn(c) {
		t.Error("a thread that the system call gave 0 is not the new one")
	}
	c.Regs.R[cpu.RAX] = 4711
	if newborn(c) {
		t.Error("the old thread is taken for the new one")
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte{0x55, 0x5d, 0xc3}, uint16(0))
	f.Fuzz(func(t *testing.T, code []byte, at uint16) {
		var r Reader
		r.Rule(code, 0x1000, 0x1000+uint64(at), at&1 != 0)
	})
}
