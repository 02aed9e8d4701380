package vmstructs

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/candid-profiler/candid/internal/target"
)

// maxExports bounds the export table of a DLL; jvm.dll has about 1,000, and up
// to JDK 8 some thousand C++ vftables.
const maxExports = 1 << 16

// peSymbols reads the VM's symbols from the export table of the image that is
// loaded at base (PE format: the export directory is the first entry of the
// optional header's data directories).
func peSymbols(r target.Reader, base uint64) (map[string]uint64, error) {
	bad := func(what string) (map[string]uint64, error) {
		return nil, fmt.Errorf("image at %#x: %s: %w", base, what, ErrNotHotSpot)
	}
	c := chunked{r: r, chunks: make(map[uint64][]byte)}
	u32 := func(addr uint64) (uint64, bool) {
		var b [4]byte
		err := c.ReadAt(b[:], addr)
		return uint64(binary.LittleEndian.Uint32(b[:])), err == nil
	}
	header, ok := u32(base + 0x3c)
	if !ok || header > 1<<16 {
		return bad("no PE header")
	}
	var h [24 + 112 + 8]byte // signature, file header, optional header up to the first directory
	if err := c.ReadAt(h[:], base+header); err != nil || string(h[:4]) != "PE\x00\x00" {
		return bad("no PE header")
	}
	if binary.LittleEndian.Uint16(h[24:]) != 0x20b {
		return bad("no 64-bit image")
	}
	dir := uint64(binary.LittleEndian.Uint32(h[24+112:]))
	if dir == 0 {
		return bad("exports nothing")
	}
	var e [40]byte
	if err := c.ReadAt(e[:], base+dir); err != nil {
		return bad("no export directory")
	}
	word := func(off int) uint64 { return uint64(binary.LittleEndian.Uint32(e[off:])) }
	functions, names := word(20), word(24)
	addresses, nameTable, ordinals := base+word(28), base+word(32), base+word(36)
	if functions > maxExports || names > maxExports {
		return bad("too many exports")
	}
	out := make(map[string]uint64, len(symbolNames))
	for i := uint64(0); i < names; i++ {
		rva, ok := u32(nameTable + 4*i)
		if !ok {
			return bad("export names cannot be read")
		}
		s, ok := c.cstring(base + rva)
		if !ok || !strings.HasPrefix(s, "gHotSpotVM") {
			continue
		}
		var b [2]byte
		if err := c.ReadAt(b[:], ordinals+2*i); err != nil {
			return bad("export ordinals cannot be read")
		}
		n := uint64(binary.LittleEndian.Uint16(b[:]))
		if n >= functions {
			continue
		}
		if rva, ok = u32(addresses + 4*n); ok {
			out[s] = base + rva
		}
	}
	if out[symbolNames[0]] == 0 {
		return bad("exports no VM tables")
	}
	return out, nil
}
