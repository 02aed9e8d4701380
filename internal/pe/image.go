// Package pe reads images of Windows programs and libraries (PE32+): headers, sections, exports,
// COFF symbols, the identity of their PDB, and the table of functions that unwinding uses. It reads
// them from files and from the memory of processes that have loaded them, on any system: Wine maps
// the same images. Nothing is read before it is asked for, and every size that an image states is
// bounded, because images may be hostile.
//
// Source: Microsoft, "PE Format".
package pe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

var (
	// ErrNotPE means that there is no PE image.
	ErrNotPE = errors.New("not a PE image")
	// ErrUnsupported means that the image is for a processor that candid does not walk, or 32-bit.
	ErrUnsupported = errors.New("not a 64-bit image of a known processor")
	// ErrFormat means that a part of the image is damaged.
	ErrFormat = errors.New("damaged PE image")
	// ErrAbsent means that the image does not have what was asked for.
	ErrAbsent = errors.New("the image has none")
)

// Processors, as Image.Machine.
const (
	MachineAMD64 = 0x8664
	MachineARM64 = 0xaa64
)

// Indices of data directories.
const (
	dirExport    = 0
	dirException = 3
	dirDebug     = 6
	dirCLR       = 14
	directories  = 16
)

// Bounds on what an image may state. The format itself has at most 96 sections in a program; object
// files may have more, and are no images.
const (
	maxSections   = 1024
	maxHeader     = 64 << 10 // where the PE header may begin
	maxImage      = 1 << 31
	optionalFixed = 112 // bytes of the optional header before the data directories
)

// Directory is the place of a table in an image.
type Directory struct{ RVA, Size uint32 }

// Section is a part of an image with its own protection.
type Section struct {
	Name   string // as the header has it: long names are "/123", see Image.SectionName
	RVA    uint32
	Size   uint32 // in memory
	Offset uint32 // in the file
	Raw    uint32 // bytes in the file
	Flags  uint32
	number int // in the order of the headers
}

// Flags of a Section.
const (
	SectionCode    = 0x20
	SectionExecute = 0x20000000
	SectionWrite   = 0x80000000
)

// Executable reports whether the section holds code.
func (s *Section) Executable() bool { return s.Flags&SectionExecute != 0 }

// Image is a PE32+ image. Its methods may be called from several goroutines if its reader may.
type Image struct {
	Machine     uint16
	Timestamp   uint32 // when it was linked, or a hash of the content
	Checksum    uint32
	Base        uint64 // where it was linked to be loaded
	SizeOfImage uint32 // in memory, bytes
	Entry       uint32 // RVA of the entry point; 0: none
	Headers     uint32 // size of all headers
	DLL         bool
	Sections    []Section // by RVA

	dirs    [directories]Directory
	symbols uint32 // offset in the file of the COFF symbols; 0: none
	count   uint32 // how many
	r       io.ReaderAt
	loaded  bool
}

// Open reads the headers of an image in a file. r must stay readable as long as the Image is used.
// The error wraps ErrNotPE, ErrUnsupported or ErrFormat, or is r's.
func Open(r io.ReaderAt) (*Image, error) { return open(r, false) }

// Memory reads a process's memory; walk.Memory is one.
type Memory interface {
	// Bytes fills p from addr; false unless all of it could be read.
	Bytes(addr uint64, p []byte) bool
}

// Load reads the headers of an image that is loaded at base in a process. The errors are those of
// Open; memory that cannot be read is ErrNotPE at the beginning and ErrFormat later.
func Load(m Memory, base uint64) (*Image, error) { return open(memoryAt{m, base}, true) }

// memoryAt is an io.ReaderAt of what is loaded at an address.
type memoryAt struct {
	m    Memory
	base uint64
}

func (m memoryAt) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off > maxImage || !m.m.Bytes(m.base+uint64(off), p) {
		return 0, io.ErrUnexpectedEOF
	}
	return len(p), nil
}

func open(r io.ReaderAt, loaded bool) (*Image, error) {
	var dos [64]byte
	if _, err := r.ReadAt(dos[:], 0); err != nil || dos[0] != 'M' || dos[1] != 'Z' {
		return nil, ErrNotPE
	}
	at := binary.LittleEndian.Uint32(dos[0x3c:])
	if at > maxHeader {
		return nil, fmt.Errorf("%w: header at %#x", ErrNotPE, at)
	}
	var head [24 + optionalFixed]byte
	if _, err := r.ReadAt(head[:], int64(at)); err != nil || string(head[:4]) != "PE\x00\x00" {
		return nil, fmt.Errorf("%w: no PE header", ErrNotPE)
	}
	le := binary.LittleEndian
	opt := head[24:]
	m := &Image{
		Machine: le.Uint16(head[4:]), Timestamp: le.Uint32(head[8:]), symbols: le.Uint32(head[12:]), count: le.Uint32(head[16:]),
		DLL: le.Uint16(head[22:])&0x2000 != 0, Entry: le.Uint32(opt[16:]), Base: le.Uint64(opt[24:]),
		SizeOfImage: le.Uint32(opt[56:]), Headers: le.Uint32(opt[60:]), Checksum: le.Uint32(opt[64:]),
		r: r, loaded: loaded,
	}
	if le.Uint16(opt) != 0x20b || m.Machine != MachineAMD64 && m.Machine != MachineARM64 {
		return nil, fmt.Errorf("%w: machine %#x", ErrUnsupported, m.Machine)
	}
	sections, optional := int(le.Uint16(head[6:])), int(le.Uint16(head[20:]))
	dirs := min(int(le.Uint32(opt[108:])&0xff), directories)
	if sections > maxSections || optional < optionalFixed+8*dirs || m.SizeOfImage > maxImage {
		return nil, fmt.Errorf("%w: %d sections, %d bytes of optional header", ErrFormat, sections, optional)
	}
	b := make([]byte, 8*dirs)
	if _, err := r.ReadAt(b, int64(at)+24+optionalFixed); err != nil {
		return nil, fmt.Errorf("%w: read the data directories: %v", ErrFormat, err)
	}
	for i := range dirs {
		m.dirs[i] = Directory{le.Uint32(b[8*i:]), le.Uint32(b[8*i+4:])}
	}
	return m, m.readSections(int64(at)+24+int64(optional), sections)
}

const sectionHeader = 40

func (m *Image) readSections(at int64, n int) error {
	b := make([]byte, sectionHeader*n)
	if _, err := m.r.ReadAt(b, at); err != nil {
		return fmt.Errorf("%w: read %d section headers: %v", ErrFormat, n, err)
	}
	le := binary.LittleEndian
	for ; len(b) > 0; b = b[sectionHeader:] {
		s := Section{
			Name: cString(b[:8]), Size: le.Uint32(b[8:]), RVA: le.Uint32(b[12:]), Raw: le.Uint32(b[16:]), Offset: le.Uint32(b[20:]),
			Flags: le.Uint32(b[36:]), number: len(m.Sections),
		}
		if s.Size == 0 {
			s.Size = s.Raw
		}
		if uint64(s.RVA)+uint64(s.Size) > maxImage {
			return fmt.Errorf("%w: section %q of %d bytes at %#x", ErrFormat, s.Name, s.Size, s.RVA)
		}
		m.Sections = append(m.Sections, s)
	}
	slices.SortStableFunc(m.Sections, func(a, b Section) int { return int(int64(a.RVA) - int64(b.RVA)) })
	return nil
}

// cString returns the text in b up to the first 0.
func cString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// Loaded reports whether the image was read from a process.
func (m *Image) Loaded() bool { return m.loaded }

// Section returns the section that an address lies in, nil if there is none.
func (m *Image) Section(rva uint32) *Section {
	for i := range m.Sections {
		if s := &m.Sections[i]; rva-s.RVA < s.Size {
			return s
		}
	}
	return nil
}

// Segment returns the number of the section that an address lies in, from 1, and the address's
// offset in it, as debug information counts; false if it lies in none.
func (m *Image) Segment(rva uint32) (number uint16, off uint32, ok bool) {
	s := m.Section(rva)
	if s == nil {
		return 0, 0, false
	}
	return uint16(s.number + 1), rva - s.RVA, true
}

// Address returns the address of an offset in the section with a number; false if there is no such
// place.
func (m *Image) Address(number uint16, off uint32) (rva uint32, ok bool) {
	for i := range m.Sections {
		if s := &m.Sections[i]; s.number+1 == int(number) {
			return s.RVA + off, off < s.Size
		}
	}
	return 0, false
}

// AtOffset returns the address of what is at an offset of the file; false if it is not loaded.
func (m *Image) AtOffset(off uint64) (rva uint32, ok bool) {
	if off < uint64(m.Headers) {
		return uint32(off), true
	}
	for i := range m.Sections {
		// Loaders round the offset down to a page or a sector.
		if s := &m.Sections[i]; s.Raw > 0 && off-uint64(s.Offset)&^0x1ff < uint64(s.Raw) {
			return s.RVA + uint32(off-uint64(s.Offset)), true
		}
	}
	return 0, false
}

// ReadRVA fills p from an address relative to the image's start; false unless all of it could be
// read. Bytes of a section behind those in the file are 0.
func (m *Image) ReadRVA(p []byte, rva uint32) bool {
	if uint64(rva)+uint64(len(p)) > maxImage {
		return false
	}
	if m.loaded {
		_, err := m.r.ReadAt(p, int64(rva))
		return err == nil
	}
	if uint64(rva)+uint64(len(p)) <= uint64(m.Headers) {
		_, err := m.r.ReadAt(p, int64(rva))
		return err == nil
	}
	s := m.Section(rva)
	if s == nil {
		return false
	}
	off := rva - s.RVA
	if uint64(off)+uint64(len(p)) > uint64(s.Size) {
		return false
	}
	n := 0
	if off < s.Raw {
		n = int(min(uint32(len(p)), s.Raw-off))
		if got, err := m.r.ReadAt(p[:n], int64(s.Offset)+int64(off)); got < n && err != nil {
			return false
		}
	}
	clear(p[n:])
	return true
}

// read reads a table of n bytes; the error wraps ErrFormat.
func (m *Image) read(rva uint32, n int, what string) ([]byte, error) {
	b := make([]byte, n)
	if !m.ReadRVA(b, rva) {
		return nil, fmt.Errorf("%w: read %d bytes of %s at %#x", ErrFormat, n, what, rva)
	}
	return b, nil
}

// text reads a string that ends with 0, of at most limit bytes.
func (m *Image) text(rva uint32, limit int) (string, bool) {
	var buf [64]byte
	var out []byte
	for len(out) < limit {
		n := len(buf)
		for n > 0 && !m.ReadRVA(buf[:n], rva) {
			n /= 2 // the end of the section
		}
		if n == 0 {
			return "", false
		}
		for i, c := range buf[:n] {
			if c == 0 {
				return string(append(out, buf[:i]...)), true
			}
		}
		out, rva = append(out, buf[:n]...), rva+uint32(n)
	}
	return "", false
}

// Managed reports whether the image has a CLR header: it holds .NET code.
func (m *Image) Managed() bool { return m.dirs[dirCLR].RVA != 0 }
