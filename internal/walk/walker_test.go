package walk

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
)

// fake is code whose frames have a fixed size, and the memory that it lies in.
type fake struct {
	lo, hi  uint64
	size    uint64
	verdict Verdict
	doneAt  uint64
	prov    Provenance
}

func (s *fake) Owns(pc uint64) bool       { return pc >= s.lo && pc < s.hi }
func (s *fake) Executable(pc uint64) bool { return s.Owns(pc) }
func (s *fake) Step(c *Cursor) Verdict {
	if s.verdict == NotMine {
		return NotMine
	}
	c.Stack.Push(Frame{PC: c.Regs.PC, Kind: KindNative, Prov: c.Prov})
	if c.Regs.PC == s.doneAt {
		return Done
	}
	if s.verdict == Stuck {
		return Stuck
	}
	at := c.Regs.SP() + s.size - 8
	if s.size == 0 {
		at += 8
	}
	ra, ok := c.Word(at)
	if !ok {
		return Stuck
	}
	c.Regs.PC = ra
	c.Regs.SetSP(c.Regs.SP() + s.size)
	c.Leaf, c.Prov = false, max(c.Prov, s.prov)
	return Stepped
}

// code is memory full of calls: every address that ends in 5 is after one.
type code struct{}

func (code) Word(uint64) (uint64, bool) { return 0, false }
func (code) Bytes(addr uint64, p []byte) bool {
	for i := range p {
		p[i] = 0x90
		if (addr+uint64(i))%16 == 0 {
			p[i] = 0xe8
		}
	}
	return true
}

func snapshot(pc uint64, words ...uint64) *capture.Snapshot {
	s := &capture.Snapshot{StackAddr: 0x7000, StackTop: 0x7000 + 8*uint64(len(words))}
	for _, w := range words {
		s.Stack = binary.LittleEndian.AppendUint64(s.Stack, w)
	}
	s.Regs = cpu.Registers{PC: pc, Arch: cpu.AMD64, Known: 1<<16 - 1}
	s.Regs.SetSP(0x7000)
	return s
}

func TestEnds(t *testing.T) {
	for _, c := range []struct {
		name  string
		s     fake
		snap  *capture.Snapshot
		end   End
		pcs   []uint64
		worst Provenance
	}{
		{"first frame known", fake{size: 16, doneAt: 0x1025}, snapshot(0x1001, 1, 0x1015, 2, 0x1025, 3, 4), EndComplete, []uint64{0x1001, 0x1015, 0x1025}, Exact},
		{"return address 0", fake{size: 16}, snapshot(0x1001, 1, 0x1015, 2, 0, 9), EndComplete, []uint64{0x1001, 0x1015}, Exact},
		{"return address in no code", fake{size: 16}, snapshot(0x1001, 1, 0x1015, 2, 0x99999, 9), EndBadPC, []uint64{0x1001, 0x1015}, Exact},
		{"stack pointer stands still", fake{size: 0}, snapshot(0x1001, 0x1015, 0x1015), EndBadSP, []uint64{0x1001, 0x1015}, Exact},
		{"misaligned stack pointer", fake{size: 12}, snapshot(0x1001, 0x1015_00000000, 0x1015, 0x1015), EndBadSP, []uint64{0x1001}, Exact},
		{"search", fake{verdict: Stuck, doneAt: 0x1025}, snapshot(0x1001, 1, 0x1017, 7, 0x1025), EndComplete, []uint64{0x1001, 0x1025}, Heuristic},
		{"nothing to be found", fake{verdict: Stuck}, snapshot(0x1001, 1, 2, 3, 0x1017), EndNoRule, []uint64{0x1001}, Exact},
		{"wild pointer", fake{size: 16, doneAt: 0x1015}, snapshot(0xdead, 0x1015), EndComplete, []uint64{0xdead, 0x1015}, Heuristic},
		{"wild pointer 0", fake{size: 16, doneAt: 0x1015}, snapshot(0, 0x1015, 1), EndComplete, []uint64{0, 0x1015}, Heuristic},
		{"derived", fake{size: 16, prov: Derived, doneAt: 0x1015}, snapshot(0x1001, 1, 0x1015, 2), EndComplete, []uint64{0x1001, 0x1015}, Derived},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.s
			s.lo, s.hi = 0x1000, 0x2000
			w := New(cpu.AMD64, &s)
			owner := w.Add(&s)
			var out Stack
			w.Walk(c.snap, code{}, &out)
			var pcs []uint64
			for i, f := range out.Frames {
				pcs = append(pcs, f.PC)
				if want := owner; f.PC < 0x1000 || f.PC > 0x2000 {
					if f.Owner != 0 {
						t.Errorf("frame %d of nobody has owner %d", i, f.Owner)
					}
				} else if f.Owner != want {
					t.Errorf("frame %d has owner %d", i, f.Owner)
				}
			}
			if out.End != c.end || out.Worst != c.worst || len(pcs) != len(c.pcs) {
				t.Fatalf("%x, %v, worst %v; want %x, %v, %v", pcs, out.End, out.Worst, c.pcs, c.end, c.worst)
			}
			for i := range pcs {
				if pcs[i] != c.pcs[i] {
					t.Fatalf("%x, want %x", pcs, c.pcs)
				}
			}
		})
	}
}

func TestKernelFramesComeFirst(t *testing.T) {
	s := &fake{lo: 0x1000, hi: 0x2000, size: 16, doneAt: 0x1001}
	w := New(cpu.AMD64, s)
	w.Add(s)
	snap := snapshot(0x1001, 1, 2)
	snap.Kernel = []uint64{^uint64(5), ^uint64(50)}
	var out Stack
	w.Walk(snap, code{}, &out)
	if len(out.Frames) != 3 || out.Frames[0].Kind != KindKernel || out.Frames[0].Flags != 0 ||
		out.Frames[1].Flags != ReturnAddress || out.Frames[2].PC != 0x1001 {
		t.Errorf("%+v", out.Frames)
	}
	snap.Flags |= capture.NoUser
	w.Walk(snap, code{}, &out)
	if len(out.Frames) != 2 || out.End != EndComplete {
		t.Errorf("a kernel thread: %+v, %v", out.Frames, out.End)
	}
}

func TestAfterCall(t *testing.T) {
	for _, c := range []struct {
		bytes string // the 8 before the address
		want  bool
	}{
		{"\x90\x90\x90\xe8\x01\x02\x03\x04", true},
		{"\x90\x90\x90\x90\x90\x90\xff\xd0", true},          // call rax
		{"\x90\x90\x90\x90\x90\xff\x55\x10", true},          // call [rbp+16]
		{"\x90\x90\x90\x90\xff\x54\x24\x08", true},          // call [rsp+8]
		{"\x90\x90\xff\x15\x01\x02\x03\x04", true},          // call [rip+x]
		{"\x90\xff\x94\xc8\x01\x02\x03\x04", true},          // call [rax+rcx*8+x]
		{"\x90\x90\x90\x90\x90\x90\xff\xe0", false},         // jmp rax
		{"\x90\x90\x90\x90\xe9\x02\x03\x04", false},         // jmp
		{"\x90\x90\x90\x90\x90\x90\x90\x90", false},         //
		{"\x90\x90\x90\x90\x90\x90\x90\xff", false},         // cut off
		{"\x90\x90\x90\x90\x90\x90\xff\x14", false},         // call [sib], without one
		{"\x90\x90\x90\x90\x90\xff\x14\xc8", true},          // call [rax+rcx*8]
		{"\x90\x90\x90\x90\x90\x90\xff\x50", false},         // call [rax+8], cut off
		{"\x90\x90\x90\x90\x90\x90\x90\xe8", false},         //
		{"\xff\x14\x25\x01\x02\x03\x04\x90"[0:8], false},    // ends one byte before
		{"\x90\xff\x14\x25\x01\x02\x03\x04", true},          // call [x]
		{"\xff\xff\xff\xff\xff\xff\xff\xff"[0:8], false},    // no ModRM of a call
		{"\x90\x90\x90\x90\x90\x41\xff\xd3", true},          // call r11
		{"\x00\x00\x00\x00\x00\x00\x00\x00"[0:8], false},    //
		{"\x90\x90\x90\x90\x90\x90\xff\xd8"[0:8], false},    // FF /3, a far call through a register: there is none
		{"\x90\x90\x90\x90\x90\x90\x90\xc3"[0:8], false},    // ret
		{"\x90\x90\x90\x90\xff\x34\x24\xc3"[0:8], false},    // push, ret
		{"\x0f\x1f\x40\x00\xff\xd1\x90\x90"[0:8], false},    // a call two bytes before
		{"\x90\x90\xff\x90\x01\x02\x03\x04"[0:8], true},     // call [rax+x]
		{"\x90\x90\x90\xff\x90\x01\x02\x03"[0:8], false},    // cut off
		{"\x90\x90\x90\x90\x90\x67\xff\xd0"[0:8], true},     // with a prefix
		{"\x90\x90\x90\x90\x90\xf2\xff\xd0"[0:8], true},     // bnd call
		{"\x90\x90\xe8\x01\x02\x03\x04\x90"[0:8], false},    // a call one byte before
		{"\x90\x90\x90\x90\x90\x90\xff\xd7\x90"[0:8], true}, // call rdi
	} {
		cur := Cursor{Mem: fixed(c.bytes), Regs: cpu.Registers{Arch: cpu.AMD64}}
		if got := cur.AfterCall(0x100008); got != c.want {
			t.Errorf("% x: %v", c.bytes, got)
		}
	}
}

// fixed is memory from 0x100000.
type fixed string

func (f fixed) Word(uint64) (uint64, bool) { return 0, false }
func (f fixed) Bytes(addr uint64, p []byte) bool {
	if addr < 0x100000 || addr-0x100000+uint64(len(p)) > uint64(len(f)) {
		return false
	}
	copy(p, f[addr-0x100000:])
	return true
}

// live is the process's memory from an address on, as it is when a walk happens.
type live struct {
	base  uint64
	words []uint64
}

func (m live) Word(addr uint64) (uint64, bool) {
	i := (addr - m.base) / 8
	if addr < m.base || i >= uint64(len(m.words)) {
		return 0, false
	}
	return m.words[i], true
}

func (m live) Bytes(addr uint64, p []byte) bool {
	for i := range p {
		w, ok := m.Word((addr + uint64(i)) &^ 7)
		if !ok {
			return false
		}
		p[i] = byte(w >> (8 * ((addr + uint64(i)) & 7)))
	}
	return true
}

// far is code whose frames hold what they are in the word below their return address, as an
// interpreter's do, and which is sure of them only if that word is even.
type far struct{ fake }

func (s *far) Step(c *Cursor) Verdict {
	what, ok := c.Word(c.Regs.SP())
	if !ok {
		return Stuck
	}
	if what&1 != 0 {
		c.Prov = Heuristic
	}
	c.Stack.Push(Frame{PC: c.Regs.PC, Ref: what, Kind: KindInterpreted, Prov: c.Prov})
	if c.Regs.PC == s.doneAt {
		return Done
	}
	c.Regs.PC, _ = c.Word(c.Regs.SP() + 8)
	c.Regs.SetSP(c.Regs.SP() + 16)
	c.Leaf = false
	return Stepped
}

// mover is such code of a runtime whose threads change stacks.
type mover struct{ far }

func (*mover) MovesStacks() bool { return true }

// A stack of a runtime that exchanges a thread's outer frames is not completed behind its copy,
// even if nothing seems to have changed.
func TestMovedStacksAreNotCompleted(t *testing.T) {
	snap := snapshot(0x1001, 2, 0x1015, 4, 0x1025)
	snap.StackTop = 0x7000 + 8*8
	s := &mover{far{fake{lo: 0x1000, hi: 0x2000, doneAt: 0x1035}}}
	w := New(cpu.AMD64, s)
	w.Add(s)
	var out Stack
	w.Walk(snap, live{0x7000, []uint64{2, 0x1015, 4, 0x1025, 6, 0x1035, 8, 0x1045}}, &out)
	if out.End != EndTruncated || len(out.Frames) != 2 {
		t.Errorf("%d frames, end %v", len(out.Frames), out.End)
	}
}

// Memory behind the end of a copy is read when the walk happens. What is found there is shown
// only if the end of the copy is what it was and each frame there is proved.
func TestBehindTheCopy(t *testing.T) {
	for _, c := range []struct {
		name string
		now  []uint64 // the stack, of which two frames are copied
		end  End
		refs []uint64
	}{
		{"unchanged", []uint64{2, 0x1015, 4, 0x1025, 6, 0x1035, 8, 0x1045}, EndComplete, []uint64{2, 4, 6, 8}},
		{"the copy's end has changed", []uint64{2, 0x1015, 40, 0x1025, 60, 0x1035, 8, 0x1045}, EndTruncated, []uint64{2, 4}},
		{"only what lies behind has changed, which proves nothing", []uint64{2, 0x1015, 4, 0x1025, 61, 0x1035, 8, 0x1045}, EndTruncated, []uint64{2, 4}},
		{"the last frame proves nothing", []uint64{2, 0x1015, 4, 0x1025, 6, 0x1035, 81, 0x1045}, EndTruncated, []uint64{2, 4, 6}},
	} {
		t.Run(c.name, func(t *testing.T) {
			snap := snapshot(0x1001, 2, 0x1015, 4, 0x1025)
			snap.StackTop = 0x7000 + 8*8
			s := &far{fake{lo: 0x1000, hi: 0x2000, doneAt: 0x1035}}
			w := New(cpu.AMD64, s)
			w.Add(s)
			var out Stack
			w.Walk(snap, live{0x7000, c.now}, &out)
			var refs []uint64
			for _, f := range out.Frames {
				refs = append(refs, f.Ref)
			}
			if out.End != c.end || !slices.Equal(refs, c.refs) || out.Worst != Exact {
				t.Errorf("frames %d, end %v, worst %v; want %d, %v", refs, out.End, out.Worst, c.refs, c.end)
			}
		})
	}
}
