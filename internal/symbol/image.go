package symbol

import (
	"debug/elf"
	"io"

	"github.com/candid-profiler/candid/internal/objfile"
)

var (
	// ErrNotELF means that the file is not an ELF file that can be read here.
	ErrNotELF = objfile.ErrNotELF
	// ErrTooLarge means that a part of the file is larger than the bound on what is read.
	ErrTooLarge = objfile.ErrTooLarge
)

// image is an ELF file's layout with the ranges of its code.
type image struct {
	*objfile.File
	exec []span // sorted by address
}

// span is the half-open range [lo, hi) of addresses of the file.
type span struct{ lo, hi uint64 }

// openImage reads the headers of the ELF file in r, which is size bytes long.
func openImage(r io.ReaderAt, size int64) (*image, error) {
	f, err := objfile.OpenSize(r, size)
	if err != nil {
		return nil, err
	}
	m := &image{File: f}
	m.findCode()
	return m, nil
}

// findCode collects the ranges of code. Sections are the most precise; a file without section
// headers still has its segments.
func (m *image) findCode() {
	for i := range m.Sections {
		s := &m.Sections[i]
		if s.Flags&elf.SHF_EXECINSTR != 0 && s.Size > 0 && s.Addr+s.Size > s.Addr {
			m.exec = append(m.exec, span{s.Addr, s.Addr + s.Size})
		}
	}
	if len(m.exec) == 0 {
		for _, s := range m.Segments {
			if s.Type == elf.PT_LOAD && s.Flags&elf.PF_X != 0 && s.Vaddr+s.Memsz > s.Vaddr {
				m.exec = append(m.exec, span{s.Vaddr, s.Vaddr + s.Memsz})
			}
		}
	}
	sortSpans(m.exec)
}

// code returns the code range that holds addr.
func (m *image) code(addr uint64) (span, bool) {
	lo, hi := 0, len(m.exec)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if m.exec[mid].lo <= addr {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 || addr >= m.exec[lo-1].hi {
		return span{}, false
	}
	return m.exec[lo-1], true
}
