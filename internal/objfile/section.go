package objfile

import (
	"debug/elf"
	"fmt"
	"io"
)

// Section is one section header.
type Section struct {
	Name         string // at most 256 bytes
	Type         elf.SectionType
	Flags        elf.SectionFlag
	Addr, Offset uint64
	Size         uint64 // bytes in the file, or in memory if Type is SHT_NOBITS
	Link, Info   uint32
	Entsize      uint64
}

// Packed reports whether the section's content is compressed.
func (s *Section) Packed() bool { return s.Flags&elf.SHF_COMPRESSED != 0 }

func (f *File) readSections(off uint64, entsize, num int, names uint32) {
	want := 40
	if f.Wide() {
		want = 64
	}
	if entsize < want || off == 0 {
		return
	}
	if num == 0 || names == uint32(elf.SHN_XINDEX) {
		// More than 65,279 sections: the first header holds the true numbers.
		b, err := f.Range(off, uint64(entsize), 1<<16)
		if err != nil {
			return
		}
		first := f.parseSection(b)
		if num == 0 {
			num = int(min(first.Size, maxSections+1))
		}
		if names == uint32(elf.SHN_XINDEX) {
			names = first.Link
		}
	}
	if num > maxSections {
		return
	}
	b, err := f.Range(off, uint64(entsize)*uint64(num), 64<<20)
	if err != nil {
		return
	}
	f.Sections = make([]Section, num)
	for i := range num {
		f.Sections[i] = f.parseSection(b[i*entsize:])
	}
	if int64(names) >= int64(num) {
		return
	}
	tab, err := f.Range(f.Sections[names].Offset, f.Sections[names].Size, maxSectionNames)
	if err != nil {
		return
	}
	for i := range num {
		f.Sections[i].Name = CString(tab, uint64(f.Order.Uint32(b[i*entsize:])), maxSectionName)
	}
}

func (f *File) parseSection(e []byte) Section {
	o := f.Order
	if f.Wide() {
		return Section{Type: elf.SectionType(o.Uint32(e[4:])), Flags: elf.SectionFlag(o.Uint64(e[8:])),
			Addr: o.Uint64(e[16:]), Offset: o.Uint64(e[24:]), Size: o.Uint64(e[32:]),
			Link: o.Uint32(e[40:]), Info: o.Uint32(e[44:]), Entsize: o.Uint64(e[56:])}
	}
	return Section{Type: elf.SectionType(o.Uint32(e[4:])), Flags: elf.SectionFlag(o.Uint32(e[8:])),
		Addr: uint64(o.Uint32(e[12:])), Offset: uint64(o.Uint32(e[16:])), Size: uint64(o.Uint32(e[20:])),
		Link: o.Uint32(e[24:]), Info: o.Uint32(e[28:]), Entsize: uint64(o.Uint32(e[36:]))}
}

// Section returns the first section with this name that has content in the file; nil if there is none.
func (f *File) Section(name string) *Section {
	for i := range f.Sections {
		if s := &f.Sections[i]; s.Name == name && s.Type != elf.SHT_NOBITS && s.Type != elf.SHT_NULL {
			return s
		}
	}
	return nil
}

// SectionOf returns the first section of a type; nil if there is none.
func (f *File) SectionOf(typ elf.SectionType) *Section {
	for i := range f.Sections {
		if s := &f.Sections[i]; s.Type == typ {
			return s
		}
	}
	return nil
}

// Linked returns the section that s refers to: a symbol table's strings, or a relocation's symbols; nil if it
// does not exist.
func (f *File) Linked(s *Section) *Section {
	if uint64(s.Link) >= uint64(len(f.Sections)) {
		return nil
	}
	return &f.Sections[s.Link]
}

// Raw reads a section's bytes without decompressing them, at most limit. s may be nil; then the error is
// ErrNoSection.
func (f *File) Raw(s *Section, limit uint64) ([]byte, error) {
	if s == nil || s.Type == elf.SHT_NOBITS {
		return nil, ErrNoSection
	}
	b, err := f.Range(s.Offset, s.Size, limit)
	if err != nil {
		return nil, fmt.Errorf("section %s: %w", s.Name, err)
	}
	return b, nil
}

// SectionReader reads a section's bytes without decompressing them; there are none if the section has no
// content in the file.
func (f *File) SectionReader(s *Section) *io.SectionReader {
	if s.Type == elf.SHT_NOBITS {
		return f.reader(0, 0)
	}
	return f.reader(s.Offset, s.Size)
}
