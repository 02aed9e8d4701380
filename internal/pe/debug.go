package pe

import (
	"encoding/binary"
	"fmt"
)

const (
	debugEntry    = 28
	maxDebug      = 64 // entries of the debug directory
	debugCodeView = 2
	maxPDBPath    = 4 << 10
)

// PDB identifies the file of debug information that was written together with an image.
type PDB struct {
	GUID [16]byte // as it lies in the image
	Age  uint32
	Path string // where the linker wrote it
}

// ID returns the GUID and the age as symbol stores write them: hexadecimal digits in the order of
// the GUID's fields, then the age without leading zeros.
func (p PDB) ID() string {
	g, le := p.GUID, binary.LittleEndian
	return fmt.Sprintf("%08X%04X%04X%X%X", le.Uint32(g[:]), le.Uint16(g[4:]), le.Uint16(g[6:]), g[8:], p.Age)
}

// PDB returns the identity of the image's debug information. The error wraps ErrAbsent or ErrFormat.
func (m *Image) PDB() (PDB, error) {
	d := m.dirs[dirDebug]
	n := d.Size / debugEntry
	if d.RVA == 0 || n == 0 {
		return PDB{}, fmt.Errorf("debug directory: %w", ErrAbsent)
	}
	b, err := m.read(d.RVA, int(min(n, maxDebug))*debugEntry, "the debug directory")
	if err != nil {
		return PDB{}, err
	}
	le := binary.LittleEndian
	for ; len(b) >= debugEntry; b = b[debugEntry:] {
		if le.Uint32(b[12:]) != debugCodeView {
			continue
		}
		var cv [24]byte
		size, rva := le.Uint32(b[16:]), le.Uint32(b[20:])
		if size < uint32(len(cv)) || !m.ReadRVA(cv[:], rva) || string(cv[:4]) != "RSDS" {
			continue
		}
		p := PDB{GUID: [16]byte(cv[4:20]), Age: le.Uint32(cv[20:])}
		p.Path, _ = m.text(rva+24, maxPDBPath)
		return p, nil
	}
	return PDB{}, fmt.Errorf("CodeView entry: %w", ErrAbsent)
}
