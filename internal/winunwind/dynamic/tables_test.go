package dynamic

import (
	"encoding/binary"
	"testing"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/winunwind"
)

// memory is a process's memory from origin on.
type memory []byte

const origin = 0x10000

func (m memory) Bytes(addr uint64, p []byte) bool {
	off := addr - origin
	if off > uint64(len(m)) || uint64(len(m))-off < uint64(len(p)) {
		return false
	}
	copy(p, m[off:])
	return true
}

func (m memory) put(at uint64, words ...uint64) {
	for i, w := range words {
		binary.LittleEndian.PutUint64(m[at-origin+8*uint64(i):], w)
	}
}

func (m memory) functions(at uint64, f ...winunwind.Function) {
	for i, f := range f {
		b := m[at-origin+winunwind.FunctionSize*uint64(i):]
		binary.LittleEndian.PutUint32(b, f.Begin)
		binary.LittleEndian.PutUint32(b[4:], f.End)
		binary.LittleEndian.PutUint32(b[8:], f.Unwind)
	}
}

// Places in the memory that made returns.
const (
	head, first, second, third, tables = 0x10000, 0x10100, 0x10200, 0x10300, 0x11000
	code                               = 0x12000
	bigFrame, noFrame                  = 0x13000, 0x13010
)

// made returns memory with three entries: a sorted table of two functions, one that its program
// computes, and one that is not sorted or, in Wine, sorted too.
func made(l *layout) memory {
	m := make(memory, 0x8000)
	m.put(head, first, third)
	links := [][2]uint64{{second, head}, {third, first}, {head, second}}
	for i, at := range []uint64{first, second, third} {
		m.put(at, links[i][0], links[i][1])
		if l.base != l.low {
			m.put(at+uint64(l.base), code)
		}
	}
	entry := func(at, low, high, table uint64, count uint32, callback uint64, kind uint32) {
		m.put(at+uint64(l.low), low, high)
		m.put(at+uint64(l.table), table)
		m.put(at+uint64(l.callback), callback)
		if l.kind != 0 {
			binary.LittleEndian.PutUint32(m[at-origin+uint64(l.kind):], kind)
		}
		binary.LittleEndian.PutUint32(m[at-origin+uint64(l.count):], count)
	}
	entry(first, code, code+0x100, tables, 2, 0, 0)
	entry(second, code+0x100, code+0x200, 0, 0, 0x7777, kindCallback)
	entry(third, code+0x200, code+0x300, tables+0x100, 2, 0, kindUnsorted)
	m.functions(tables, winunwind.Function{Begin: 0x10, End: 0x40, Unwind: bigFrame - code}, winunwind.Function{Begin: 0x40, End: 0x80, Unwind: noFrame - code})
	base := uint32(0) // of the third
	if l.base == l.low {
		base = 0x200
	}
	list := []winunwind.Function{{Begin: 0x240 - base, End: 0x260 - base, Unwind: bigFrame - code - base}, {Begin: 0x210 - base, End: 0x230 - base, Unwind: noFrame - code - base}}
	if l.kind == 0 {
		list[0], list[1] = list[1], list[0]
	}
	m.functions(tables+0x100, list...)
	copy(m[bigFrame-origin:], []byte{1, 8, 3, 0, 8, 0x01, 0x40, 0, 1, 0x30}) // push rbx; sub rsp, 0x200
	copy(m[noFrame-origin:], []byte{1, 0, 0, 0})
	return m
}

func opened(t *testing.T, l *layout, m memory) *Tables {
	t.Helper()
	d := &Tables{mem: m, head: head, layout: l}
	if !d.isList() {
		t.Fatal("no list")
	}
	if err := d.Read(); err != nil {
		t.Fatal(err)
	}
	return d
}

// Functions of registered tables are found, in the form of Windows and of Wine.
func TestRule(t *testing.T) {
	for name, l := range map[string]*layout{"Windows": &windowsLayout, "Wine": &wineLayout} {
		m := made(l)
		d := opened(t, l, m)
		if d.Computed() != 0 {
			t.Errorf("%s: rules were wanted of %d computed tables before any was", name, d.Computed())
		}
		for _, c := range []struct {
			at  uint64
			cfa int32 // 0: no rule
		}{{0x0f, 0}, {0x10, 8}, {0x18, 0x210}, {0x3f, 0x210}, {0x40, 8}, {0x7f, 8}, {0x80, 0}, {0x150, 0}, {0x211, 8}, {0x235, 0}, {0x240, 8}, {0x248, 0x210}, {0x25f, 0x210}, {0x2ff, 0}, {0x300, 0}} {
			for range 2 { // the second time it is known
				r := d.Rule(code+c.at, code+c.at+1, false)
				switch {
				case (r == nil) != (c.cfa == 0):
					t.Errorf("%s: %#x: rule %+v", name, c.at, r)
				case r != nil && (r.CFAReg != cpu.RSP || r.CFAOff != c.cfa):
					t.Errorf("%s: %#x: CFA is register %d + %#x, not %#x", name, c.at, r.CFAReg, r.CFAOff, c.cfa)
				}
			}
		}
		// One of those is in the range whose table the program computes.
		if d.Computed() != 1 {
			t.Errorf("%s: rules were wanted of %d computed tables", name, d.Computed())
		}
		// HotSpot registers its code cache as one function without a frame.
		m.functions(tables, winunwind.Function{Begin: 0x10, End: 0x10 + maxBare + 1, Unwind: noFrame - code}, winunwind.Function{Begin: 1 << 30, End: 1<<30 + 1})
		if err := d.Read(); err != nil {
			t.Fatal(err)
		}
		if r := d.Rule(code+0x20, code+0x20, true); r != nil {
			t.Errorf("%s: a function of %d bytes without a frame is believed", name, maxBare+1)
		}
	}
}

// A list that is being changed, or that makes no sense, leaves what was known.
func TestDamaged(t *testing.T) {
	for _, break_ := range []func(m memory){
		func(m memory) { m.put(second, second, first) },
		func(m memory) { m.put(first, first, head) },
		func(m memory) { m.put(third, 0) },
		func(m memory) { m.put(head, 1<<60) },
	} {
		m := made(&wineLayout)
		d := opened(t, &wineLayout, m)
		break_(m)
		if err := d.Read(); err == nil {
			t.Error("the list was read")
		}
		if d.Rule(code+0x10, code+0x10, false) == nil {
			t.Error("what was known is gone")
		}
	}
}

func FuzzTables(f *testing.F) {
	f.Add([]byte(made(&wineLayout)), true)
	f.Add([]byte(made(&windowsLayout)), false)
	f.Fuzz(func(t *testing.T, b []byte, wine bool) {
		d := &Tables{mem: memory(b), head: head, layout: &windowsLayout}
		if wine {
			d.layout = &wineLayout
		}
		if !d.isList() || d.Read() != nil {
			return
		}
		for at := uint64(origin); at < origin+0x4000; at += 0x31 {
			d.Rule(at, at, true)
			d.Rule(at, at+1, false)
		}
	})
}
