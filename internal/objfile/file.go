// Package objfile reads the layout of ELF files: headers, sections, segments, notes, symbol tables and the
// dynamic section.
//
// It is made for hostile files: every count and size is bounded and compared with the size of the file before
// anything is allocated, and a part that is damaged is left out where the rest is still of use. Only headers
// are kept in memory; a caller that reads small pieces of large tables opens the file through package
// fileblocks. debug/elf is used for its constants only, because it reads whole tables, makes a string of every
// symbol, and is by its own documentation not meant for hostile files.
package objfile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/candid-profiler/candid/internal/cpu"
)

// Bounds on what a file may claim. Real files stay far below them; a hostile one must not make candid read or
// allocate more.
const (
	maxSections     = 1 << 16
	maxSegments     = 1 << 10
	maxSectionNames = 4 << 20
	maxSectionData  = 512 << 20
	maxSectionName  = 256 // bytes
)

var (
	// ErrNotELF means that the file is not an ELF file that can be read here.
	ErrNotELF = errors.New("not a usable ELF file")
	// ErrTooLarge means that a part of the file is larger than the bound on what is read.
	ErrTooLarge = errors.New("too large")
	// ErrNoSection means that a section does not exist, or has no content in the file.
	ErrNoSection = errors.New("no such section")
	// ErrArch means that candid does not walk code of the file's architecture.
	ErrArch = errors.New("code of this architecture is not walked")
)

// Segment is one program header.
type Segment struct {
	Type          elf.ProgType
	Flags         elf.ProgFlag
	Off, Vaddr    uint64
	Filesz, Memsz uint64
}

// File is the layout of an ELF file. Its fields are not changed after Open, so it may be used by several
// goroutines if what it reads from may be.
type File struct {
	Class    elf.Class // ELFCLASS64 or ELFCLASS32
	Order    binary.ByteOrder
	Machine  elf.Machine
	Entry    uint64 // address where the program starts, 0 if there is none
	Sections []Section
	Segments []Segment

	r    io.ReaderAt
	size int64
}

// Open reads the headers of the ELF file in r, which must stay readable as long as the File is used. The error
// wraps ErrNotELF if it is none. Section or program headers that are damaged are left out.
func Open(r io.ReaderAt) (*File, error) { return OpenSize(r, sizeOf(r)) }

// sizeOf returns the size of what r reads, in bytes; the largest number if r does not know it.
func sizeOf(r io.ReaderAt) int64 {
	switch r := r.(type) {
	case interface{ Size() int64 }:
		return r.Size()
	case interface{ Stat() (os.FileInfo, error) }:
		if st, err := r.Stat(); err == nil {
			return st.Size()
		}
		return 0
	}
	return math.MaxInt64
}

// OpenSize is Open for a file of size bytes.
func OpenSize(r io.ReaderAt, size int64) (*File, error) {
	const small, large = 52, 64 // sizes of the headers of both classes
	var head [large]byte
	if size < small {
		return nil, fmt.Errorf("%w: %d bytes", ErrNotELF, size)
	}
	n, err := r.ReadAt(head[:min(large, size)], 0)
	switch {
	case err != nil && err != io.EOF:
		return nil, fmt.Errorf("read ELF header: %w", err)
	case n < small:
		return nil, fmt.Errorf("%w: %d bytes", ErrNotELF, n)
	case string(head[:4]) != elf.ELFMAG:
		return nil, fmt.Errorf("%w: wrong magic", ErrNotELF)
	}
	f := &File{r: r, size: size, Class: elf.Class(head[elf.EI_CLASS])}
	switch elf.Data(head[elf.EI_DATA]) {
	case elf.ELFDATA2LSB:
		f.Order = binary.LittleEndian
	case elf.ELFDATA2MSB:
		f.Order = binary.BigEndian
	default:
		return nil, fmt.Errorf("%w: unknown byte order %d", ErrNotELF, head[elf.EI_DATA])
	}
	o := f.Order
	f.Machine = elf.Machine(o.Uint16(head[18:]))
	var phoff, shoff uint64
	var counts []byte // e_phentsize, e_phnum, e_shentsize, e_shnum, e_shstrndx
	switch f.Class {
	case elf.ELFCLASS64:
		f.Entry, phoff, shoff, counts = o.Uint64(head[24:]), o.Uint64(head[32:]), o.Uint64(head[40:]), head[54:64]
	case elf.ELFCLASS32:
		f.Entry, phoff, shoff, counts = uint64(o.Uint32(head[24:])), uint64(o.Uint32(head[28:])), uint64(o.Uint32(head[32:])), head[42:52]
	default:
		return nil, fmt.Errorf("%w: unknown class %d", ErrNotELF, head[elf.EI_CLASS])
	}
	phentsize, phnum := int(o.Uint16(counts)), int(o.Uint16(counts[2:]))
	shentsize, shnum, shstrndx := int(o.Uint16(counts[4:])), int(o.Uint16(counts[6:])), uint32(o.Uint16(counts[8:]))
	f.readSegments(phoff, phentsize, phnum)
	f.readSections(shoff, shentsize, shnum, shstrndx)
	return f, nil
}

// Wide reports whether it is a file of 64 bits.
func (f *File) Wide() bool { return f.Class == elf.ELFCLASS64 }

// Arch returns the architecture whose code the file holds. The error wraps ErrArch if it is none that candid
// walks.
func (f *File) Arch() (cpu.Arch, error) {
	switch {
	case !f.Wide() || f.Order != binary.LittleEndian:
	case f.Machine == elf.EM_X86_64:
		return cpu.AMD64, nil
	case f.Machine == elf.EM_AARCH64:
		return cpu.ARM64, nil
	}
	return 0, fmt.Errorf("%w: %v, %v, %v", ErrArch, f.Machine, f.Class, f.Order)
}

// Size returns the size of the file in bytes.
func (f *File) Size() int64 { return f.size }

// ReadAt implements io.ReaderAt: it reads from an offset of the file.
func (f *File) ReadAt(p []byte, off int64) (int, error) { return f.r.ReadAt(p, off) }

// Range reads n bytes at an offset of the file. It is an error if the file ends before, and one that wraps
// ErrTooLarge if n is more than limit.
func (f *File) Range(off, n, limit uint64) ([]byte, error) {
	if n > limit {
		return nil, fmt.Errorf("%d bytes at %#x: %w", n, off, ErrTooLarge)
	}
	if off > uint64(f.size) || n > uint64(f.size)-off {
		return nil, fmt.Errorf("%d bytes at %#x: %w", n, off, io.ErrUnexpectedEOF)
	}
	b := make([]byte, n)
	if got, err := f.r.ReadAt(b, int64(off)); got < len(b) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("%d bytes at %#x: %w", n, off, err)
	}
	return b, nil
}

// reader reads n bytes of the file from off on; what is beyond the end of the file reads as its end.
func (f *File) reader(off, n uint64) *io.SectionReader {
	const most = math.MaxInt64 / 2
	return io.NewSectionReader(f.r, int64(min(off, most)), int64(min(n, most)))
}

func (f *File) readSegments(off uint64, entsize, num int) {
	want := 32
	if f.Wide() {
		want = 56
	}
	if entsize < want || num == 0 || num > maxSegments {
		return
	}
	b, err := f.Range(off, uint64(entsize*num), 1<<22)
	if err != nil {
		return // no segments: sections may still be enough
	}
	o := f.Order
	f.Segments = make([]Segment, num)
	for i := range num {
		e, s := b[i*entsize:], &f.Segments[i]
		s.Type = elf.ProgType(o.Uint32(e))
		if f.Wide() {
			s.Flags, s.Off, s.Vaddr = elf.ProgFlag(o.Uint32(e[4:])), o.Uint64(e[8:]), o.Uint64(e[16:])
			s.Filesz, s.Memsz = o.Uint64(e[32:]), o.Uint64(e[40:])
		} else {
			s.Off, s.Vaddr = uint64(o.Uint32(e[4:])), uint64(o.Uint32(e[8:]))
			s.Filesz, s.Memsz, s.Flags = uint64(o.Uint32(e[16:])), uint64(o.Uint32(e[20:])), elf.ProgFlag(o.Uint32(e[24:]))
		}
	}
}

// SegmentReader reads a segment's content.
func (f *File) SegmentReader(s *Segment) *io.SectionReader { return f.reader(s.Off, s.Filesz) }

// Offset translates an address to an offset of the file; false if the file has no content for it.
func (f *File) Offset(addr uint64) (uint64, bool) {
	for i := range f.Segments {
		s := &f.Segments[i]
		if s.Type == elf.PT_LOAD && addr-s.Vaddr < s.Filesz {
			off := s.Off + addr - s.Vaddr
			return off, off < uint64(f.size)
		}
	}
	return 0, false
}

// BytesAt reads the n bytes that the file has for an address.
func (f *File) BytesAt(addr, n uint64) ([]byte, error) {
	for i := range f.Sections {
		s := &f.Sections[i]
		if s.Type != elf.SHT_NOBITS && s.Flags&elf.SHF_ALLOC != 0 && addr-s.Addr < s.Size && n <= s.Size-(addr-s.Addr) {
			return f.Range(s.Offset+addr-s.Addr, n, maxSectionData)
		}
	}
	for i := range f.Segments {
		s := &f.Segments[i]
		if s.Type == elf.PT_LOAD && addr-s.Vaddr < s.Filesz && n <= s.Filesz-(addr-s.Vaddr) {
			return f.Range(s.Off+addr-s.Vaddr, n, maxSectionData)
		}
	}
	return nil, fmt.Errorf("%d bytes at address %#x: not in the file", n, addr)
}

// CString returns the zero-terminated string at an offset of tab, at most limit bytes of it; "" if off is
// beyond the end.
func CString(tab []byte, off uint64, limit int) string {
	if off >= uint64(len(tab)) {
		return ""
	}
	b := tab[off:]
	if len(b) > limit {
		b = b[:limit]
	}
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}
