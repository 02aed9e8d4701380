package walk

import "github.com/candid-profiler/candid/internal/cpu"

// Code reports what is known of a process's code without knowing which runtime or file it is from.
type Code interface {
	// Executable reports whether addr lies in memory that may be executed.
	Executable(addr uint64) bool
}

// AfterCall reports whether the instruction just before ra is a call, so that ra may be a return
// address. On amd64, where instructions have no fixed length, a byte sequence that could be decoded
// as a call ending at ra is enough: about one random address in 60 passes.
func (c *Cursor) AfterCall(ra uint64) bool {
	mem, b := c.Mem, c.scratch[:8]
	if mem == nil || ra < 0x1000 {
		return false
	}
	if c.Regs.Arch == cpu.ARM64 {
		if ra&3 != 0 || !mem.Bytes(ra-4, b[:4]) {
			return false
		}
		w := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
		// BL; BLR and its authenticating forms (Arm ARM C6.2).
		return w>>26 == 0b100101 || w&0xfefff000 == 0xd63f0000
	}
	if !mem.Bytes(ra-8, b) {
		// The executable memory may start less than 8 bytes before.
		clear(b)
		if !mem.Bytes(ra-5, b[3:]) {
			return false
		}
	}
	if b[3] == 0xe8 { // call rel32
		return true
	}
	// FF /2: its length follows from ModRM and SIB (Intel SDM 2.1).
	for n := 2; n <= 7; n++ {
		m := b[8-n:]
		if m[0] == 0xff && m[1]>>3&7 == 2 && indirectLength(m) == n {
			return true
		}
	}
	return false
}

// indirectLength is how many bytes an FF /2 at the start of m takes.
func indirectLength(m []byte) int {
	mod, rm := m[1]>>6, m[1]&7
	n := 2
	if mod == 3 {
		return n
	}
	if rm == 4 {
		if len(m) < 3 {
			return 0
		}
		if n++; mod == 0 && m[2]&7 == 5 {
			n += 4
		}
	}
	switch {
	case mod == 1:
		n++
	case mod == 2, mod == 0 && rm == 5:
		n += 4
	}
	return n
}

// Code reads n bytes, at most 16, of the process's code. The result is valid until the next call of
// Code or AfterCall; nil if the bytes cannot be read.
func (c *Cursor) Code(addr uint64, n int) []byte {
	b := c.scratch[:n]
	if c.Mem == nil || !c.Mem.Bytes(addr, b) {
		return nil
	}
	return b
}
