package hotspot

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/walk"
)

// Rules for spots that only single-stepping found, tested on the bytes that were seen.

// stopped is a thread that was stopped in a blob whose code is the given bytes.
type stopped struct {
	t   *testing.T
	mem *synthMemory
	vm  *VM
	c   *walk.Cursor
}

// ra and stale are return addresses into compiled Java code.
const (
	rightRA = synthCode + 1*synthBlob + 128 + 16
	staleRA = synthCode + 2*synthBlob + 128 + 16
)

// blobOf is the number of the synthetic blob of a kind.
func blobOf(vm *VM, kind blobKind) int {
	for i, b := range vm.code.blobs {
		if b != nil && b.kind == kind {
			return i
		}
	}
	return 0
}

// stopIn stops a thread at the instruction off in code, which is written in
// hexadecimal digits.
func stopIn(t *testing.T, kind blobKind, code string, off int) *stopped {
	t.Helper()
	bytes, err := hex.DecodeString(strings.ReplaceAll(code, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	s := &stopped{t: t, mem: &synthMemory{stack: make([]byte, 4096), thread: make([]byte, 512)}}
	s.vm = synthVM(s.mem, 17, cpu.AMD64, nil)
	b := s.vm.code.blobs[blobOf(s.vm, kind)]
	b.code = append(bytes, make([]byte, 256)...)
	b.frameComplete = b.codeBegin
	s.c = &walk.Cursor{Leaf: true, Stack: &walk.Stack{}, Mem: s.mem, TID: 7,
		Copy: walk.StackCopy{Base: synthStack, Bytes: s.mem.stack}, High: synthStack + 4096}
	s.c.Regs = cpu.Registers{Arch: cpu.AMD64, PC: b.codeBegin + uint64(off), Known: cpu.AllKnown}
	s.c.Regs.SetSP(synthStack + 1024)
	s.c.Regs.SetFP(synthStack + 2048)
	return s
}

// put writes a word, at a distance from the stack pointer.
func (s *stopped) put(off int, v uint64) {
	binary.LittleEndian.PutUint64(s.mem.stack[1024+off:], v)
}

// goesTo checks that the caller continues at ra with the stack pointer at a distance from the one
// at the stop.
func (s *stopped) goesTo(ra uint64, off int) {
	s.t.Helper()
	sp := s.c.Regs.SP()
	if v := s.vm.Step(s.c); v != walk.Stepped || s.c.Regs.PC != ra || s.c.Regs.SP() != sp+uint64(off) {
		s.t.Errorf("verdict %d, caller %#x, stack pointer +%#x; want %#x and +%#x", v, s.c.Regs.PC, s.c.Regs.SP()-sp, ra, off)
	}
}

// An adapter that has its caller's call site patched has its stack pointer in r13, from the
// instruction that puts it there to the one that takes it back. The word on top may meanwhile be an
// old return address.
func TestAdapterPatchesCaller(t *testing.T) {
	// cmp, jz; mov r13,rsp; mov rax,[rsp]; and rsp,-16; pushf; sub rsp,8; sub rsp,0x80;
	// mov [rsp+0x78],rax; a call; mov rsp,r13; pop rax
	const code = "837b4800 0f84e3000000 4c8bec 488b0424 4883e4f0 9c 4883ec08 4881ec80000000 4889442478 ffd0 498be5 58"
	for off, below := range map[int]int{10: 0, 13: 0, 17: 0, 21: 8, 22: 0x10, 26: 0x18, 33: 0x98, 38: 0x98, 40: 0x98, 43: 0} {
		s := stopIn(t, blobAdapter, code, off)
		s.put(0, staleRA)
		s.put(below, rightRA)
		s.c.Regs.R[cpu.R13] = s.c.Regs.SP() + uint64(below)
		if off == 10 { // r13 is not set yet
			s.c.Regs.R[cpu.R13] = s.c.Regs.SP() + 64
			s.put(64, staleRA)
		}
		s.goesTo(rightRA, below+8)
	}
}

// A c2i adapter that has pushed registers for a collector's barrier has its return address below
// all that it pushed. The room that it made may hold old return addresses.
func TestAdapterInBarrier(t *testing.T) {
	// jmp over; mov r10,[rbx+8]; pushf; sub rsp,8; sub rsp,0x80; mov [rsp+0x78],rax; sub rsp,0x80;
	// movsd [rsp],xmm0; push rax; a call; pop rax; add rsp,0x80; mov rax,[rsp+0x78]; add rsp,0x80;
	// add rsp,8; popf; pop rax; mov r13,rsp; sub rsp,0x10; mov [rsp],rax; jmp rcx
	const code = "eb00 4c8b5308 9c 4883ec08 4881ec80000000 4889442478 4881ec80000000 c5fb110424 50 ffd1 58 4881c480000000 488b442478 4881c480000000 4883c408 9d 58 4c8bec 4883ec10 48890424 ffe1"
	for off, below := range map[int]int{2: 0, 6: 0, 7: 8, 11: 0x10, 18: 0x90, 23: 0x90, 30: 0x110, 35: 0x110, 36: 0x118, 38: 0x118, 39: 0x110, 46: 0x90, 51: 0x90, 58: 0x10, 62: 8, 63: 0} {
		s := stopIn(t, blobAdapter, code, off)
		if off%2 == 0 {
			s.put(0, staleRA)
		}
		s.put(below, rightRA)
		s.c.Regs.R[cpu.R13] = s.c.Regs.SP() + 0x40
		s.put(0x40, staleRA)
		s.goesTo(rightRA, below+8)
	}
}

// An adapter to the interpreter has made room and has yet to put its return address there: the word
// on top is an old one.
func TestAdapterMakesRoom(t *testing.T) {
	const code = "498be5 58 4c8bec 4883ec20 48890424 4889742410 ffe1"
	for _, off := range []int{4, 7, 11} {
		s := stopIn(t, blobAdapter, code, off)
		s.put(0, staleRA)
		s.c.Regs.R[cpu.RAX] = rightRA
		s.goesTo(rightRA, 0)
	}
	s := stopIn(t, blobAdapter, code, 15)
	s.put(0, rightRA)
	s.c.Regs.R[cpu.RAX] = staleRA
	s.goesTo(rightRA, 8)
	// Nothing like a return address is on top, and r13 points at an old one.
	s = stopIn(t, blobAdapter, code, 11)
	s.put(32, staleRA)
	s.c.Regs.R[cpu.RAX], s.c.Regs.R[cpu.R13] = rightRA, s.c.Regs.SP()+32
	s.goesTo(rightRA, 0)
}

// An adapter from the interpreter aligns the stack and pushes its return address
// again.
func TestAdapterAligns(t *testing.T) {
	for _, c := range []struct {
		code   string
		inRAX  []int
		onTop  []int
		before []int
	}{
		{"4c8bdc 58 4883e4f0 50 498bc3 4c8b5b40", []int{4, 8}, []int{0, 3, 9, 12}, nil},
		{"488b0424 4c8bdc 4883ec50 4883e4f0 50 498bc3", []int{7, 11, 15}, []int{0, 4, 16}, nil},
	} {
		for _, off := range c.inRAX {
			s := stopIn(t, blobAdapter, c.code, off)
			s.put(0, staleRA)
			s.c.Regs.R[cpu.RAX] = rightRA
			s.goesTo(rightRA, 0)
		}
		for _, off := range c.onTop {
			s := stopIn(t, blobAdapter, c.code, off)
			s.put(0, rightRA)
			s.c.Regs.R[cpu.RAX] = staleRA
			s.goesTo(rightRA, 8)
		}
	}
}

// forward_exception, called from the interpreter, whose frame on rbp looks like
// the stub's own.
func TestForwardException(t *testing.T) {
	const code = "488b3c24 488bf7 498bff 40f6c40f 0f8412000000 4883ec08 e803432104 4883c408 e905000000 e8f5422104 488bd8 5a 498b4708 49c7470800000000 ffe3"
	for off, where := range map[int]int{0: 0, 10: 0, 14: 0, 24: 8, 29: 8, 33: 0, 38: 0, 43: 0, 46: 0} {
		s := stopIn(t, blobStubRoutines, code, off)
		s.put(where, rightRA)
		s.c.Regs.SetFP(s.c.Regs.SP() + 80)
		s.put(88, staleRA)
		s.goesTo(rightRA, where+8)
	}
	for _, off := range []int{47, 51, 59} {
		s := stopIn(t, blobStubRoutines, code, off)
		s.c.Regs.R[cpu.RDX] = rightRA
		s.c.Regs.SetFP(s.c.Regs.SP() + 80)
		s.put(88, staleRA)
		s.goesTo(rightRA, 0)
	}
}

// C1's new_type_array of JDK 8 allocates without a frame. The caller's rbp may point at its own
// frame (PreserveFramePointer).
func TestStubWithoutFrameYet(t *testing.T) {
	const code = "81fbffffff00 7708 498b4760 4889c1 c3 90 55488bec 4881ecd0010000"
	for _, off := range []int{0, 6, 8, 12, 15} {
		s := stopIn(t, blobRuntimeStub, code, off)
		s.vm.code.blobs[blobOf(s.vm, blobRuntimeStub)].frameSize = 480
		s.put(0, rightRA)
		s.c.Regs.SetFP(s.c.Regs.SP() + 88)
		s.put(96, staleRA)
		s.goesTo(rightRA, 8)
	}
}

// The interpreter leaves a native method of JDK 8: the return address is popped into rdi, and r11
// holds the caller's stack pointer. rbp is the caller's already, which means nothing if the caller
// is compiled.
func TestInterpreterLeaves(t *testing.T) {
	leaving := func(code string, off int) *stopped {
		s := stopIn(t, blobInterpreter, code, off)
		s.mem.code = s.vm.code.blobs[blobOf(s.vm, blobInterpreter)].code
		s.c.Regs.SetFP(0xfdfe48e8)
		s.c.Regs.R[cpu.R11] = s.c.Regs.SP() + 32
		s.c.Regs.R[cpu.RBX] = s.c.Regs.SP() + 32
		return s
	}
	s := leaving("4c8b5df8 c9 5f 498be3 ffe7", 5)
	s.put(0, rightRA)
	s.goesTo(rightRA, 32)
	s = leaving("4c8b5df8 c9 5f 498be3 ffe7", 6)
	s.c.Regs.R[cpu.RDI] = rightRA
	s.put(0, staleRA)
	s.goesTo(rightRA, 32)
	// remove_activation: leave; pop r13; mov rsp,rbx; jmp r13.
	s = leaving("488b5df8 c9 415d 488be3 41ffe5", 5)
	s.put(0, rightRA)
	s.goesTo(rightRA, 32)
	s = leaving("488b5df8 c9 415d 488be3 41ffe5", 7)
	s.c.Regs.R[cpu.R13] = rightRA
	s.put(0, staleRA)
	s.goesTo(rightRA, 32)
	s = leaving("488b5df8 c9 415d 488be3 41ffe5", 10)
	s.c.Regs.R[cpu.R13] = rightRA
	s.put(0, staleRA)
	s.goesTo(rightRA, 0)
}

// A loop continues in compiled code: leave; pop rcx; mov rsp,rdx; and rsp,-16; push rcx; jmp
// [rbx+n]. The caller's stack pointer is lost by the alignment.
func TestInterpreterMigrates(t *testing.T) {
	for off, at := range map[int]struct {
		rcx, sp bool // set already
		pushed  bool
	}{8: {}, 9: {rcx: true}, 12: {rcx: true, sp: true}, 16: {rcx: true, sp: true}, 17: {pushed: true}} {
		s := stopIn(t, blobInterpreter, "488bf0 488b55f8 c9 59 488be2 4883e4f0 51 ffa308010000", off)
		s.mem.code = s.vm.code.blobs[blobOf(s.vm, blobInterpreter)].code
		s.c.Regs.SetFP(0xfdfe48e8)
		s.c.Regs.R[cpu.RDX] = s.c.Regs.SP() + 32
		s.put(0, rightRA)
		if at.rcx {
			s.c.Regs.R[cpu.RCX] = rightRA
			s.put(0, staleRA)
		}
		switch {
		case at.pushed:
			s.put(0, rightRA)
			s.goesTo(rightRA, 8)
		case at.sp:
			s.goesTo(rightRA, 0)
		default:
			s.goesTo(rightRA, 32)
		}
	}
}

// An exception leaves an interpreted method: its frame is taken off, and the VM is asked for its
// caller's handler. The handler is compiled, so rbp means nothing.
func TestInterpreterRethrows(t *testing.T) {
	const code = "488b5df8 c9 5a 488be3 498b87f8030000 49c787f803000000000000 50 52 488bf2 498bff" +
		"40f6c40f 0f8412000000 4883ec08 e803432104 4883c408 e905000000 e8f5422104 488bd8 5a 58 ffe3"
	rethrowing := func(off int) *stopped {
		s := stopIn(t, blobInterpreter, code, off)
		s.mem.code = s.vm.code.blobs[blobOf(s.vm, blobInterpreter)].code
		s.c.Regs.SetFP(0xfdfe48e8)
		s.c.Regs.R[cpu.RBX] = s.c.Regs.SP() + 32
		for i := 0; i < 64; i += 8 {
			s.put(i, staleRA)
		}
		return s
	}
	for off, at := range map[int]struct {
		word int // offset of the return address, -1: in rdx
		sp   int // the caller's, relative to here
	}{
		5: {0, 32}, 6: {-1, 32}, 9: {-1, 0}, 16: {-1, 0}, 27: {-1, 0}, 28: {-1, 8},
		29: {0, 16}, 32: {0, 16}, 35: {0, 16}, 39: {0, 16}, 45: {0, 16}, 49: {8, 24}, 54: {8, 24}, 58: {0, 16}, 63: {0, 16}, 68: {0, 16}, 71: {0, 16}, 72: {-1, 8}, 73: {-1, 0},
	} {
		s := rethrowing(off)
		s.c.Regs.R[cpu.RDX] = staleRA
		if at.word < 0 {
			s.c.Regs.R[cpu.RDX] = rightRA
		} else {
			s.put(at.word, rightRA)
		}
		if off >= 71 { // where the handler is
			s.c.Regs.R[cpu.RBX] = staleRA + 1
		}
		t.Logf("at %d", off)
		s.goesTo(rightRA, at.sp)
	}
	// The VM, or what it calls, is working on it.
	for off, at := range map[int]int{54: 8, 68: 0} {
		s := rethrowing(off)
		s.c.Leaf = false
		s.c.Regs.Known = calleeSaved(cpu.AMD64) | 1<<cpu.RSP
		s.put(at, rightRA)
		t.Logf("called before %d", off)
		s.goesTo(rightRA, at+16)
	}
	// The frame is complete, so this rule does not apply.
	for _, off := range []int{0, 4} {
		s := rethrowing(off)
		if f, ok := s.vm.rethrowing(s.c); ok {
			t.Errorf("at %d, before the frame is taken off: %+v", off, f)
		}
	}
}

// The exception blob of JDK 21 has popped the exception's pc into rdx, and jumps.
func TestExceptionBlobLeaves(t *testing.T) {
	const code = "52 4883ec08 48892c24 488b2c24 4883c408 5a 4c8bc0 498b8700050000 498b9708050000 49c7870005000000000000 41ffe0"
	for off, where := range map[int]int{0: -1, 1: 0, 9: 8, 17: 0, 18: -1, 21: -1, 28: -1, 35: -1, 46: -1} {
		s := stopIn(t, blobException, code, off)
		s.vm.code.blobs[blobOf(s.vm, blobException)].frameSize = 16
		s.put(0, staleRA)
		s.put(8, staleRA)
		if where < 0 {
			s.c.Regs.R[cpu.RDX] = rightRA
			s.goesTo(rightRA, 0)
			continue
		}
		s.put(where, rightRA)
		s.goesTo(rightRA, where+8)
	}
}

// C1's deoptimisation handler of JDK 11 pushes its own address: mov r10,imm64; push
// r10; jmp.
func TestDeoptHandler(t *testing.T) {
	for off, ra := range map[int]int{1: 88, 11: 88, 13: 96} {
		s := stopIn(t, blobNMethod, "f4 49ba7901c998b47f0000 4152 e996909bff f4", off)
		b := s.vm.code.blobs[blobOf(s.vm, blobNMethod)]
		b.frameSize, b.nm.stubBegin = 96, b.codeBegin
		s.put(ra, rightRA)
		s.put(184-ra, staleRA)
		s.goesTo(rightRA, ra+8)
	}
}

// The deoptimisation blob was jumped to with an exception: the return address is in rdx, and an old
// one lies below the stack pointer; then its slot on the stack holds a 0.
func TestExcepted(t *testing.T) {
	const code = "f4 49899748040000 49898740040000 6a00 55 488bec 9c 4881ec08020000 f4"
	for _, c := range []struct{ off, room, fp int }{{1, -1, 0}, {8, -1, 0}, {15, -1, 0}, {17, 0, 0}, {18, 8, 0}, {21, 8, 0}, {22, 16, 8}, {29, 536, 528}} {
		s := stopIn(t, blobDeopt, code, c.off)
		s.vm.code.blobs[blobOf(s.vm, blobDeopt)].frameSize = 672
		s.c.Regs.R[cpu.RDX] = rightRA
		s.put(-8, staleRA)
		if c.room < 0 {
			s.put(0, staleRA)
			s.goesTo(rightRA, 0)
			continue
		}
		s.put(c.room, 0)
		s.put(c.room+8, staleRA)
		if c.off >= 21 {
			s.c.Regs.SetFP(s.c.Regs.SP() + uint64(c.fp))
		}
		s.goesTo(rightRA, c.room+8)
	}
}

// forward_exception while the VM looks for a handler: its return address is on top, or after the
// alignment padding. The next word may be a return address too, if the caller's frame keeps the pc
// that it had before it was deoptimised.
func TestForwarding(t *testing.T) {
	const code = "e800000000 4883c408 eb05 e800000000 488bd8 5a 498b4708 49c7470800000000 ffe3"
	for off, ra := range map[int]int{5: 8, 16: 0} {
		s := stopIn(t, blobStubRoutines, code, off)
		s.c.Leaf = false
		s.put(ra, rightRA)
		s.put(ra+8, staleRA)
		s.goesTo(rightRA, ra+8)
	}
}

// A deoptimisation blob of JDK 8 between the frame that it has taken off and its own new one: the
// return address lies where it was, is below the stack pointer for a while, and then is that of the
// outermost new frame.
func TestRebuilding(t *testing.T) {
	const code = "4803e1 488b6f30 488b4f18 4883c408 488b7710 8b5708 4c8bc4 8b5f04 482be3" +
		"488b1e 4883eb10 48ff31 55 488bec 482be3 48c745f000000000 4c8945f8 4c8bc4 4883c608 4883c108 ffca 75d4" +
		"48ff31 55 488bec 4881ec90020000"
	const pcs, adjust = 64, 48
	at := func(off, ra int) *stopped {
		s := stopIn(t, blobDeopt, code, off)
		s.vm.code.blobs[blobOf(s.vm, blobDeopt)].frameSize = 672
		s.c.Regs.R[cpu.RDI] = synthThread
		s.c.Regs.R[cpu.RDX] = 1
		for i, v := range map[int]uint64{0: adjust << 32, 8: 200 << 32, unrollPCs: synthThread + pcs, unrollCallerFP: synthStack + 3000, pcs: rightRA} {
			binary.LittleEndian.PutUint64(s.mem.thread[i:], v)
		}
		s.put(ra, rightRA)
		return s
	}
	for _, off := range []int{3, 7, 11} {
		at(off, 0).goesTo(rightRA, 8)
	}
	for _, off := range []int{15, 19, 22, 25} {
		at(off, -8).goesTo(rightRA, 0) // below the stack pointer
	}
	// The caller's frame has been extended, and nothing pushed yet.
	at(34, adjust-8).goesTo(rightRA, adjust)
	// fp is where the frame pointer points, and those from there to the outermost.
	for _, c := range []struct {
		off, ra int
		fp      []int
	}{
		{41, 0, nil}, {42, 8, nil}, {45, 8, []int{0}}, {78, 64, []int{56}}, {81, 72, []int{64}}, {82, 80, []int{72}},
	} {
		s := at(c.off, c.ra)
		s.put(c.ra+adjust, rightRA)
		if c.fp != nil {
			// Words that other frames have left look the same.
			for i := -8; i < c.ra; i += 8 {
				s.put(i, rightRA)
			}
			s.c.Regs.SetFP(s.c.Regs.SP() + uint64(c.fp[0]))
			for i, at := range c.fp {
				next := uint64(synthStack + 3000)
				if i+1 < len(c.fp) {
					next = s.c.Regs.SP() + uint64(c.fp[i+1])
				}
				s.put(at, next)
			}
		} else {
			s.c.Regs.SetFP(synthStack + 3000)
		}
		s.goesTo(rightRA, c.ra+8)
		if want := synthStack + 1024 + uint64(c.ra) + adjust + 8; s.c.Unextended != want || s.c.Regs.FP() != synthStack+3000 {
			t.Errorf("+%d: the caller's own stack pointer %#x, want %#x; frame pointer %#x", c.off, s.c.Unextended, want, s.c.Regs.FP())
		}
	}
}

// At the entry of an interpreted method whose return address was just popped, rbp is the compiled
// caller's and may hold anything: if it points outside the stack, that memory is not read.
func TestEntryFromCompiledReadsOnlyTheStack(t *testing.T) {
	for _, fp := range []uint64{0xd0e937d2, 0, synthStack - 8, synthStack + 4096, 1<<63 + 8} {
		s := stopIn(t, blobAdapter, "90", 0)
		s.c.Regs.PC = s.vm.interpLo + 64
		s.c.Regs.R[cpu.RAX] = rightRA
		s.c.Regs.SetFP(fp)
		s.goesTo(rightRA, 0)
		if s.c.Outside {
			t.Errorf("with %#x in rbp something else than the stack was read", fp)
		}
	}
}
