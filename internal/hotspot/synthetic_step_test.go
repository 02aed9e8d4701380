package hotspot

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/hotspot/threads"
	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/walk"
)

// A VM that never ran, for tests without a process: a code heap with a blob of
// each kind and a method, and a stack.
const (
	synthCode   = 0x7f00_0000_0000
	synthBlob   = 0x4000
	synthStack  = 0x7fff_0000_0000
	synthThread = 0x6000_0000_0000
	synthMethod = 0x5000_0000_0000
)

// synthMemory is the whole memory of the synthetic process.
type synthMemory struct{ stack, thread, code []byte }

var errSynth = errors.New("no such memory")

func (m *synthMemory) ReadAt(p []byte, addr uint64) error {
	if m.Bytes(addr, p) {
		return nil
	}
	return errSynth
}

func (m *synthMemory) Bytes(addr uint64, p []byte) bool {
	for _, r := range []struct {
		base uint64
		b    []byte
	}{{synthStack, m.stack}, {synthThread, m.thread}, {synthCode, m.code}} {
		if off := addr - r.base; off < uint64(len(r.b)) && uint64(len(r.b))-off >= uint64(len(p)) {
			copy(p, r.b[off:])
			return true
		}
	}
	return false
}

func (m *synthMemory) Word(addr uint64) (uint64, bool) {
	var b [8]byte
	ok := m.Bytes(addr, b[:])
	return binary.LittleEndian.Uint64(b[:]), ok
}

// synthBlobStart is where the code of the synthetic blob i begins.
func synthBlobStart(i int) uint64 { return synthCode + uint64(i)*synthBlob }

// synthVM makes the VM. code is the content of all blobs, repeated.
func synthVM(mem *synthMemory, major int, arch cpu.Arch, code []byte) *VM {
	vm := &VM{VM: vmstructs.VM{Mem: vmstructs.Memory{Reader: mem}, Tables: &vmstructs.Tables{Published: &vmstructs.Published{}}, Arch: arch, Major: major}}
	vm.off = newOffsets(&vm.VM)
	vm.off.anchor, vm.off.lastSP, vm.off.lastPC, vm.off.lastFP = 64, 0, 8, 16
	vm.off.wrapperAnchor, vm.off.savedExceptionPC, vm.off.contEntry = 32, 128, 136
	vm.off.upcallFrameData = 8
	if len(code) == 0 {
		code = []byte{0x90}
	}
	kinds := []blobKind{blobInterpreter, blobNMethod, blobNMethod, blobNativeMethod, blobStubRoutines, blobContinuation, blobAdapter,
		blobVtable, blobMethodHandles, blobRuntimeStub, blobDeopt, blobSafepoint, blobException, blobUncommonTrap, blobUpcall, blobOther}
	h := codeHeap{low: synthCode, high: synthBlobStart(len(kinds)), reserved: synthBlobStart(len(kinds)), shift: 7}
	h.pages = make([]*segPage, (h.reserved-h.low)>>h.shift/512+1)
	vm.code.blobs = []*blob{nil}
	all := make([]byte, synthBlob)
	for n := 0; n < len(all); n += copy(all[n:], code) {
	}
	for i, k := range kinds {
		b := &blob{id: uint32(len(vm.code.blobs)), kind: k, start: synthBlobStart(i), end: synthBlobStart(i + 1)}
		b.codeBegin, b.codeEnd = b.start, b.end
		b.frameSize, b.frameComplete = 48, b.codeBegin+64
		if k == blobStubRoutines || k == blobOther || k == blobInterpreter {
			b.frameSize = 0
		}
		b.code = all
		if k == blobNMethod || k == blobNativeMethod {
			b.nm = &nmethod{level: 4, entry: b.codeBegin, verifiedEntry: b.codeBegin + 16, stubBegin: b.codeEnd - 256, origPCOffset: 16,
				deopt: [2]uint64{b.codeEnd - 64}, enterSpecial: k == blobNativeMethod, methodID: 1}
			for pc := int32(128); pc < synthBlob-512; pc += 16 {
				b.nm.pcs = append(b.nm.pcs, pcDesc{pc: pc, scope: 1})
			}
		}
		vm.code.blobs = append(vm.code.blobs, b)
		h.claim(b)
	}
	vm.code.heaps = []codeHeap{h}
	vm.interpLo, vm.interpHi = synthBlobStart(0), synthBlobStart(1)
	vm.callStubReturn = synthBlobStart(4) + 512
	vm.Threads = &threads.Threads{}
	vm.methods.all = []*method{nil, {id: 1, ptr: synthMethod, codeBase: synthMethod + 4096, codeSize: 100}}
	vm.methods.byPtr = map[uint64]uint32{synthMethod: 1}
	vm.methods.bad = map[uint64]struct{}{}
	return vm
}

// synthCompiled fills a stack with n frames of compiled code and the call stub.
func synthCompiled(n int) (*synthMemory, *walk.Cursor, *VM) {
	mem := &synthMemory{stack: make([]byte, 48*(n+1)+1024)}
	put := func(at, v uint64) { binary.LittleEndian.PutUint64(mem.stack[at-synthStack:], v) }
	vm := synthVM(mem, 21, cpu.AMD64, nil)
	sp := uint64(synthStack)
	for i := range n {
		put(sp+40, synthBlobStart(1+i%2)+128+16*uint64(i))
		sp += 48
	}
	put(sp-8, vm.callStubReturn)
	c := &walk.Cursor{Stack: &walk.Stack{}, Mem: mem, Copy: walk.StackCopy{Base: synthStack, Bytes: mem.stack}, TID: 7}
	c.Regs = cpu.Registers{Arch: cpu.AMD64, PC: synthBlobStart(1) + 128, Known: cpu.AllKnown}
	c.Regs.SetSP(synthStack)
	return mem, c, vm
}

func TestSyntheticCompiled(t *testing.T) {
	_, c, vm := synthCompiled(130)
	c.Leaf = true
	n := 0
	for vm.Step(c) == walk.Stepped {
		n++
	}
	if n != 130 || len(c.Stack.Frames) != 131 || c.Stack.Worst != walk.Exact {
		t.Errorf("%d frames stepped over, %d appended, worst %d; wanted 130, 131 and exact", n, len(c.Stack.Frames), c.Stack.Worst)
	}
	if last := c.Stack.Frames[130]; last.PC != vm.callStubReturn || last.Kind != walk.KindStub {
		t.Errorf("last frame %+v, wanted the call stub", last)
	}
}

// BenchmarkStepCompiled walks 130 compiled frames whose return addresses are already known. It must
// not allocate.
func BenchmarkStepCompiled(b *testing.B) {
	_, c, vm := synthCompiled(130)
	regs := c.Regs
	b.ReportAllocs()
	for b.Loop() {
		c.Regs, c.Leaf = regs, true
		c.Stack.Reset()
		for vm.Owns(c.Regs.PC) && vm.Step(c) == walk.Stepped {
		}
		if len(c.Stack.Frames) != 131 {
			b.Fatalf("%d frames", len(c.Stack.Frames))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/131, "ns/frame")
}

// FuzzStep steps through stacks, registers and code of any content. The data selects words that let
// a walk continue: pcs, stack addresses, small numbers.
func FuzzStep(f *testing.F) {
	f.Add(uint8(0), uint16(3), []byte("\x55\x48\x8b\xec\x48\x83\xec\x20"), []byte("0123456789abcdef"))
	f.Add(uint8(1), uint16(200), []byte("\xc3"), []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 250, 251, 252, 253, 254, 255})
	f.Add(uint8(2), uint16(9000), []byte{0xfd, 0x7b, 0xbf, 0xa9}, []byte("\x00\x80\xff\x10\x20\x30"))
	majors := []int{8, 11, 17, 21, 25, 27}
	f.Fuzz(func(t *testing.T, version uint8, pc uint16, code, data []byte) {
		if len(data) == 0 || len(data) > 4096 {
			return
		}
		arch := cpu.AMD64
		if version&0x80 != 0 {
			arch = cpu.ARM64
		}
		mem := &synthMemory{stack: make([]byte, 16<<10), thread: make([]byte, 512)}
		vm := synthVM(mem, majors[int(version&0x7f)%len(majors)], arch, code)
		at, calls := 0, 0
		next := func() uint64 {
			b := data[at%len(data)]
			w := uint64(data[(at+1)%len(data)])
			calls++
			at = (at + 1 + calls/len(data)) % len(data)
			switch b >> 5 {
			case 0, 1:
				return synthBlobStart(int(b&15)) + 16*w
			case 2:
				return synthBlobStart(1) + 128 + 16*w
			case 3, 4:
				return synthStack + 8*(w+uint64(b&31)*64)
			case 5:
				return synthMethod + uint64(b&1)*4100
			case 6:
				return vm.callStubReturn
			}
			return w - uint64(b&31)
		}
		for i := 0; i < len(mem.stack); i += 8 {
			binary.LittleEndian.PutUint64(mem.stack[i:], next())
		}
		for i := 0; i < len(mem.thread); i += 8 {
			binary.LittleEndian.PutUint64(mem.thread[i:], next())
		}
		c := &walk.Cursor{Leaf: version&0x40 == 0, Stack: &walk.Stack{}, Mem: mem, TID: 7,
			Copy: walk.StackCopy{Base: synthStack, Bytes: mem.stack[:len(mem.stack)/2]}}
		c.Regs = cpu.Registers{Arch: arch, Known: cpu.AllKnown}
		for i := range c.Regs.R {
			c.Regs.R[i] = next()
		}
		c.Regs.PC = synthCode + uint64(pc)*4
		c.Regs.SetSP(synthStack + uint64(pc)%1024*8)
		for steps := 0; ; steps++ {
			sp, leaf, frames := c.Regs.SP(), c.Leaf, len(c.Stack.Frames)
			v := vm.Step(c)
			if n := len(c.Stack.Frames) - frames; n > mostChunks*maxChunkFrames+2 || v == walk.NotMine && n != 0 || v == walk.Stepped && n == 0 {
				t.Fatalf("step %d appended %d frames with verdict %d", steps, n, v)
			}
			if v == walk.Stepped {
				if now := c.Regs.SP(); now < sp || now == sp && !leaf {
					t.Fatalf("step %d moved the stack pointer from %#x to %#x", steps, sp, now)
				}
				continue
			}
			if !vm.Resume(c) || steps > 10000 {
				return
			}
			if steps > 5000 {
				t.Fatal("resumed without end")
			}
		}
	})
}
