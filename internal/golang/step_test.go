package golang

import (
	"encoding/binary"
	"testing"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/walk"
)

// world is a process for steps: code from 0x10000 to 0x20000 in which every
// address is after a call, and words elsewhere.
type world struct {
	words map[uint64]uint64
	calls uint64 // the target of the calls; 0: unknown
}

func (w *world) Executable(addr uint64) bool { return addr >= 0x10000 && addr < 0x20000 }

func (w *world) Word(addr uint64) (uint64, bool) {
	v, ok := w.words[addr]
	return v, ok
}

func (w *world) Bytes(addr uint64, p []byte) bool {
	if !w.Executable(addr) {
		for i := range p {
			v, ok := w.words[(addr+uint64(i))&^7]
			if !ok {
				return false
			}
			p[i] = byte(v >> ((addr + uint64(i)) & 7 * 8))
		}
		return true
	}
	switch len(p) {
	case 4: // arm64: bl
		binary.LittleEndian.PutUint32(p, 0x94000000|uint32(int64(w.calls-addr)/4)&(1<<26-1))
	default: // amd64: call
		clear(p)
		if len(p) < 5 {
			break
		}
		p[len(p)-5] = 0xe8
		binary.LittleEndian.PutUint32(p[len(p)-4:], uint32(w.calls-addr-uint64(len(p))))
	}
	return true
}

const (
	copyAt = 0x700000 // of the thread's stack
	userAt = 0x500000 // of a goroutine's
	entry  = 0x10100
)

// cursor returns a Cursor at the start of a copy of the words.
func cursor(arch cpu.Arch, leaf bool, w *world, words ...uint64) *walk.Cursor {
	c := &walk.Cursor{Leaf: leaf, Mem: w, Copy: walk.StackCopy{Base: copyAt}}
	for i, v := range words {
		c.Copy.Bytes = binary.LittleEndian.AppendUint64(c.Copy.Bytes, v)
		w.words[copyAt+8*uint64(i)] = v
	}
	c.Regs = cpu.Registers{Arch: arch, Known: cpu.AllKnown, PC: 0x10008}
	c.Regs.SetSP(copyAt)
	return c
}

func TestStep(t *testing.T) {
	user := map[uint64]uint64{userAt: userAt + 0x80, userAt + 8: 0x10555}
	for _, c := range []struct {
		name  string
		arch  cpu.Arch
		leaf  bool
		rule  Rule
		regs  map[int]uint64
		words []uint64
		user  map[uint64]uint64
		calls uint64
		v     walk.Verdict
		pc    uint64
		sp    uint64
		fp    uint64
		after bool // the caller is a leaf too
	}{
		{name: "no frame yet", arch: cpu.AMD64, leaf: true, regs: map[int]uint64{cpu.RBP: 77},
			words: []uint64{0x10333}, pc: 0x10333, sp: copyAt + 8, fp: 77},
		{name: "frame", arch: cpu.AMD64, rule: Rule{Size: 24}, words: []uint64{1, 2, 88, 0x10333}, pc: 0x10333, sp: copyAt + 32, fp: 88},
		{name: "first", arch: cpu.AMD64, rule: Rule{Role: First}, v: walk.Done},
		{name: "new thread", arch: cpu.AMD64, leaf: true, rule: Rule{Role: Start}, words: []uint64{5}, v: walk.Done},
		{name: "before a thread is made", arch: cpu.AMD64, leaf: true, rule: Rule{Role: Start}, words: []uint64{0x10333}, pc: 0x10333, sp: copyAt + 8},
		{name: "interrupted", arch: cpu.AMD64, rule: Rule{Role: Injected, Size: 8}, words: []uint64{88, 0x10334}, pc: 0x10334, sp: copyAt + 16, fp: 88, after: true},
		{name: "vfork", arch: cpu.AMD64, leaf: true, rule: Rule{Role: Popped}, regs: map[int]uint64{cpu.R12: 0x10333}, pc: 0x10333, sp: copyAt},
		{name: "put aside", arch: cpu.AMD64, rule: Rule{Role: Leave, Size: 16}, v: walk.Done},
		{name: "stack not changed", arch: cpu.AMD64, rule: Rule{Role: Switch, Size: 8, Entry: entry}, regs: map[int]uint64{cpu.RBP: copyAt},
			words: []uint64{88, 0x10333}, pc: 0x10333, sp: copyAt + 16, fp: 88},
		{name: "frame pointer just saved", arch: cpu.AMD64, leaf: true, rule: Rule{Role: Switch, Size: 8, Entry: entry}, regs: map[int]uint64{cpu.RBP: 88},
			words: []uint64{88, 0x10333}, pc: 0x10333, sp: copyAt + 16, fp: 88},
		{name: "stack changed", arch: cpu.AMD64, rule: Rule{Role: Switch, Size: 8, Entry: entry}, regs: map[int]uint64{cpu.RBP: userAt},
			words: []uint64{5, 6}, user: user, calls: entry, pc: 0x10555, sp: userAt + 16, fp: userAt + 0x80},
		{name: "called something else", arch: cpu.AMD64, rule: Rule{Role: Switch, Size: 8, Entry: entry}, regs: map[int]uint64{cpu.RBP: userAt},
			words: []uint64{5, 6}, user: user, calls: entry + 32, v: walk.Done},
		{name: "no goroutine", arch: cpu.AMD64, rule: Rule{Role: Switch, Size: 8, Entry: entry}, regs: map[int]uint64{cpu.RBP: 0},
			words: []uint64{5, 6}, v: walk.Done},
		{name: "goroutine not there", arch: cpu.AMD64, rule: Rule{Role: Switch, Size: 8, Entry: entry}, regs: map[int]uint64{cpu.RBP: userAt},
			words: []uint64{5, 6}, calls: entry, v: walk.Done},
		{name: "arm64, no frame", arch: cpu.ARM64, leaf: true, regs: map[int]uint64{cpu.X30: 0x10334, cpu.X29: 77}, pc: 0x10334, sp: copyAt, fp: 77},
		{name: "arm64, frame", arch: cpu.ARM64, rule: Rule{Size: 32}, words: []uint64{0x10334, 1, 2, 3}, pc: 0x10334, sp: copyAt + 32},
		{name: "arm64, interrupted", arch: cpu.ARM64, rule: Rule{Role: Injected, Size: 16}, words: []uint64{0x10334, 1, 0x10444, 2},
			pc: 0x10334, sp: copyAt + 32, after: true},
		{name: "arm64, stack changed", arch: cpu.ARM64, rule: Rule{Role: Switch, Size: 16, Entry: entry}, regs: map[int]uint64{cpu.X29: userAt},
			words: []uint64{5, 6}, user: map[uint64]uint64{userAt: userAt + 0x80, userAt + 8: 0x10554}, calls: entry, pc: 0x10554, sp: userAt + 24, fp: userAt + 0x80},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &world{words: map[uint64]uint64{}, calls: c.calls}
			for at, v := range c.user {
				w.words[at] = v
			}
			cur := cursor(c.arch, c.leaf, w, c.words...)
			for r, v := range c.regs {
				cur.Regs.R[r] = v
			}
			if v := c.rule.Step(cur, w, 0); v != c.v {
				t.Fatalf("verdict %d, want %d", v, c.v)
			}
			if c.v != walk.Stepped {
				return
			}
			if r := &cur.Regs; r.PC != c.pc || r.SP() != c.sp || c.fp != 0 && r.FP() != c.fp || cur.Leaf != c.after {
				t.Errorf("pc %#x, sp %#x, fp %#x, leaf %v; want %#x, %#x, %#x, %v", r.PC, r.SP(), r.FP(), cur.Leaf, c.pc, c.sp, c.fp, c.after)
			}
		})
	}
}

// TestChangedStack checks that a goroutine's frames are not walked if the thread's stack is not
// what it was when the sample was taken.
func TestChangedStack(t *testing.T) {
	w := &world{words: map[uint64]uint64{userAt: userAt + 0x80, userAt + 8: 0x10555}, calls: entry}
	r := Rule{Role: Switch, Size: 8, Entry: entry}
	for _, changed := range []bool{false, true} {
		c := cursor(cpu.AMD64, false, w, 1, 2, 3, 4, 5, 6)
		c.Regs.SetSP(copyAt + 32)
		c.Regs.SetFP(userAt)
		if changed {
			w.words[copyAt+8] = 99
		}
		want := walk.Stepped
		if changed {
			want = walk.Done
		}
		if v := r.Step(c, w, 0); v != want || !changed && (!c.Outside || !c.Checked || c.Low|c.High == 0) {
			t.Errorf("changed %v: verdict %d, outside %v, checked %v", changed, v, c.Outside, c.Checked)
		}
	}
}

func FuzzStep(f *testing.F) {
	f.Add(uint8(Switch), int32(8), uint64(userAt), false, false, []byte("0123456789abcdef"))
	f.Fuzz(func(t *testing.T, role uint8, size int32, fp uint64, leaf, arm bool, stack []byte) {
		if size < 0 || size > maxFrame {
			return
		}
		arch := cpu.AMD64
		if arm {
			arch = cpu.ARM64
		}
		w := &world{words: map[uint64]uint64{}, calls: entry}
		c := cursor(arch, leaf, w)
		c.Copy.Bytes = stack
		for i := 0; i+8 <= len(stack); i += 8 {
			v := binary.LittleEndian.Uint64(stack[i:])
			w.words[copyAt+uint64(i)], w.words[v&^7] = v, v
			c.Regs.R[i/8%cpu.NumRegs] = v
		}
		c.Regs.SetSP(copyAt)
		c.Regs.SetFP(fp)
		r := Rule{Role: Role(role) % (Trampoline + 1), Size: size, Entry: entry}
		for range 16 {
			if r.Step(c, w, 0) != walk.Stepped {
				break
			}
		}
	})
}

func BenchmarkStep(b *testing.B) {
	w := &world{words: map[uint64]uint64{}}
	c := cursor(cpu.AMD64, false, w, 1, 2, 88, 0x10333)
	r := &Rule{Size: 24}
	b.ReportAllocs()
	for b.Loop() {
		c.Regs.SetSP(copyAt)
		if r.Step(c, w, 0) != walk.Stepped {
			b.Fatal("not stepped")
		}
	}
}
