package pe

import (
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Bounds on COFF symbols. Large programs of MinGW have some hundred thousand.
const (
	coffSymbol    = 18
	maxSymbols    = 1 << 22
	maxStrings    = 256 << 20
	maxSymbolName = 64 << 10
)

// Symbols calls add for each function of the COFF symbol table, which the linkers of MinGW and Clang
// write, with its index in the table and its address. Only files have the table: it is not loaded.
// The error wraps ErrAbsent or ErrFormat.
func (m *Image) Symbols(add func(index, rva uint32, external bool)) error {
	if m.loaded || m.symbols == 0 || m.count == 0 {
		return fmt.Errorf("COFF symbols: %w", ErrAbsent)
	}
	if m.count > maxSymbols {
		return fmt.Errorf("%w: %d COFF symbols", ErrFormat, m.count)
	}
	bySection := m.sectionsByNumber()
	const chunk = 512
	buf := make([]byte, chunk*coffSymbol)
	le := binary.LittleEndian
	skip := uint32(0)
	for i := uint32(0); i < m.count; {
		n := min(chunk, m.count-i)
		b := buf[:n*coffSymbol]
		if _, err := m.r.ReadAt(b, int64(m.symbols)+int64(i)*coffSymbol); err != nil && err != io.EOF {
			return fmt.Errorf("%w: read COFF symbols: %v", ErrFormat, err)
		}
		for ; len(b) > 0; b = b[coffSymbol:] {
			i++
			if skip > 0 {
				skip--
				continue
			}
			skip = uint32(b[17])
			section, typ, class := int(int16(le.Uint16(b[12:]))), le.Uint16(b[14:]), b[16]
			const external, static, function = 2, 3, 0x20
			if section < 1 || section > len(bySection) || class != external && class != static {
				continue
			}
			s := bySection[section-1]
			// Assembler code has symbols without a type.
			if s == nil || !s.Executable() || typ != function && (typ != 0 || class != external) {
				continue
			}
			if v := le.Uint32(b[8:]); b[0] != '.' && v < s.Size {
				add(i-1, s.RVA+v, class == external)
			}
		}
	}
	return nil
}

// sectionsByNumber returns the sections in the order of their headers, as symbols number them.
func (m *Image) sectionsByNumber() []*Section {
	out := make([]*Section, len(m.Sections))
	for i := range m.Sections {
		if n := m.Sections[i].number; n < len(out) {
			out[n] = &m.Sections[i]
		}
	}
	return out
}

// SymbolName returns the name of the symbol with an index of the COFF table; "" if it cannot be read.
func (m *Image) SymbolName(index uint32) string {
	var b [8]byte // the name, or 0 and an offset in the string table behind the symbols
	if m.loaded || m.symbols == 0 || index >= m.count {
		return ""
	}
	if _, err := m.r.ReadAt(b[:], int64(m.symbols)+int64(index)*coffSymbol); err != nil {
		return ""
	}
	if binary.LittleEndian.Uint32(b[:]) != 0 {
		return cString(b[:])
	}
	name, _ := m.coffString(binary.LittleEndian.Uint32(b[4:]))
	return name
}

func (m *Image) coffString(off uint32) (string, bool) {
	if m.symbols == 0 || off < 4 || off > maxStrings || m.count > maxSymbols {
		return "", false
	}
	at := int64(m.symbols) + int64(m.count)*coffSymbol + int64(off)
	var out []byte
	var buf [64]byte
	for len(out) < maxSymbolName {
		n, err := m.r.ReadAt(buf[:], at+int64(len(out)))
		for i, c := range buf[:n] {
			if c == 0 {
				return string(append(out, buf[:i]...)), true
			}
		}
		if out = append(out, buf[:n]...); err != nil {
			break
		}
	}
	return "", false
}

// SectionName returns the whole name of a section: names of more than 8 bytes are in the COFF
// string table.
func (m *Image) SectionName(s *Section) string {
	if off, ok := strings.CutPrefix(s.Name, "/"); ok && !m.loaded {
		if n, err := strconv.ParseUint(off, 10, 32); err == nil {
			if name, ok := m.coffString(uint32(n)); ok {
				return name
			}
		}
	}
	return s.Name
}

// SectionData reads a section's content, at most limit bytes, as it is in the file. The error wraps
// ErrAbsent or ErrFormat.
func (m *Image) SectionData(name string, limit uint64) ([]byte, error) {
	r, err := m.SectionReader(name, limit)
	if err != nil {
		return nil, err
	}
	b := make([]byte, r.Size())
	if n, err := r.ReadAt(b, 0); n < len(b) {
		return nil, fmt.Errorf("%w: section %s ends after %d of %d bytes: %v", ErrFormat, name, n, len(b), err)
	}
	return b, nil
}

// SectionReader returns a reader of a section's content as it is in the file, which has at most limit
// bytes. Nothing of it is held in memory. The error wraps ErrAbsent or ErrFormat.
func (m *Image) SectionReader(name string, limit uint64) (*io.SectionReader, error) {
	for i := range m.Sections {
		s := &m.Sections[i]
		if m.loaded || s.Raw == 0 || m.SectionName(s) != name {
			continue
		}
		n := min(s.Raw, s.Size)
		if uint64(n) > limit {
			return nil, fmt.Errorf("section %s of %d bytes, of which %d may be read: %w", name, n, limit, ErrFormat)
		}
		r := io.NewSectionReader(m.r, int64(s.Offset), int64(n))
		var last [1]byte
		if got, _ := r.ReadAt(last[:], int64(n)-1); got < len(last) {
			return nil, fmt.Errorf("%w: the file ends before the %d bytes of section %s", ErrFormat, n, name)
		}
		return r, nil
	}
	return nil, fmt.Errorf("section %s: %w", name, ErrAbsent)
}
