package hotspot

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/target"
)

// aHeap returns a code heap of 64 segments of 128 bytes in synthetic memory.
func aHeap(major int, r target.Reader) (*VM, *codeHeap) {
	vm := &VM{VM: vmstructs.VM{Major: major, Mem: vmstructs.Memory{Reader: r}, Tables: &vmstructs.Tables{Published: &vmstructs.Published{}}}}
	var now uint64
	vm.Clock = func() uint64 { now += 1000; return now }
	vm.Tables.Fields = map[string]vmstructs.Field{"CodeHeap::_log2_segment_size": {OK: true, Offset: 248, Width: 4}}
	l := &vm.code.layout
	l.blockHeader = 16
	l.length, l.used = vmstructs.Field{OK: true, Width: 8}, vmstructs.Field{OK: true, Width: 1, Offset: 8}
	vm.code.heaps = []codeHeap{{addr: 0x1000, low: 0x10000, high: 0x12000, reserved: 0x12000, shift: 7}}
	return vm, &vm.code.heaps[0]
}

// beginLists begins a batch, as far as free lists are concerned.
func beginLists(vm *VM) {
	reqs := vm.freeListReads(nil)
	vm.Mem.ReadV(reqs)
	vm.beginFreeLists(reqs)
}

type bytesAt map[uint64]byte

func (m bytesAt) ReadAt(p []byte, addr uint64) error {
	for i := range p {
		p[i] = m[addr+uint64(i)]
	}
	return nil
}

func (m bytesAt) put(addr, v uint64) {
	for i := range uint64(8) {
		m[addr+i] = byte(v >> (8 * i))
	}
}

// list writes the heap's free blocks, given as pairs of segment and length, in the order of the
// list.
func (m bytesAt) list(major int, blocks ...uint64) {
	at := uint64(0x1000 + 248 - freeListBefore)
	m.put(at, 64)
	m.put(at+8, 64)
	m.put(at+16, 128)
	m.put(at+24, 7)
	m.put(at+32, 60)
	head, sum := at+40, uint64(0)
	for i := 0; i < len(blocks); i += 2 {
		b := 0x10000 + blocks[i]<<7
		m.put(head, b)
		m.put(b, blocks[i+1])
		m.put(b+8, 0)
		head, sum = b+16, sum+blocks[i+1]
	}
	m.put(head, 0)
	if major < 11 {
		m.put(at+48, sum)
		return
	}
	m.put(at+56, sum)
	m.put(at+64, uint64(len(blocks)/2)|0xabcd<<32) // the 4 bytes after the int may be anything
}

// The free places are known however the list changes, and are never taken from a broken list.
func TestFreeList(t *testing.T) {
	for _, major := range []int{8, 17} {
		m := bytesAt{}
		vm, h := aHeap(major, m)
		m.list(major)
		vm.Batch = 1
		beginLists(vm)
		if !h.freed.known || h.standing.on {
			t.Fatalf("JDK %d: known %v, code was freed %v", major, h.freed.known, h.standing.on)
		}
		for _, step := range []struct {
			what   string
			blocks []uint64
			freed  bool
			lost   bool
		}{
			{what: "nothing"},
			{"two are freed", []uint64{4, 3, 20, 10}, true, false},
			{"nothing", []uint64{4, 3, 20, 10}, false, false},
			{"the first part of one is taken", []uint64{4, 3, 24, 6}, false, false},
			{"one is taken", []uint64{24, 6}, false, false},
			{"one is freed beside another", []uint64{24, 8}, true, false},
			{"one is taken, another freed", []uint64{40, 8}, true, false},
			{"all are taken", nil, false, false},
			{"a list that leads back", []uint64{24, 2, 4, 2}, true, true},
			{"one that overlaps", []uint64{24, 4, 26, 2}, false, true},
			{"one that ends outside", []uint64{60, 9}, false, true},
			{"one of nothing", []uint64{30, 0}, false, true},
			{"a good one", []uint64{30, 2}, false, false},
		} {
			h.standing.on = false
			m.list(major, step.blocks...)
			vm.Batch++
			beginLists(vm)
			if h.freed.known == step.lost {
				t.Errorf("JDK %d, %s: known %v", major, step.what, h.freed.known)
			}
			if h.standing.on != step.freed {
				t.Errorf("JDK %d, %s: code was freed %v", major, step.what, h.standing.on)
			}
			now := &h.freed.states[0]
			for seg := uint64(0); seg < 64; seg++ {
				free := seg >= 60
				for i := 0; i < len(step.blocks); i += 2 {
					free = free || seg >= step.blocks[i] && seg < step.blocks[i]+step.blocks[i+1]
				}
				if at := 0x10000 + seg<<7; !step.lost && (now.batch != vm.Batch || now.holds(at, at+128) != free) {
					t.Errorf("JDK %d, %s: segment %d is free: %v", major, step.what, seg, free)
				}
			}
		}
		// A used block on the list, a wrong count, and a heap that is not one.
		m.list(major, 32, 2)
		m[0x10000+32<<7+8] = 1
		if beginLists(vm); h.freed.known {
			t.Errorf("JDK %d: a used block is taken for a free one", major)
		}
		m.list(major, 30, 3)
		m.put(0x10000+30<<7, 2)
		if beginLists(vm); h.freed.known {
			t.Errorf("JDK %d: the number of segments is not compared", major)
		}
		m.list(major, 30, 3)
		m.put(0x1000+248-8, 64)
		if beginLists(vm); h.freed.known {
			t.Errorf("JDK %d: what is no heap is taken for one", major)
		}
	}
}

// The taken parts are those that were free and no longer are.
func TestTaken(t *testing.T) {
	span := func(v ...uint64) (out []freeSpan) {
		for i := 0; i < len(v); i += 2 {
			out = append(out, freeSpan{start: v[i], end: v[i+1]})
		}
		return out
	}
	for _, c := range []struct{ a, b, want []freeSpan }{
		{span(1, 5), nil, span(1, 5)},
		{nil, span(1, 5), nil},
		{span(1, 5, 8, 20), span(1, 5, 8, 20), nil},
		{span(1, 5, 8, 20), span(3, 5, 10, 12, 14, 15, 30, 40), span(1, 3, 8, 10, 12, 14, 15, 20)},
		{span(10, 20), span(0, 12, 18, 30), span(12, 18)},
	} {
		if got := appendTaken(nil, c.a, c.b); !slices.Equal(got, c.want) {
			t.Errorf("%v without %v is %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

// Following a list ends whatever memory holds, and its result lies in the heap.
func FuzzFreeList(f *testing.F) {
	f.Add([]byte{4, 3, 20, 10}, true)
	f.Fuzz(func(t *testing.T, data []byte, young bool) {
		major := 8
		if young {
			major = 25
		}
		m := bytesAt{}
		vm, h := aHeap(major, m)
		m.list(major, 4, 3, 20, 10)
		beginLists(vm)
		for len(data) >= 10 {
			at := uint64(0x10000) + uint64(binary.LittleEndian.Uint16(data))%0x2000
			if data[1]&1 == 0 {
				at = 0x1000 + 248 - freeListBefore + uint64(data[0])%uint64(freeListBytes)
			}
			m.put(at, binary.LittleEndian.Uint64(data[2:]))
			data = data[10:]
			vm.Batch++
			beginLists(vm)
			last := h.low
			for _, b := range h.freed.states[0].blocks {
				if b.start < last || b.end <= b.start || b.end > h.reserved {
					t.Fatalf("block %#x to %#x after %#x", b.start, b.end, last)
				}
				last = b.end
			}
		}
	})
}
