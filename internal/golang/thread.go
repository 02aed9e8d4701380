package golang

import "encoding/binary"

// Memory reads a process's memory.
type Memory interface {
	// Bytes fills p from addr; false unless all of it could be read.
	Bytes(addr uint64, p []byte) bool
}

// Offsets in the beginning of a struct g, which engines copy as a whole; see gLow and those after it.
const (
	GLow, GHigh = gLow, gHigh
	GM          = gM
	GSP, GPC    = gSP, gPC
	GBytes      = gPC + 8

	gGuard = 16
)

// G is the beginning of a struct g.
type G struct {
	Low, High uint64 // the bounds of its stack
	M         uint64 // the struct m of the thread that runs it; 0: none
	SP, PC    uint64 // where it will go on
}

// Bounds of the address below which a function must ask for more stack: it is a little above the
// lower bound of the stack, or near the end of all addresses where the goroutine is asked to stop
// (stack.go: stackGuard, stackPreempt).
const (
	guardMost  = 8192 // bytes; 5 KiB on Windows
	guardAsked = 4096
	maxGStack  = 1 << 30
)

// ReadG reads a struct g; false if there is none at the address.
func ReadG(mem Memory, addr uint64) (G, bool) {
	var b [GBytes]byte
	if !pointer(addr) || !mem.Bytes(addr, b[:]) {
		return G{}, false
	}
	word := func(off int) uint64 { return binary.LittleEndian.Uint64(b[off:]) }
	g := G{Low: word(gLow), High: word(gHigh), M: word(gM), SP: word(gSP), PC: word(gPC)}
	guard := word(gGuard)
	return g, g.Low < g.High && g.High-g.Low <= maxGStack && (g.Low|g.High)&7 == 0 && (guard-g.Low <= guardMost || -guard <= guardAsked)
}

// pointer reports whether an address may be of one of the runtime's structs.
func pointer(addr uint64) bool { return addr >= 1<<16 && addr < 1<<47 && addr&7 == 0 }

// Thread is a thread of a Go program for Windows.
type Thread struct {
	Slot uint64 // offset in the thread's block (TEB) of the address at which is the g that it runs
	M    uint64 // address of its struct m
	G0   uint64 // the g of its own stack
}

// Places in a thread's block of the address of m.tls, the first word of which is g
// (sys_windows_amd64.s, wintls and tstart_stdcall): one of the slots for thread-local storage; before
// Go 1.20, or if the first 64 are taken, the pointer that is at everybody's disposal.
const (
	tebArbitrary = 0x28
	tebSlots     = 0x1480
	numSlots     = 64
)

// FindThread looks for the g of a thread that has its block at teb; false if it runs no Go code.
func FindThread(mem Memory, teb uint64) (Thread, bool) {
	var b [8 + 8*numSlots]byte
	if !mem.Bytes(teb+tebArbitrary, b[:8]) || !mem.Bytes(teb+tebSlots, b[8:]) {
		return Thread{}, false
	}
	word := func(addr uint64) uint64 {
		var w [8]byte
		if !pointer(addr) || !mem.Bytes(addr, w[:]) {
			return 0
		}
		return binary.LittleEndian.Uint64(w[:])
	}
	for i := 0; i < len(b); i += 8 {
		g, ok := ReadG(mem, word(binary.LittleEndian.Uint64(b[i:])))
		if !ok || !pointer(g.M) {
			continue
		}
		t := Thread{Slot: tebArbitrary, M: g.M, G0: word(g.M + mG0)}
		if i > 0 {
			t.Slot = tebSlots + uint64(i) - 8
		}
		if own, ok := ReadG(mem, t.G0); ok && own.M == g.M {
			return t, true
		}
	}
	return Thread{}, false
}

// FindCurrent returns the offset in the thread's struct m of the goroutine that the thread runs
// (curg); false if it runs none.
func (t Thread) FindCurrent(mem Memory) (off uint64, ok bool) {
	var b [curgLast - curgFirst]byte
	if !mem.Bytes(t.M+curgFirst, b[:]) {
		return 0, false
	}
	for i := 0; i < len(b); i += 8 {
		addr := binary.LittleEndian.Uint64(b[i:])
		if g, ok := ReadG(mem, addr); ok && addr != t.G0 && g.M == t.M {
			return curgFirst + uint64(i), true
		}
	}
	return 0, false
}
