package climeta

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
)

// Metadata is the metadata of one module. It is used from one goroutine.
type Metadata struct {
	r       io.ReaderAt
	strings stream
	blobs   stream
	guids   stream
	pdb     stream // #Pdb, of portable PDBs only

	rows   [maxTables]uint32
	size   [maxTables]uint32 // bytes of a row
	at     [maxTables]uint64 // of the first row
	column [maxTables][]column
	wide   byte // HeapSizes: bit 0 strings, 1 GUIDs, 2 blobs
	buf    [64]byte
}

// stream is a part of the metadata.
type stream struct{ at, size uint64 }

// Tables, by the numbers that tokens have in their upper byte (ECMA-335 II.22; portable PDBs:
// docs/design/specs/PortablePdb-Metadata.md in dotnet/runtime).
const (
	Module          = 0x00
	TypeRef         = 0x01
	TypeDef         = 0x02
	Field           = 0x04
	MethodPtr       = 0x05
	MethodDef       = 0x06
	TypeSpec        = 0x1b
	NestedClass     = 0x29
	GenericParam    = 0x2a
	Document        = 0x30
	MethodDebugInfo = 0x31
)

// Open reads the root of the metadata that begins at offset 0 of r. The error wraps ErrFormat.
func Open(r io.ReaderAt) (*Metadata, error) {
	m := &Metadata{r: r}
	tables, err := m.root()
	if err != nil {
		return nil, err
	}
	if err := m.layout(tables); err != nil {
		return nil, err
	}
	return m, nil
}

// root reads the metadata root and the list of streams (II.24.2.1), and returns the stream of
// tables.
func (m *Metadata) root() (tables stream, err error) {
	var h [16]byte
	if !m.read(h[:], 0) || string(h[:4]) != "BSJB" {
		return stream{}, fmt.Errorf("there is no metadata root: %w", ErrFormat)
	}
	version := uint64(binary.LittleEndian.Uint32(h[12:]))
	if version > 256 {
		return stream{}, fmt.Errorf("the version has %d bytes: %w", version, ErrFormat)
	}
	at := 16 + (version+3)&^3
	if !m.read(h[:4], at) {
		return stream{}, fmt.Errorf("the metadata root ends early: %w", ErrFormat)
	}
	n := int(binary.LittleEndian.Uint16(h[2:]))
	if n > maxStreams {
		return stream{}, fmt.Errorf("%d streams: %w", n, ErrFormat)
	}
	at += 4
	for range n {
		var s [8]byte
		if !m.read(s[:], at) {
			return stream{}, fmt.Errorf("the list of streams ends early: %w", ErrFormat)
		}
		name, ok := m.text(at+8, 32)
		if !ok {
			return stream{}, fmt.Errorf("a stream has no name: %w", ErrFormat)
		}
		at += 8 + uint64(len(name)+4)&^3
		part := stream{uint64(binary.LittleEndian.Uint32(s[:])), uint64(binary.LittleEndian.Uint32(s[4:]))}
		if part.size > maxStream {
			return stream{}, fmt.Errorf("stream %q has %d bytes: %w", name, part.size, ErrFormat)
		}
		switch name {
		case "#~", "#-":
			tables = part
		case "#Strings":
			m.strings = part
		case "#Blob":
			m.blobs = part
		case "#GUID":
			m.guids = part
		case "#Pdb":
			m.pdb = part
		}
	}
	if tables.size == 0 {
		return stream{}, fmt.Errorf("there are no tables: %w", ErrFormat)
	}
	return tables, nil
}

// layout finds out where the tables are (II.24.2.6).
func (m *Metadata) layout(tables stream) error {
	var h [24]byte
	if !m.read(h[:], tables.at) {
		return fmt.Errorf("the header of the tables cannot be read: %w", ErrFormat)
	}
	m.wide = h[6]
	valid := binary.LittleEndian.Uint64(h[8:])
	at := tables.at + 24
	for t := range maxTables {
		if valid>>t&1 == 0 {
			continue
		}
		var n [4]byte
		if !m.read(n[:], at) {
			return fmt.Errorf("the numbers of rows cannot be read: %w", ErrFormat)
		}
		if m.rows[t] = binary.LittleEndian.Uint32(n[:]); m.rows[t] > maxRows {
			return fmt.Errorf("table %#x has %d rows: %w", t, m.rows[t], ErrFormat)
		}
		at += 4
	}
	if h[6]&0x40 != 0 { // an extra word, in edited metadata
		at += 4
	}
	counts := m.rows
	if m.pdb.size != 0 {
		if err := m.referenced(&counts); err != nil {
			return err
		}
	}
	for t := range maxTables {
		m.column[t] = columnsOf(t, &counts, m.wide)
		for _, c := range m.column[t] {
			m.size[t] += uint32(c.size)
		}
		if m.rows[t] > 0 && m.size[t] == 0 {
			return fmt.Errorf("table %#x is not known: %w", t, ErrFormat)
		}
		m.at[t] = at
		at += uint64(m.rows[t]) * uint64(m.size[t])
	}
	if at > tables.at+tables.size {
		return fmt.Errorf("the tables have %d bytes, their rows need more: %w", tables.size, ErrFormat)
	}
	return nil
}

// referenced adds the numbers of rows of the assembly that a portable PDB refers to: the width of
// its indices depends on them.
func (m *Metadata) referenced(counts *[maxTables]uint32) error {
	var h [32]byte
	if !m.read(h[:], m.pdb.at) {
		return fmt.Errorf("the stream #Pdb cannot be read: %w", ErrFormat)
	}
	tables := binary.LittleEndian.Uint64(h[24:])
	if uint64(32+4*bits.OnesCount64(tables)) > m.pdb.size {
		return fmt.Errorf("the stream #Pdb has %d bytes: %w", m.pdb.size, ErrFormat)
	}
	at := m.pdb.at + 32
	for t := range maxTables {
		if tables>>t&1 == 0 {
			continue
		}
		if !m.read(h[:4], at) {
			return fmt.Errorf("the stream #Pdb cannot be read: %w", ErrFormat)
		}
		counts[t] = max(counts[t], min(binary.LittleEndian.Uint32(h[:4]), maxRows))
		at += 4
	}
	return nil
}

// PDBID returns the id of a portable PDB: a GUID and a time stamp, as an assembly names its own.
func (m *Metadata) PDBID() (id [20]byte, ok bool) {
	ok = m.pdb.size >= 20 && m.read(id[:], m.pdb.at)
	return id, ok
}

// Rows returns how many rows a table has.
func (m *Metadata) Rows(table int) uint32 { return m.rows[table] }

// Cell returns a column of a row; rows are numbered from 1. It is false if there is no such row.
func (m *Metadata) Cell(table int, row uint32, col int) (uint32, bool) {
	if row == 0 || row > m.rows[table] || col >= len(m.column[table]) {
		return 0, false
	}
	at := m.at[table] + uint64(row-1)*uint64(m.size[table])
	for _, c := range m.column[table][:col] {
		at += uint64(c.size)
	}
	b := m.buf[:m.column[table][col].size]
	if !m.read(b, at) {
		return 0, false
	}
	if len(b) == 2 {
		return uint32(binary.LittleEndian.Uint16(b)), true
	}
	return binary.LittleEndian.Uint32(b), true
}

// String returns a text of the heap of strings.
func (m *Metadata) String(index uint32) (string, bool) {
	if uint64(index) >= m.strings.size {
		return "", false
	}
	return m.text(m.strings.at+uint64(index), min(maxName, m.strings.size-uint64(index)))
}

// Blob returns an entry of the heap of blobs, of at most max bytes.
func (m *Metadata) Blob(index uint32, max uint64) ([]byte, bool) {
	if uint64(index) >= m.blobs.size {
		return nil, false
	}
	var h [4]byte
	at := m.blobs.at + uint64(index)
	left := min(4, m.blobs.size-uint64(index))
	if !m.read(h[:left], at) {
		return nil, false
	}
	n, used, ok := Compressed(h[:left])
	if !ok || uint64(n) > max || uint64(index)+uint64(used)+uint64(n) > m.blobs.size {
		return nil, false
	}
	b := make([]byte, n)
	return b, m.read(b, at+uint64(used))
}

// GUID returns an entry of the heap of GUIDs, which are numbered from 1.
func (m *Metadata) GUID(index uint32) (g [16]byte, ok bool) {
	if index == 0 || 16*uint64(index) > m.guids.size {
		return g, false
	}
	return g, m.read(g[:], m.guids.at+16*uint64(index-1))
}

func (m *Metadata) read(p []byte, at uint64) bool {
	if at > maxStream*2 {
		return false
	}
	n, _ := m.r.ReadAt(p, int64(at))
	return n == len(p)
}

// text reads a text that ends with a zero byte, which lies within max bytes.
func (m *Metadata) text(at, max uint64) (string, bool) {
	var out []byte
	for uint64(len(out)) < max {
		var b [64]byte
		n := min(64, max-uint64(len(out)))
		if !m.read(b[:n], at) {
			// The end of what can be read may be nearer than 64 bytes.
			if n = 1; !m.read(b[:1], at) {
				return "", false
			}
		}
		for i, c := range b[:n] {
			if c == 0 {
				return string(append(out, b[:i]...)), true
			}
		}
		out = append(out, b[:n]...)
		at += n
	}
	return "", false
}

// Compressed reads a number of 1, 2 or 4 bytes (II.23.2), and returns how many.
func Compressed(b []byte) (v uint32, n int, ok bool) {
	switch {
	case len(b) >= 1 && b[0]&0x80 == 0:
		return uint32(b[0]), 1, true
	case len(b) >= 2 && b[0]&0xc0 == 0x80:
		return uint32(b[0]&0x3f)<<8 | uint32(b[1]), 2, true
	case len(b) >= 4 && b[0]&0xe0 == 0xc0:
		return uint32(b[0]&0x1f)<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3]), 4, true
	}
	return 0, 0, false
}
