package symbol

import (
	"debug/elf"
	"io"
)

// byAddr reads an image by address.
type byAddr struct{ m *image }

// ReadAt implements io.ReaderAt.
func (r byAddr) ReadAt(p []byte, addr int64) (int, error) {
	for i := range r.m.Segments {
		s := &r.m.Segments[i]
		if s.Type == elf.PT_LOAD && uint64(addr)-s.Vaddr < s.Filesz {
			n := min(uint64(len(p)), s.Filesz-(uint64(addr)-s.Vaddr))
			if n, err := r.m.ReadAt(p[:n], int64(s.Off+uint64(addr)-s.Vaddr)); err != nil && err != io.EOF || n < len(p) {
				return n, io.ErrUnexpectedEOF
			}
			return len(p), nil
		}
	}
	return 0, io.EOF
}

// Bounds on the search for what points at a program's tables.
const (
	maxModuleData  = 64 << 20 // bytes of data that are searched
	maxRelocations = 64 << 20 // bytes of relocations
)

// findInlining finds the tables of inlined functions of the program whose table of functions is at
// an address. The structure that points at them begins with a pointer to the table of functions. In
// a position-independent program the pointers may be in relocations only.
func (t *goTable) findInlining(m *image, table uint64) {
	if table == 0 || !m.Wide() {
		return
	}
	mem := byAddr{m}
	word := func(addr uint64) (uint64, bool) {
		var b [8]byte
		n, _ := mem.ReadAt(b[:], int64(addr))
		return m.Order.Uint64(b[:]), n == len(b)
	}
	try := func(at uint64) bool {
		t.inlining = t.tab.FindInlining(mem, at, word)
		return t.inlining != nil
	}
	m.pointersTo(table, func(at uint64) bool { return try(at) })
	if t.inlining != nil {
		return
	}
	relocated, at := m.relative(table)
	if relocated == nil {
		return
	}
	word = func(addr uint64) (uint64, bool) {
		v, ok := relocated[addr]
		return v, ok
	}
	for _, a := range at {
		if try(a) {
			return
		}
	}
}

// pointersTo calls found with the addresses of writable data at which there is a pointer to addr,
// until it returns true.
func (m *image) pointersTo(addr uint64, found func(at uint64) bool) {
	left := uint64(maxModuleData)
	for i := range m.Sections {
		s := &m.Sections[i]
		if s.Type != elf.SHT_PROGBITS || s.Flags&(elf.SHF_ALLOC|elf.SHF_WRITE) != elf.SHF_ALLOC|elf.SHF_WRITE || s.Size > left {
			continue
		}
		left -= s.Size
		b, err := m.Raw(s, maxModuleData)
		if err != nil {
			continue
		}
		for at := 0; at+8 <= len(b); at += 8 {
			if m.Order.Uint64(b[at:]) == addr && found(s.Addr+uint64(at)) {
				return
			}
		}
	}
}

// relative returns the words behind those that the loader sets to addr, by their addresses, and
// which those are.
func (m *image) relative(addr uint64) (words map[uint64]uint64, at []uint64) {
	s := m.Section(".rela.dyn")
	if s == nil || !m.Wide() {
		return nil, nil
	}
	b, err := m.Raw(s, maxRelocations)
	if err != nil {
		return nil, nil
	}
	const size, most, behind = 24, 16, 1 << 10
	each := func(do func(where, value uint64)) {
		for b := b; len(b) >= size; b = b[size:] {
			typ := uint32(m.Order.Uint64(b[8:]))
			if m.Machine == elf.EM_X86_64 && typ == uint32(elf.R_X86_64_RELATIVE) || m.Machine == elf.EM_AARCH64 && typ == uint32(elf.R_AARCH64_RELATIVE) {
				do(m.Order.Uint64(b), m.Order.Uint64(b[16:]))
			}
		}
	}
	each(func(where, value uint64) {
		if value == addr && len(at) < most {
			at = append(at, where)
		}
	})
	words = map[uint64]uint64{}
	each(func(where, value uint64) {
		for _, a := range at {
			if where-a < behind {
				words[where] = value
			}
		}
	})
	return words, at
}
