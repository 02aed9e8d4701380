package snapshot

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"slices"
)

// stubVariables begins the names of variables of HotSpot by which its stubs are named.
const stubVariables = "_ZN12StubRoutines"

// reduceSymbols leaves out the symbols of a file that name none of the frames, unless that changes
// the result. Reduce would find them too, but tables of symbols are by far the largest that are read.
func (s *Snapshot) reduceSymbols(file int) {
	f := &s.Files[file]
	e, err := elf.NewFile(opened{File: f, index: file})
	if err != nil || e.Class != elf.ELFCLASS64 || e.ByteOrder != binary.LittleEndian {
		return
	}
	table := e.SectionByType(elf.SHT_SYMTAB)
	if table == nil || int(table.Link) >= len(e.Sections) || table.Size > maxMemory || e.Sections[table.Link].Size > maxMemory {
		return
	}
	names := e.Sections[table.Link]
	syms := make([]byte, table.Size)
	fill(syms, table.Offset, f.Pieces)
	text := make([]byte, names.Size)
	fill(text, names.Offset, f.Pieces)
	var at []uint64
	for _, p := range s.places {
		if p.inode == f.Inode {
			at = append(at, p.addr)
		}
	}
	for _, stubs := range []bool{false, true} {
		keptSyms, keptText := keepSymbols(syms, text, at, stubs)
		s.set(file, table.Offset, keptSyms)
		s.set(file, names.Offset, keptText)
		if s.replays() {
			return
		}
		s.set(file, table.Offset, syms)
		s.set(file, names.Offset, text)
	}
}

// set changes what pieces hold from a place on.
func (s *Snapshot) set(file int, at uint64, to []byte) {
	for _, p := range s.Files[file].Pieces {
		lo, hi := max(p.At, at), min(p.At+uint64(len(p.Bytes)), at+uint64(len(to)))
		if lo < hi {
			copy(p.Bytes[lo-p.At:hi-p.At], to[lo-at:hi-at])
		}
	}
}

const symbolSize = 24 // of an Elf64_Sym: name, info, other, section, value, size

// keepSymbols returns a symbol table and its names with only those symbols that are at or around some
// addresses, and, if stubs is set, those of stubs.
func keepSymbols(syms, text []byte, at []uint64, stubs bool) (keptSyms, keptText []byte) {
	value := func(i int) uint64 { return binary.LittleEndian.Uint64(syms[i*symbolSize+8:]) }
	n := len(syms) / symbolSize
	around := map[uint64]bool{} // values of symbols to be kept
	slices.Sort(at)
	at = slices.Compact(at) // a function that calls itself is on the stack very often
	for _, a := range at {
		below, above := uint64(0), ^uint64(0)
		for i := range n {
			v, size := value(i), binary.LittleEndian.Uint64(syms[i*symbolSize+16:])
			if a-v < size {
				around[v] = true
			}
			if v <= a {
				below = max(below, v)
			} else {
				above = min(above, v)
			}
		}
		around[below], around[above] = true, true
	}
	keptSyms, keptText = make([]byte, len(syms)), make([]byte, len(text))
	for i := range n {
		sym := syms[i*symbolSize : (i+1)*symbolSize]
		begin := min(int(binary.LittleEndian.Uint32(sym)), len(text))
		name := text[begin:]
		name = name[:bytes.IndexByte(name, 0)+1]
		if around[value(i)] || stubs && bytes.HasPrefix(name, []byte(stubVariables)) {
			copy(keptSyms[i*symbolSize:], sym)
			copy(keptText[begin:], name)
		}
	}
	return keptSyms, keptText
}
