package coreclr

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/clrgc"
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/target"
)

// heapImage is memory at one address.
type heapImage struct {
	base uint64
	b    []byte
}

func (m *heapImage) Bytes(addr uint64, p []byte) bool {
	if addr < m.base || addr-m.base > uint64(len(m.b)) || uint64(len(p)) > uint64(len(m.b))-(addr-m.base) {
		return false
	}
	copy(p, m.b[addr-m.base:])
	return true
}

func (m *heapImage) Word(addr uint64) (uint64, bool) {
	var b [8]byte
	ok := m.Bytes(addr, b[:])
	return binary.LittleEndian.Uint64(b[:]), ok
}

func (m *heapImage) ReadAt(p []byte, addr uint64) error {
	if !m.Bytes(addr, p) {
		return fmt.Errorf("nothing at %#x: %w", addr, target.ErrMemory)
	}
	return nil
}

func (m *heapImage) put(addr, v uint64) { binary.LittleEndian.PutUint64(m.b[addr-m.base:], v) }

// TestHeapWalk walks objects that are placed like those of the runtime: with arrays that are longer than a
// piece, memory between objects, memory that threads allocate in, known or not, and something that is no object.
func TestHeapWalk(t *testing.T) {
	const base, size = 0x7f0000000000, 4 << 20
	const free, small, text, array, box = 0x100, 0x200, 0x300, 0x400, 0x500
	types := map[uint64]*heapType{
		free:  {table: free, base: minObject, component: 1, free: true},
		small: {table: small, base: minObject},
		text:  {table: text, base: 22, component: 2},
		array: {table: array, base: minObject, component: 8},
		box:   {table: box, base: 64, box: &boxType{size: 56, state: 24, builder: region{16, 24}}},
	}
	type placed struct{ at, table, count uint64 }
	for name, c := range map[string]struct {
		objects []placed
		gaps    []region
		end     uint64
		found   []uint64
		ok      bool
	}{
		"plain": {[]placed{{0, small, 0}, {24, text, 3}, {56, box, 0}, {120, box, 0}}, nil, 184, []uint64{56, 120}, true},
		"an array over pieces": {
			[]placed{{0, array, 300000}, {2400024, box, 0}}, nil, 2400088, []uint64{2400024}, true,
		},
		"a box at the end of a piece":  {[]placed{{0, array, (pieceSize - 48) / 8}, {pieceSize - 24, box, 0}}, nil, pieceSize + 40, []uint64{pieceSize - 24}, true},
		"memory between objects":       {[]placed{{0, free, 1000}, {1024, box, 0}, {1088, free, 0}}, nil, 1112, []uint64{1024}, true},
		"a gap":                        {[]placed{{0, small, 0}, {24, 0x9998, 0}, {8192, box, 0}}, []region{{24, 8192}}, 8256, []uint64{8192}, true},
		"a gap that is not known":      {[]placed{{0, small, 0}, {8192, box, 0}}, nil, 8256, []uint64{8192}, true},
		"with a hash code behind it":   {[]placed{{0, small, 0}, {8184, 0x0c000001 << 32, 0}, {8192, box, 0}}, nil, 8256, []uint64{8192}, true},
		"a gap to the end":             {[]placed{{0, box, 0}}, []region{{64, 4096 + minObject}}, 4096, []uint64{0}, true},
		"no object":                    {[]placed{{0, box, 0}, {64, 0x7777000, 0}, {128, box, 0}}, nil, 192, []uint64{0}, false},
		"longer than the region":       {[]placed{{0, box, 0}, {64, array, 100}, {128, box, 0}}, nil, 192, []uint64{0}, false},
		"longer than memory":           {[]placed{{0, box, 0}, {64, array, 1<<32 - 1}}, nil, 192, []uint64{0}, false},
		"free for longer than anybody": {[]placed{{0, box, 0}, {64, free, 1<<64 - 1}}, nil, 192, []uint64{0}, false},
		"marked":                       {[]placed{{0, small | 1, 0}, {24, box | 3, 0}}, nil, 88, []uint64{24}, true},
	} {
		m := &heapImage{base: base, b: make([]byte, size)}
		for _, o := range c.objects {
			m.put(base+o.at, o.table)
			if o.table&^7 == box {
				m.put(base+o.at+16, base+o.at) // the builder's task
			} else if o.count != 0 {
				m.put(base+o.at+8, o.count)
			}
		}
		var gaps []region
		for _, g := range c.gaps {
			gaps = append(gaps, region{base + g.start, base + g.end})
		}
		h := newHeapReader(&VM{mem: m}, time.Now().Add(time.Minute), 1<<30)
		for _, k := range types {
			h.types[k.table] = k
		}
		ok, why := h.region(region{base, base + c.end}, gaps)
		var found []uint64
		for addr := range h.found.boxes {
			found = append(found, addr-base)
		}
		slices.Sort(found)
		if ok != c.ok || why != stopNot || !slices.Equal(found, c.found) {
			t.Errorf("%s: %v, %v, found %d, should be %v and %d", name, ok, why, found, c.ok, c.found)
		}
	}
}

// TestHeapBounds stops at the bounds of bytes and of time.
func TestHeapBounds(t *testing.T) {
	const base = 0x7f0000000000
	m := &heapImage{base: base, b: make([]byte, 4*pieceSize)}
	r := region{base, base + 4*pieceSize}
	h := newHeapReader(&VM{mem: m}, time.Now().Add(time.Minute), 2*pieceSize+1)
	if _, why := h.region(r, nil); why != stopBytes || h.read != 2*pieceSize {
		t.Errorf("%v after %d bytes", why, h.read)
	}
	h = newHeapReader(&VM{mem: m}, time.Now(), 1<<30)
	if _, why := h.region(r, nil); why != stopTime || h.read != 0 {
		t.Errorf("%v after %d bytes", why, h.read)
	}
	h.until, h.stopped = time.Now().Add(time.Minute), func() bool { return true }
	if _, why := h.region(r, nil); why != stopTime || h.read != 0 {
		t.Errorf("%v after %d bytes", why, h.read)
	}
}

// FuzzHeap looks for asynchronous methods in a process that pretends to be CoreCLR, whose memory is the same
// bytes again and again.
func FuzzHeap(f *testing.F) {
	words := func(w ...uint64) []byte {
		var b []byte
		for _, v := range w {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
		return b
	}
	f.Add(make([]byte, 64), uint64(0x7f0000001000), uint64(100), uint8(0))
	f.Add(words(5, 64, 5, 0x28, 0x30, 0x40, 0x7f0000000000, 0x7f0000000100), uint64(0x7f0000000000), uint64(4096), uint8(1))
	f.Add(words(0x7f0000000040, 0x7f0000000080, 24, 0x1000018, 0, 0x7f0000000001, 8, 16), uint64(0x7f0000000040), uint64(1<<16), uint8(2))
	f.Fuzz(func(t *testing.T, b []byte, at, length uint64, kind uint8) {
		if len(b) < 8 || cpu.Host() != cpu.AMD64 {
			return
		}
		m := &memoryImage{b}
		vm, err := Open(m, "9.0.0", Symbols{DacTable: 8}, System{}, nil, Files{})
		if err != nil {
			return
		}
		vm.desc = &descriptor{pointers: map[string]uint64{"FreeObjectMethodTable": at &^ 7, "ThreadStore": at &^ 7}}
		vm.lay.alloc.locals, vm.lay.alloc.limit, vm.lay.thread.link, vm.lay.store.first = 32, 8, 16, 24
		n := 0
		o := AsyncOptions{Time: time.Minute, Bytes: min(length, 1<<20), Stopped: func() bool { n++; return n > 200 }}
		o.Quiet = func() (clrgc.Mark, error) { return clrgc.Mark{}, nil }
		if a, err := vm.PendingAsync(o); err == nil {
			checkAsync(t, a)
		}
		// Regions and types that the collector would have to lead to.
		h := newHeapReader(vm, time.Now().Add(time.Minute), min(length, 1<<20))
		h.stopped = func() bool { n++; return n > 400 }
		start := at &^ 7 & (1<<47 - 1)
		h.task, h.flags, h.next = at&^7, 8*uint64(kind&3), 8*uint64(kind>>4)
		fake := &heapType{table: start, base: minObject + 8*uint64(kind), task: kind&1 != 0, component: uint64(kind >> 5)}
		if kind&2 != 0 {
			fake.box = &boxType{name: "a", size: fake.base - objectHeader, state: 8, builder: region{8, 16}, awaiters: [][]uint64{{8, 16}, {uint64(kind)}}}
			if kind&4 != 0 {
				fake.box.machine, fake.box.at = start, 16
			}
		}
		h.types[start] = fake
		g := &graph{h: h, index: map[uint64]int32{}, machines: map[uint64]int32{}}
		g.broken, g.why = h.pass(&heapMap{regions: []region{{start, start + min(length, 1<<20)}}, gaps: []region{{at, at + uint64(kind)}}})
		g.prove()
		if h.read > 1<<20 {
			t.Fatalf("%d bytes were read", h.read)
		}
		checkAsync(t, &Async{Nodes: g.nodes})
		vm.references(at&^7, uint64(kind)*8)
		h.boxOf(fake, vm.methodTable(at&^7))
	})
}

// checkAsync checks what any heap leads to.
func checkAsync(t *testing.T, a *Async) {
	t.Helper()
	for _, n := range a.Nodes {
		for _, to := range n.Awaits {
			if to < 0 || int(to) >= len(a.Nodes) {
				t.Fatalf("%+v awaits %d of %d", n, to, len(a.Nodes))
			}
		}
	}
}

// A list of regions that has no end, all of which are empty, is left.
func TestHeapOfEndlessRegions(t *testing.T) {
	const base, segment = 0x7f0000000000, 0x100
	m := &heapImage{base: base, b: make([]byte, 0x200)}
	m.put(base, base+segment) // the only generation's first region
	m.put(base+segment+segmentMem, base+0x180)
	m.put(base+segment+segmentAllocated, base+0x180)
	m.put(base+segment+segmentNext, base+segment)
	var found heapMap
	h := oneHeap{table: base - (smallGenerations-1)*16, genSize: 16, ephemeral: base + 0x40, allocated: base + 0x48}
	if err := (&VM{mem: m}).addHeap(&found, &h); err != nil || !found.cut || len(found.regions) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
}
