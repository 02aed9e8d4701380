package objfile

import (
	"bytes"
	"debug/elf"
	"io"
)

// Exports finds exported symbols by the file's own hash table, a few small reads each, so that a file with
// 100,000 symbols costs no more than one with 10. It may be used by several goroutines if the File may be.
type Exports struct {
	f       *File
	hash    io.ReaderAt // .gnu.hash, or .hash if old is set
	old     bool
	symbols io.ReaderAt
	strings io.ReaderAt
	count   uint64 // entries of symbols
}

// maxChain bounds the symbols that are compared for one name.
const maxChain = 4096

// Exports finds the tables; look-ups in a file without any find nothing.
func (f *File) Exports() *Exports {
	t := &Exports{f: f}
	for i := range f.Sections {
		s := &f.Sections[i]
		switch {
		case s.Type == elf.SHT_DYNSYM && t.symbols == nil:
			str := f.Linked(s)
			if str == nil {
				return t
			}
			t.symbols, t.strings = f.SectionReader(s), f.SectionReader(str)
			t.count = s.Size / f.SymbolSize()
		case s.Type == elf.SHT_GNU_HASH:
			t.hash, t.old = f.SectionReader(s), false
		case s.Type == elf.SHT_HASH && t.hash == nil:
			t.hash, t.old = f.SectionReader(s), true
		}
	}
	return t
}

// Lookup returns the address of a symbol that the file defines and exports.
func (t *Exports) Lookup(name string) (uint64, bool) {
	if t.hash == nil || t.symbols == nil || t.strings == nil {
		return 0, false
	}
	if t.old {
		return t.lookupOld(name)
	}
	return t.lookupGNU(name)
}

// lookupGNU uses DT_GNU_HASH: a Bloom filter, buckets, and runs of hashes whose
// lowest bit ends them.
func (t *Exports) lookupGNU(name string) (uint64, bool) {
	var head [16]byte
	if !readAt(t.hash, head[:], 0) {
		return 0, false
	}
	buckets, first := uint64(t.f.Order.Uint32(head[0:])), uint64(t.f.Order.Uint32(head[4:]))
	bloom, shift := uint64(t.f.Order.Uint32(head[8:])), t.f.Order.Uint32(head[12:])
	if buckets == 0 || bloom == 0 {
		return 0, false
	}
	h := uint32(5381)
	for i := range len(name) {
		h = h*33 + uint32(name[i])
	}
	word := uint64(4)
	if t.f.Wide() {
		word = 8
	}
	var b [8]byte
	if !readAt(t.hash, b[:word], 16+uint64(h)/(word*8)%bloom*word) {
		return 0, false
	}
	bits := uint64(t.f.Order.Uint32(b[:]))
	if word == 8 {
		bits = t.f.Order.Uint64(b[:])
	}
	if mask := uint64(1)<<(uint64(h)%(word*8)) | uint64(1)<<(uint64(h>>(shift&31))%(word*8)); bits&mask != mask {
		return 0, false
	}
	start := 16 + bloom*word
	i, ok := t.u32(t.hash, start+uint64(h)%buckets*4)
	if !ok || uint64(i) < first {
		return 0, false
	}
	chain := start + buckets*4
	for n := uint64(i); n < uint64(i)+maxChain; n++ {
		v, ok := t.u32(t.hash, chain+(n-first)*4)
		if !ok {
			return 0, false
		}
		if v|1 == h|1 {
			if addr, ok := t.symbol(n, name); ok {
				return addr, true
			}
		}
		if v&1 != 0 {
			return 0, false
		}
	}
	return 0, false
}

// lookupOld uses DT_HASH: buckets and linked lists.
func (t *Exports) lookupOld(name string) (uint64, bool) {
	buckets, ok := t.u32(t.hash, 0)
	if !ok || buckets == 0 {
		return 0, false
	}
	var h uint32
	for i := range len(name) {
		h = h<<4 + uint32(name[i])
		h ^= h >> 24 & 0xf0
	}
	h &= 0x0fffffff
	i, ok := t.u32(t.hash, 8+uint64(h%buckets)*4)
	for n := 0; ok && i != 0 && n < maxChain; n++ {
		if addr, ok := t.symbol(uint64(i), name); ok {
			return addr, true
		}
		i, ok = t.u32(t.hash, 8+(uint64(buckets)+uint64(i))*4)
	}
	return 0, false
}

// symbol returns the address of symbol n if it has this name and is defined.
func (t *Exports) symbol(n uint64, name string) (uint64, bool) {
	if n >= t.count {
		return 0, false
	}
	var b [elf.Sym64Size]byte
	size := t.f.SymbolSize()
	if !readAt(t.symbols, b[:size], n*size) {
		return 0, false
	}
	s := t.f.Symbol(b[:size])
	if s.Section == elf.SHN_UNDEF {
		return 0, false
	}
	got := make([]byte, len(name)+1)
	if !readAt(t.strings, got, uint64(s.NameOff)) {
		return 0, false
	}
	return s.Value, bytes.Equal(got[:len(name)], []byte(name)) && got[len(name)] == 0
}

func (t *Exports) u32(r io.ReaderAt, off uint64) (uint32, bool) {
	var b [4]byte
	if !readAt(r, b[:], off) {
		return 0, false
	}
	return t.f.Order.Uint32(b[:]), true
}

func readAt(r io.ReaderAt, p []byte, off uint64) bool {
	if off > 1<<62 {
		return false
	}
	n, _ := r.ReadAt(p, int64(off))
	return n == len(p)
}
