package hotspot

import (
	"testing"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// gone is the memory of a process that has ended.
type gone struct{}

func (gone) ReadAt([]byte, uint64) error { return target.ErrMemory }

// TestLeafWithoutCode steps over leaves whose code cannot be read, as in a process that has just
// ended. Every rule must handle that, for every kind of blob and every place in it.
func TestLeafWithoutCode(t *testing.T) {
	for kind := blobOther; kind <= blobUpcall; kind++ {
		for _, level := range []int8{0, 1, 4} {
			for off := uint64(0); off < 96; off++ {
				vm := &VM{VM: vmstructs.VM{Mem: vmstructs.Memory{Reader: gone{}}}}
				b := &blob{kind: kind, start: 0x10000, end: 0x20000, codeBegin: 0x11000, codeEnd: 0x12000, frameSize: 80, frameComplete: 0x11000 + 47}
				if kind == blobNMethod || kind == blobNativeMethod {
					b.nm = &nmethod{level: level, entry: 0x11000, verifiedEntry: 0x11010, stubBegin: 0x11f00}
				}
				stack := make([]byte, 4096)
				stack[0], stack[1] = 0x40, 0x80 // the word on top points a little higher on the stack
				c := &walk.Cursor{Leaf: true, Stack: &walk.Stack{}, Copy: walk.StackCopy{Base: 0x8000, Bytes: stack}}
				c.Regs.Arch, c.Regs.PC, c.Regs.Known = cpu.AMD64, b.codeBegin+off, cpu.AllKnown
				c.Regs.SetSP(0x8000)
				c.Regs.SetFP(0x8040)
				l := &leaf{vm: vm, c: c, b: b, off: int(off), pc: c.Regs.PC, sp: 0x8000, fp: 0x8040, fs: 80}
				l.match(l.rulesX86())
				if b.nm != nil {
					l.byDepth(inBuilt)
				}
			}
		}
	}
}
