package golang

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/objfile"
)

// ErrNoTable means that the file is not a Go program, or one whose table is not understood.
var ErrNoTable = errors.New("no table of Go functions")

// Table is the table of one file with what its functions mean for walking stacks. It may be used by
// several goroutines. It reads the file when a new address is looked up, so the file must stay
// open.
type Table struct {
	*Pclntab
	arch cpu.Arch
	text uint64 // base of function offsets, as it was found; 0 if the table holds addresses
	// windows: the file is an image of Windows, whose own unwind tables are better for some functions.
	windows bool
	at      uint64 // where the table is in such an image

	mu    sync.Mutex
	rules map[Rule]*Rule
}

// Bounds.
const (
	maxRules  = 1 << 14
	maxSearch = 1 << 30 // bytes of a file that are searched for the table
)

// Open finds and opens the table of a file. r must stay readable as long as the
// Table is used. The error wraps ErrNoTable for files that have none.
func Open(f *objfile.File) (*Table, error) {
	arch, err := f.Arch()
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrNoTable, err)
	}
	off, size, ok := place(f)
	if !ok {
		return nil, ErrNoTable
	}
	t, err := read(io.NewSectionReader(f, off, size), size, arch)
	if err != nil {
		return nil, err
	}
	if err := t.locate(loaded{f, f.Segments}); err != nil {
		return nil, err
	}
	return t, nil
}

// loaded is a file, and the parts of it that are loaded into memory.
type loaded struct {
	io.ReaderAt
	parts []objfile.Segment
}

// place finds the table in a file: by its section, or else by its first bytes, for files whose
// section headers were removed and for Go programs whose linker has put it into another section
// (lld does).
func place(f *objfile.File) (off, size int64, ok bool) {
	marked := len(f.Sections) == 0
	for i := range f.Sections {
		s := &f.Sections[i]
		marked = marked || strings.HasPrefix(s.Name, ".go.") || strings.HasPrefix(s.Name, ".note.go.")
		if (s.Name == ".gopclntab" || s.Name == ".data.rel.ro.gopclntab") && s.Type != elf.SHT_NOBITS {
			return int64(s.Offset), int64(s.Size), !s.Packed()
		}
	}
	if !marked {
		return 0, 0, false
	}
	return loaded{f, f.Segments}.place()
}

// place finds the table by its first bytes.
func (f loaded) place() (off, size int64, ok bool) {
	var buf [1 << 16]byte
	searched := uint64(0)
	for i := range f.parts {
		p := &f.parts[i]
		if p.Type != elf.PT_LOAD {
			continue
		}
		// The linker aligns the table to 32 bytes, at least.
		for at := uint64(0); at < p.Filesz && searched < maxSearch; at += uint64(len(buf)) {
			n, _ := f.ReadAt(buf[:min(uint64(len(buf)), p.Filesz-at)], int64(p.Off+at))
			searched += uint64(len(buf))
			for i := 0; i+8 <= n; i += 8 {
				if buf[i+7] == 8 && headerOf(buf[i:], binary.LittleEndian) != nil {
					off, size = int64(p.Off+at)+int64(i), int64(p.Filesz-at)-int64(i)
					if _, err := read(io.NewSectionReader(f, off, size), size, cpu.AMD64); err == nil {
						return off, size, true
					}
				}
			}
		}
	}
	return 0, 0, false
}

// read reads the header of a table of a 64-bit program.
func read(r io.ReaderAt, size int64, arch cpu.Arch) (*Table, error) {
	p, err := ReadPclntab(r, size, binary.LittleEndian)
	if err != nil {
		return nil, err
	}
	if p.ptr != 8 {
		return nil, fmt.Errorf("%w: it has pointers of %d bytes", ErrNoTable, p.ptr)
	}
	return &Table{Pclntab: p, arch: arch, text: p.text, rules: map[Rule]*Rule{}}, nil
}

// Text returns the base of function offsets, 0 if the table holds addresses (up to Go 1.17).
func (t *Table) Text() uint64 { return t.text }

// Covers reports whether addr lies in code that the table describes.
func (t *Table) Covers(addr uint64) bool {
	return addr >= t.text && addr-t.text < t.end && addr-t.text >= t.first
}
