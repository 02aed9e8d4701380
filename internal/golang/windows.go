package golang

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/objfile"
	"github.com/candid-profiler/candid/internal/pe"
)

// OpenPE finds and opens the table of an image of Windows; addresses are relative to the image's
// start. The error wraps ErrNoTable for files that have none, and for programs of Go 1.17 and before.
func OpenPE(m *pe.Image) (*Table, error) {
	if m.Machine != pe.MachineAMD64 || !MadeByGo(m) {
		return nil, ErrNoTable
	}
	f := loaded{byRVA{m}, partsOf(m)}
	off, size, ok := f.place()
	if !ok {
		return nil, ErrNoTable
	}
	t, err := read(io.NewSectionReader(f, off, size), size, cpu.AMD64)
	if err != nil {
		return nil, err
	}
	if !t.layout.offsets {
		return nil, fmt.Errorf("%w: it was made by Go 1.17 or before", ErrNoTable)
	}
	t.windows, t.at = true, uint64(off)
	if t.text >= m.Base { // as the linker has placed it
		t.text -= m.Base
	}
	if err := t.locate(f); err != nil {
		return nil, err
	}
	return t, nil
}

// marks are put by Go's linker at the start of the code and of the data (cmd/go/internal/buildid,
// debug/buildinfo).
var marks = [][]byte{[]byte("\xff Go build ID: "), []byte("\xff Go buildinf:")}

// MadeByGo reports whether an image was linked by Go, or holds what Go's compiler made.
func MadeByGo(m *pe.Image) bool {
	var b [4096]byte
	for i := range m.Sections {
		s := &m.Sections[i]
		n := min(len(b), int(min(s.Size, s.Raw)))
		if n == 0 || !m.ReadRVA(b[:n], s.RVA) {
			continue
		}
		for _, mark := range marks {
			if bytes.Contains(b[:n], mark) {
				return true
			}
		}
	}
	return false
}

// FindInliningPE is FindInlining for the image that the table was found in.
func (t *Table) FindInliningPE(m *pe.Image) *Inlining {
	mem := byRVA{m}
	word := func(addr uint64) (uint64, bool) {
		var b [8]byte
		if n, _ := mem.ReadAt(b[:], int64(addr)); n < len(b) {
			return 0, false
		}
		v := binary.LittleEndian.Uint64(b[:])
		return v - m.Base, v > m.Base && v-m.Base <= uint64(m.SizeOfImage)
	}
	pointer := binary.LittleEndian.AppendUint64(nil, m.Base+t.at)
	buf := make([]byte, 1<<16)
	searched := 0
	for _, p := range partsOf(m) {
		if p.Flags&elf.PF_X != 0 {
			continue
		}
		for at := uint64(0); at < p.Filesz && searched < maxModuleData; at += uint64(len(buf)) {
			n, _ := mem.ReadAt(buf[:min(uint64(len(buf)), p.Filesz-at)], int64(p.Vaddr+at))
			searched += n
			for i := 0; i+8 <= n; i += 8 {
				if bytes.Equal(buf[i:i+8], pointer) {
					if in := t.FindInlining(mem, p.Vaddr+at+uint64(i), word); in != nil {
						return in
					}
				}
			}
		}
	}
	return nil
}

// maxModuleData is how many bytes of data are searched for what points at the table.
const maxModuleData = 64 << 20

// byRVA reads an image by addresses relative to its start.
type byRVA struct{ *pe.Image }

// ReadAt implements io.ReaderAt within a section.
func (r byRVA) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= 1<<32 {
		return 0, io.EOF
	}
	s := r.Section(uint32(off))
	if s == nil {
		return 0, io.EOF
	}
	n := int(min(uint64(len(p)), uint64(s.RVA)+uint64(s.Size)-uint64(off)))
	if !r.ReadRVA(p[:n], uint32(off)) {
		return 0, io.ErrUnexpectedEOF
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// partsOf returns the sections of an image as the parts that byRVA reads.
func partsOf(m *pe.Image) (parts []objfile.Segment) {
	for i := range m.Sections {
		s := &m.Sections[i]
		size := uint64(min(s.Size, s.Raw))
		if m.Loaded() {
			size = uint64(s.Size)
		}
		p := objfile.Segment{Type: elf.PT_LOAD, Off: uint64(s.RVA), Vaddr: uint64(s.RVA), Filesz: size, Memsz: uint64(s.Size)}
		if s.Executable() {
			p.Flags = elf.PF_X
		}
		parts = append(parts, p)
	}
	return parts
}
