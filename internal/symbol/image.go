package symbol

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Bounds on what an ELF file may claim. Real files stay far below them; a hostile one must not make
// candid read or allocate more.
const (
	maxSections     = 1 << 16
	maxSegments     = 1 << 10
	maxSectionNames = 4 << 20
	maxSectionData  = 512 << 20
)

var (
	// ErrNotELF means that the file is not an ELF file that can be read here.
	ErrNotELF = errors.New("not a usable ELF file")
	// ErrTooLarge means that a part of the file is larger than the bound on what is read.
	ErrTooLarge = errors.New("too large")
	errNoSect   = errors.New("no such section")
)

// section is one section header.
type section struct {
	name       string
	typ        elf.SectionType
	flags      elf.SectionFlag
	addr, off  uint64
	size       uint64
	link, info uint32
	entsize    uint64
}

// segment is one program header.
type segment struct {
	typ             elf.ProgType
	flags           elf.ProgFlag
	off, addr       uint64
	filesz, memsize uint64
}

// image is an ELF file's layout. debug/elf is not used because it reads whole tables and makes a
// string of every symbol, and because its documentation says that it is not meant for hostile
// files.
type image struct {
	r        io.ReaderAt
	size     int64
	order    binary.ByteOrder
	is64     bool
	machine  elf.Machine
	entry    uint64 // where the program starts
	sections []section
	segments []segment
	exec     []span // ranges of code, sorted by address
}

// span is the half-open range [lo, hi) of addresses of the file.
type span struct{ lo, hi uint64 }

// openImage reads the headers of the ELF file in r, which is size bytes long.
func openImage(r io.ReaderAt, size int64) (*image, error) {
	var head [64]byte
	if size < 52 {
		return nil, fmt.Errorf("%w: %d bytes", ErrNotELF, size)
	}
	if _, err := r.ReadAt(head[:min(64, size)], 0); err != nil && err != io.EOF {
		return nil, fmt.Errorf("read ELF header: %w", err)
	}
	if string(head[:4]) != elf.ELFMAG {
		return nil, fmt.Errorf("%w: wrong magic", ErrNotELF)
	}
	m := &image{r: r, size: size}
	switch elf.Data(head[elf.EI_DATA]) {
	case elf.ELFDATA2LSB:
		m.order = binary.LittleEndian
	case elf.ELFDATA2MSB:
		m.order = binary.BigEndian
	default:
		return nil, fmt.Errorf("%w: unknown byte order %d", ErrNotELF, head[elf.EI_DATA])
	}
	o := m.order
	m.machine = elf.Machine(o.Uint16(head[18:]))
	var phoff, shoff uint64
	var counts []byte // e_phentsize, e_phnum, e_shentsize, e_shnum, e_shstrndx
	switch elf.Class(head[elf.EI_CLASS]) {
	case elf.ELFCLASS64:
		m.is64 = true
		m.entry, phoff, shoff, counts = o.Uint64(head[24:]), o.Uint64(head[32:]), o.Uint64(head[40:]), head[54:64]
	case elf.ELFCLASS32:
		m.entry, phoff, shoff, counts = uint64(o.Uint32(head[24:])), uint64(o.Uint32(head[28:])), uint64(o.Uint32(head[32:])), head[42:52]
	default:
		return nil, fmt.Errorf("%w: unknown class %d", ErrNotELF, head[elf.EI_CLASS])
	}
	phentsize, phnum := int(o.Uint16(counts)), int(o.Uint16(counts[2:]))
	shentsize, shnum, shstrndx := int(o.Uint16(counts[4:])), int(o.Uint16(counts[6:])), uint32(o.Uint16(counts[8:]))
	m.readSegments(phoff, phentsize, phnum)
	m.readSections(shoff, shentsize, shnum, shstrndx)
	m.findCode()
	return m, nil
}

// readAt reads n bytes at off if the file has them and n is at most limit.
func (m *image) readAt(off, n, limit uint64) ([]byte, error) {
	if n > limit {
		return nil, fmt.Errorf("%d bytes at %#x: %w", n, off, ErrTooLarge)
	}
	if off > uint64(m.size) || n > uint64(m.size)-off {
		return nil, fmt.Errorf("%d bytes at %#x: %w", n, off, io.ErrUnexpectedEOF)
	}
	b := make([]byte, n)
	if _, err := m.r.ReadAt(b, int64(off)); err != nil && err != io.EOF {
		return nil, err
	}
	return b, nil
}

func (m *image) readSegments(off uint64, entsize, num int) {
	want := 32
	if m.is64 {
		want = 56
	}
	if entsize < want || num == 0 || num > maxSegments {
		return
	}
	b, err := m.readAt(off, uint64(entsize*num), 1<<22)
	if err != nil {
		return // no segments: sections may still be enough
	}
	o := m.order
	for i := range num {
		e := b[i*entsize:]
		s := segment{typ: elf.ProgType(o.Uint32(e))}
		if m.is64 {
			s.flags, s.off, s.addr = elf.ProgFlag(o.Uint32(e[4:])), o.Uint64(e[8:]), o.Uint64(e[16:])
			s.filesz, s.memsize = o.Uint64(e[32:]), o.Uint64(e[40:])
		} else {
			s.off, s.addr = uint64(o.Uint32(e[4:])), uint64(o.Uint32(e[8:]))
			s.filesz, s.memsize, s.flags = uint64(o.Uint32(e[16:])), uint64(o.Uint32(e[20:])), elf.ProgFlag(o.Uint32(e[24:]))
		}
		m.segments = append(m.segments, s)
	}
}

func (m *image) readSections(off uint64, entsize, num int, names uint32) {
	want := 40
	if m.is64 {
		want = 64
	}
	if entsize < want || off == 0 {
		return
	}
	if num == 0 || names == uint32(elf.SHN_XINDEX) {
		// More than 65,279 sections: the first header holds the true numbers.
		b, err := m.readAt(off, uint64(entsize), 1<<16)
		if err != nil {
			return
		}
		first := m.parseSection(b)
		if num == 0 {
			num = int(min(first.size, maxSections+1))
		}
		if names == uint32(elf.SHN_XINDEX) {
			names = first.link
		}
	}
	if num > maxSections {
		return
	}
	b, err := m.readAt(off, uint64(entsize)*uint64(num), 64<<20)
	if err != nil {
		return
	}
	nameOff := make([]uint32, num)
	m.sections = make([]section, num)
	for i := range num {
		e := b[i*entsize:]
		nameOff[i] = m.order.Uint32(e)
		m.sections[i] = m.parseSection(e)
	}
	if int64(names) >= int64(num) {
		return
	}
	tab, err := m.readAt(m.sections[names].off, m.sections[names].size, maxSectionNames)
	if err != nil {
		return
	}
	for i, n := range nameOff {
		m.sections[i].name = cString(tab, uint64(n), 256)
	}
}

func (m *image) parseSection(e []byte) section {
	o := m.order
	if m.is64 {
		return section{typ: elf.SectionType(o.Uint32(e[4:])), flags: elf.SectionFlag(o.Uint64(e[8:])),
			addr: o.Uint64(e[16:]), off: o.Uint64(e[24:]), size: o.Uint64(e[32:]),
			link: o.Uint32(e[40:]), info: o.Uint32(e[44:]), entsize: o.Uint64(e[56:])}
	}
	return section{typ: elf.SectionType(o.Uint32(e[4:])), flags: elf.SectionFlag(o.Uint32(e[8:])),
		addr: uint64(o.Uint32(e[12:])), off: uint64(o.Uint32(e[16:])), size: uint64(o.Uint32(e[20:])),
		link: o.Uint32(e[24:]), info: o.Uint32(e[28:]), entsize: uint64(o.Uint32(e[36:]))}
}

// findCode collects the ranges of code. Sections are the most precise; a file without section
// headers still has its segments.
func (m *image) findCode() {
	for _, s := range m.sections {
		if s.flags&elf.SHF_EXECINSTR != 0 && s.size > 0 && s.addr+s.size > s.addr {
			m.exec = append(m.exec, span{s.addr, s.addr + s.size})
		}
	}
	if len(m.exec) == 0 {
		for _, s := range m.segments {
			if s.typ == elf.PT_LOAD && s.flags&elf.PF_X != 0 && s.addr+s.memsize > s.addr {
				m.exec = append(m.exec, span{s.addr, s.addr + s.memsize})
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

// find returns the first section with this name that has content.
func (m *image) find(name string) *section {
	for i := range m.sections {
		if s := &m.sections[i]; s.name == name && s.typ != elf.SHT_NOBITS && s.typ != elf.SHT_NULL {
			return s
		}
	}
	return nil
}

// raw reads a section's bytes without decompressing them.
func (m *image) raw(s *section, limit uint64) ([]byte, error) {
	if s == nil || s.typ == elf.SHT_NOBITS {
		return nil, errNoSect
	}
	b, err := m.readAt(s.off, s.size, limit)
	if err != nil {
		return nil, fmt.Errorf("section %s: %w", s.name, err)
	}
	return b, nil
}

// bytesAtAddr reads n bytes at the address addr from the file content.
func (m *image) bytesAtAddr(addr, n uint64) ([]byte, error) {
	for i := range m.sections {
		s := &m.sections[i]
		if s.typ != elf.SHT_NOBITS && s.flags&elf.SHF_ALLOC != 0 && addr-s.addr < s.size && n <= s.size-(addr-s.addr) {
			return m.readAt(s.off+addr-s.addr, n, maxSectionData)
		}
	}
	for i := range m.segments {
		s := &m.segments[i]
		if s.typ == elf.PT_LOAD && addr-s.addr < s.filesz && n <= s.filesz-(addr-s.addr) {
			return m.readAt(s.off+addr-s.addr, n, maxSectionData)
		}
	}
	return nil, fmt.Errorf("%d bytes at address %#x: not in the file", n, addr)
}

// buildID returns the file's build-id as lower-case hex, "" if it has none.
func (m *image) buildID() string {
	for i := range m.sections {
		s := &m.sections[i]
		if s.typ != elf.SHT_NOTE || s.size > 1<<16 {
			continue
		}
		if b, err := m.raw(s, 1<<16); err == nil {
			if id := m.noteBuildID(b); id != "" {
				return id
			}
		}
	}
	for i := range m.segments {
		s := &m.segments[i]
		if s.typ != elf.PT_NOTE || s.filesz > 1<<16 {
			continue
		}
		if b, err := m.readAt(s.off, s.filesz, 1<<16); err == nil {
			if id := m.noteBuildID(b); id != "" {
				return id
			}
		}
	}
	return ""
}

func (m *image) noteBuildID(b []byte) string {
	const ntGNUBuildID = 3
	for len(b) >= 12 {
		namesz, descsz := uint64(m.order.Uint32(b)), uint64(m.order.Uint32(b[4:]))
		typ := m.order.Uint32(b[8:])
		b = b[12:]
		nameEnd, descLen := (namesz+3)&^3, (descsz+3)&^3
		if nameEnd+descsz > uint64(len(b)) {
			return ""
		}
		if typ == ntGNUBuildID && string(b[:namesz]) == "GNU\x00" && descsz >= 2 && descsz <= 64 {
			return fmt.Sprintf("%x", b[nameEnd:nameEnd+descsz])
		}
		b = b[min(nameEnd+descLen, uint64(len(b))):]
	}
	return ""
}

// cString returns the zero-terminated string at off, at most limit bytes of it.
func cString(tab []byte, off uint64, limit int) string {
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
