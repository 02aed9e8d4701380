package hotspot

import (
	"fmt"
	"testing"

	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// overlay is a process in which some memory is replaced by other bytes.
type overlay struct {
	target.Reader
	bytes map[uint64]byte
}

func (o *overlay) ReadAt(p []byte, addr uint64) error {
	if err := o.Reader.ReadAt(p, addr); err != nil {
		return err
	}
	if len(o.bytes) > 0 {
		for i := range p {
			if v, ok := o.bytes[addr+uint64(i)]; ok {
				p[i] = v
			}
		}
	}
	return nil
}

// free marks a blob's block as freed by the VM: unused, and free in the segment map.
func (o *overlay) free(vm *VM, b *blob) {
	l := &vm.code.layout
	o.bytes[b.start-l.blockHeader+l.used.Offset] = 0
	for i := range uint64(8) { // FreeBlock::_link
		o.bytes[b.start+i] = 0
	}
	for i := range vm.code.heaps {
		if h := &vm.code.heaps[i]; b.start-h.low < h.reserved-h.low {
			first := (b.start - l.blockHeader - h.low) >> h.shift
			for seg := range b.segments {
				o.bytes[h.segmap+first+seg] = 0xff
			}
		}
	}
}

// Code that was freed between a sample and its walk keeps its name if it was known before, and is
// named as unloaded if it was not. Neither counts as what is there now.
func TestFreedCode(t *testing.T) {
	for _, major := range []int{8, 17, 21, 25} {
		t.Run(fmt.Sprintf("jdk%d", major), func(t *testing.T) {
			t.Parallel()
			p := parkedProgram(t, major)
			stop(t, p.PID)
			known, unknown := openVM(t, p), openVM(t, p)
			mem := &overlay{Reader: known.Mem.Reader, bytes: map[uint64]byte{}}
			known.Mem.Reader, unknown.Mem.Reader = mem, mem
			known.BeginBatch()
			var b *blob
			var pc uint64
			eachBlob(t, known, func(x *blob) {
				// Only methods with calls, whose return addresses are described.
				if x.kind == blobNMethod && len(x.nm.pcs) > 4 && x.nm.methodID != 0 && b == nil {
					b, pc = x, x.codeBegin+uint64(uint32(x.nm.pcs[2].pc))
				}
			})
			if b == nil {
				t.Fatal("no compiled method")
			}
			resolve := func(vm *VM) string {
				e := vm.classify(pc)
				if e == nil {
					return "nothing"
				}
				out := vm.Resolve(walk.Frame{PC: pc, Ref: e.ref, Kind: e.kind, Flags: walk.ReturnAddress}, nil)
				return out[len(out)-1].Function
			}
			doubt := func(vm *VM) walk.Provenance {
				e := vm.classify(pc)
				if e == nil {
					return walk.Heuristic + 1
				}
				return vm.doubt(e.blob, pc, 0, e.exact)
			}
			name := resolve(known)
			if name == "nothing" || doubt(known) != walk.Exact { // nothing has died
				t.Fatalf("%#x is %s", pc, name)
			}
			// unknown must have seen some compiled method, to know the name of their kind.
			unknown.BeginBatch()
			met := false
			eachBlob(t, known, func(x *blob) {
				if !met && x.kind == blobNMethod && x != b {
					met = unknown.find(x.codeBegin) != nil
				}
			})
			mem.free(known, b)
			known.BeginBatch()
			unknown.BeginBatch()
			if got := resolve(known); got != name || doubt(known) != walk.Derived {
				t.Errorf("freed code that was known is %s with doubt %d, want %s and %d", got, doubt(known), name, walk.Derived)
			}
			if got := resolve(unknown); got != unloaded || doubt(unknown) != walk.Heuristic {
				t.Errorf("freed code that was not known is %s with doubt %d, want %s and %d", got, doubt(unknown), unloaded, walk.Heuristic)
			}
			if e := unknown.classify(pc); e != nil && uint64(e.frame) != b.frameSize {
				t.Errorf("its frame has %d bytes, want %d", e.frame, b.frameSize)
			}
			for _, vm := range []*VM{known, unknown} {
				if vm.codeRA(pc) && vm == unknown {
					t.Error("freed code is taken for a sign of a frame")
				}
				vm.BeginBatch()
			}
			if got := resolve(known); got != unloaded {
				t.Errorf("a batch later it is %s", got)
			}
			// The memory is reused for another blob: now two blobs have been there.
			clear(mem.bytes)
			known.BeginBatch()
			known.BeginBatch() // so that the dead blobs are forgotten
			if got := resolve(known); got != name || doubt(known) != walk.Exact {
				t.Errorf("code that is there again is %s with doubt %d", got, doubt(known))
			}
			l := &known.code.layout
			at := b.start + l.compileID.Offset
			mem.bytes[at] = byte(b.cookie.compileID) ^ 0x55
			known.BeginBatch()
			if got := known.find(pc); got == nil || known.doubt(got, pc, 0, false) != walk.Heuristic {
				t.Error("of a place that two have had in a batch it is not said that it is a guess whose it was")
			}
		})
	}
}
