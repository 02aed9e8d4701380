package coreclr

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// memoryImage is memory that holds the same bytes again and again, so that every address can be read and
// leads somewhere.
type memoryImage struct{ b []byte }

func (m *memoryImage) Bytes(addr uint64, p []byte) bool {
	for i := range p {
		p[i] = m.b[(addr+uint64(i))%uint64(len(m.b))]
	}
	return true
}

func (m *memoryImage) Word(addr uint64) (uint64, bool) {
	var b [8]byte
	m.Bytes(addr, b[:])
	return binary.LittleEndian.Uint64(b[:]), true
}

func (m *memoryImage) ReadAt(p []byte, addr uint64) error {
	if !m.Bytes(addr, p) {
		return fmt.Errorf("nothing at %#x: %w", addr, target.ErrMemory)
	}
	return nil
}

// FuzzHostile walks and names frames of a process that pretends to be CoreCLR.
func FuzzHostile(f *testing.F) {
	f.Add(make([]byte, 64), uint64(0x7f0000001000), uint8(9))
	loop := make([]byte, 512)
	for i := 0; i < len(loop); i += 8 {
		binary.LittleEndian.PutUint64(loop[i:], 0x7f0000000000+uint64(i*3)&^7)
	}
	f.Add(loop, uint64(0x7f0000000100), uint8(10))
	f.Add(loop, uint64(0x7f0000000100), uint8(8))
	f.Fuzz(func(t *testing.T, b []byte, pc uint64, major uint8) {
		if len(b) < 8 || cpu.Host() != cpu.AMD64 {
			return
		}
		m := &memoryImage{b}
		vm, err := Open(m, fmt.Sprintf("%d.0.0", 8+major%2), Symbols{DacTable: 8}, System{Windows: major&2 != 0}, nil, Files{})
		if err != nil {
			return
		}
		for i := range uint64(4) {
			vm.BeginBatch()
			st := walk.Stack{}
			c := &walk.Cursor{Stack: &st, Mem: m, Leaf: i%2 == 0, Regs: cpu.Registers{Arch: cpu.AMD64, PC: pc + i, Known: 1<<16 - 1}}
			if vm.Owns(c.Regs.PC) {
				vm.Step(c)
			}
			for _, f := range st.Frames {
				vm.Resolve(f, nil)
			}
			vm.nameMethod(&named{}, methodDesc{table: pc &^ 7, token: uint32(i)})
			vm.typeName(pc+i, 0)
			vm.moduleAt(pc + i)
			vm.GCHeap()
			vm.ServerGC()
			d := vm.DumpThreads()
			stack := make([]byte, 256)
			m.Bytes(pc, stack)
			d.ReadStack(uint32(pc), []walk.Frame{{PC: pc}, {PC: pc, Flags: walk.ReturnAddress}, {PC: pc + 8, Flags: walk.ReturnAddress}}, pc, stack)
			d.locks[uint32(pc)] = lockWait{slot: pc, table: pc &^ 7}
			vm.fieldsOf(pc &^ 7)
			d.Blocked(uint32(pc))
			for i := range st.Frames {
				vm.Joined(&st.Frames[i], &st.Frames[0])
			}
		}
	})
}

// FuzzNibbles looks methods up in a map of nibbles and compares with a search from the start.
func FuzzNibbles(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0x50, 0, 0, 0, 0, 0x01, 0x10, 0, 0}, uint16(0x130), false)
	f.Add([]byte{0, 0, 0, 0x50, 0x29, 0, 0, 0, 0x29, 0, 0, 0}, uint16(0x230), true)
	f.Fuzz(func(t *testing.T, b []byte, off uint16, pointers bool) {
		word := func(i uint64) (uint32, bool) {
			if i >= uint64(len(b)/4) {
				return 0, false
			}
			return binary.LittleEndian.Uint32(b[4*i:]), true
		}
		const base = 1 << 20
		got, ok := findStart(word, base, uint64(off), pointers)
		if ok && !pointers && got > base+uint64(off) {
			t.Fatalf("the method at %#x starts behind it, at %#x", off, got-base)
		}
		if pointers || !ok {
			return
		}
		want := uint64(0)
		for i := uint64(0); i <= uint64(off)/wordBytes; i++ {
			w, _ := word(i)
			for slot := uint64(0); slot < 8; slot++ {
				if n := uint64(w>>(28-4*slot)) & 15; n > 0 && n < firstRel {
					if at := base + i*wordBytes + slot*nibbleBytes + 4*(n-1); at <= base+uint64(off) && at > want {
						want = at
					}
				}
			}
		}
		if got != want {
			t.Fatalf("the method at %#x starts at %#x, should be %#x", off, got-base, want-base)
		}
	})
}

func FuzzDescriptor(f *testing.F) {
	f.Add([]byte(`{"version":0,"contracts":{"Thread":1},"types":{"Thread":{"!":8,"OSId":296,"Next":[8,"pointer"]}},"globals":{"A":[[1],"pointer"],"B":["0x10","uint8"],"C":3}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if d, err := parseDescriptor(text, []uint64{0, 16}); err == nil {
			l := common()
			l.publish(d)
		}
	})
}

func TestDescriptor(t *testing.T) {
	d, err := parseDescriptor([]byte(`{"contracts":{"Thread":1},"types":{"Thread":{"!":8,"OSId":296,"LinkNext":[8,"pointer"]}},`+
		`"globals":{"Store":[[1],"pointer"],"Bits":["0xc","uint8"],"Plain":3,"Bad":[[7],"pointer"]}}`), []uint64{0, 0x1000})
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := d.field("Thread", "LinkNext"); !ok || v != 8 {
		t.Errorf("LinkNext is %d, %v", v, ok)
	}
	if v, ok := d.field("Thread", "!"); !ok || v != 8 {
		t.Errorf("the size is %d, %v", v, ok)
	}
	if v, ok := d.pointer("Store"); !ok || v != 0x1000 {
		t.Errorf("Store is %#x, %v", v, ok)
	}
	if _, ok := d.pointer("Bad"); ok {
		t.Error("a pointer with an index that is not there was found")
	}
	if v, ok := d.global("Bits"); !ok || v != 12 {
		t.Errorf("Bits is %d, %v", v, ok)
	}
	if v, ok := d.global("Plain"); !ok || v != 3 {
		t.Errorf("Plain is %d, %v", v, ok)
	}
}
