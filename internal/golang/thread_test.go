package golang

import (
	"encoding/binary"
	"testing"
)

// image is memory from an address on.
type image struct {
	at uint64
	b  []byte
}

func (m image) Bytes(addr uint64, p []byte) bool {
	off := addr - m.at
	return off < uint64(len(m.b)) && uint64(len(m.b))-off >= uint64(len(p)) && copy(p, m.b[off:]) == len(p)
}

func (m image) set(addr uint64, words ...uint64) {
	for i, v := range words {
		binary.LittleEndian.PutUint64(m.b[addr-m.at+8*uint64(i):], v)
	}
}

// A thread that runs a goroutine on its own stack.
func TestFindThread(t *testing.T) {
	const (
		teb, m, g0, g = 0x100000, 0x102000, 0x103000, 0x104000
		slot, curg    = 0x1480 + 8*5, 0xb8
		tls           = m + 0x20
	)
	mem := image{teb, make([]byte, 0x6000)}
	mem.set(teb+slot-8, teb, tls) // some other pointer, and Go's
	mem.set(tls, g0)
	mem.set(m, g0)
	mem.set(m+0x88, g0, 12345)
	mem.set(m+curg, g)
	mem.set(g0, 0x200000, 0x210000, 0x201400, 0, 0, 0, m)
	mem.set(g, 0x300000, 0x302000, ^uint64(0)-0x521, 0, 0, 0, m, 0x301000, 0x401000)
	found, ok := FindThread(mem, teb)
	if want := (Thread{Slot: slot, M: m, G0: g0}); !ok || found != want {
		t.Fatalf("%+v, %v, not %+v", found, ok, want)
	}
	if off, ok := found.FindCurrent(mem); !ok || off != curg {
		t.Errorf("the current goroutine is at %#x, %v, not %#x", off, ok, curg)
	}
	if got, ok := ReadG(mem, g); !ok || got != (G{Low: 0x300000, High: 0x302000, M: m, SP: 0x301000, PC: 0x401000}) {
		t.Errorf("%+v, %v", got, ok)
	}
	mem.set(m+curg, 0)
	if off, ok := found.FindCurrent(mem); ok {
		t.Errorf("a thread without a goroutine has one at %#x", off)
	}
	// Before Go 1.20.
	mem.set(teb+slot, 0)
	mem.set(teb+0x28, tls)
	mem.set(tls, g)
	if found, ok = FindThread(mem, teb); !ok || found.Slot != 0x28 || found.M != m {
		t.Errorf("%+v, %v", found, ok)
	}
	// Not a struct m: its first word is not a g of it.
	mem.set(m, g0+8)
	if found, ok = FindThread(mem, teb); ok {
		t.Errorf("found %+v", found)
	}
}

func FuzzFindThread(f *testing.F) {
	f.Add(make([]byte, 0x2000))
	f.Fuzz(func(t *testing.T, b []byte) {
		mem := image{0x10000, b}
		if found, ok := FindThread(mem, 0x10000); ok {
			found.FindCurrent(mem)
		}
		ReadG(mem, 0x10000)
	})
}
