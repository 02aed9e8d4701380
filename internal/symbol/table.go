package symbol

import (
	"bytes"
	"cmp"
	"debug/elf"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/objfile"
)

const (
	maxSymbols  = 4 << 20 // per table; 24 bytes each
	maxAliases  = 64      // names compared for one address
	maxLookBack = 32      // entries searched backwards for an enclosing function
	symChunk    = 1 << 20
)

// entry is one code symbol. 24 bytes: a browser has a million.
type entry struct {
	addr uint64
	size uint32 // 0: up to the next symbol
	name uint32 // offset in the source's strings
	rank uint8
	src  uint8
}

// Ranks of bindings, best first.
const (
	rankGlobal = iota
	rankWeak
	rankLocal
	rankUntyped // no type: a label in assembly; after any binding
)

// strtab reads the names of one symbol table, from memory or from the file. Only a few names of a
// file are looked up.
type strtab struct {
	by  func(off uint32) string // if not nil, finds the names
	mem []byte
	r   io.ReaderAt
	off int64
	n   uint64
}

func (t *strtab) name(off uint32) string {
	if t.by != nil {
		return t.by(off)
	}
	if t.mem != nil {
		return objfile.CString(t.mem, uint64(off), maxRawName)
	}
	if uint64(off) >= t.n {
		return ""
	}
	// Names are short; only very long template names need a second read.
	for size := uint64(256); ; size = maxRawName {
		b := make([]byte, min(size, t.n-uint64(off)))
		n, err := t.r.ReadAt(b, t.off+int64(off))
		if err != nil && err != io.EOF {
			return ""
		}
		b = b[:n]
		if i := bytes.IndexByte(b, 0); i >= 0 {
			return string(b[:i])
		}
		if size == maxRawName {
			return string(b)
		}
	}
}

// table is a file's code symbols, sorted by address.
type table struct {
	budget  *Budget
	syms    []entry
	strings []strtab
}

// add reads the symbol table of type typ of m. It reports whether there was one with code symbols.
func (t *table) add(m *image, typ elf.SectionType) (bool, error) {
	sect := m.SectionOf(typ)
	if sect == nil {
		if typ == elf.SHT_DYNSYM {
			return t.addDynamic(m)
		}
		return false, nil
	}
	str := m.Linked(sect)
	if str == nil {
		return false, fmt.Errorf("section %s: string table %d does not exist", sect.Name, sect.Link)
	}
	return t.addAt(m, sect.Offset, sect.Size, str.Offset, str.Size)
}

// addAt reads size bytes of symbols at off, with names at stroff.
func (t *table) addAt(m *image, off, size, stroff, strsize uint64) (bool, error) {
	esz := m.SymbolSize()
	if off > uint64(m.Size()) || size > uint64(m.Size())-off || stroff > uint64(m.Size()) {
		return false, fmt.Errorf("symbol table at %#x+%#x: %w", off, size, io.ErrUnexpectedEOF)
	}
	strsize = min(strsize, uint64(m.Size())-stroff)
	st := strtab{r: m, off: int64(stroff), n: strsize}
	if len(t.strings) > 7 {
		return false, fmt.Errorf("symbol tables: %w", ErrTooLarge)
	}
	src := uint8(len(t.strings))
	t.strings = append(t.strings, st)
	count := min(size/esz, maxSymbols)
	const each = 32 // bytes that a symbol takes, with room to grow
	if bytes := count * each; bytes > 1<<20 && !t.budget.table(bytes) {
		return false, errNoRoom
	}
	t.syms = slices.Grow(t.syms, int(min(count, 1<<16)))
	before := len(t.syms)
	buf := make([]byte, min(count*esz, symChunk/esz*esz))
	var last span // consecutive symbols mostly lie in the same section
	for done := uint64(0); done < count; {
		b := buf[:min(uint64(len(buf)), (count-done)*esz)]
		if _, err := m.ReadAt(b, int64(off+done*esz)); err != nil && err != io.EOF {
			return len(t.syms) > before, fmt.Errorf("symbols: %w", err)
		}
		done += uint64(len(b)) / esz
		for ; len(b) > 0; b = b[esz:] {
			e, ok := m.codeSymbol(b)
			if !ok {
				continue
			}
			if e.addr-last.lo >= last.hi-last.lo {
				if last, ok = m.code(e.addr); !ok {
					last = span{}
					continue
				}
			}
			e.src = src
			t.syms = append(t.syms, e)
		}
	}
	return len(t.syms) > before, nil
}

// codeSymbol decodes one symbol and reports whether it may name code.
func (m *image) codeSymbol(b []byte) (entry, bool) {
	var e entry
	s := m.File.Symbol(b)
	if s.Section == elf.SHN_UNDEF || s.NameOff == 0 {
		return e, false
	}
	e.name, e.addr, e.size = s.NameOff, s.Value, uint32(min(s.Size, math.MaxUint32))
	switch s.Bind() {
	case elf.STB_GLOBAL, elf.STB_LOOS: // LOOS is GNU_UNIQUE
		e.rank = rankGlobal
	case elf.STB_WEAK:
		e.rank = rankWeak
	default:
		e.rank = rankLocal
	}
	switch s.Type() {
	case elf.STT_FUNC, elf.STT_GNU_IFUNC:
		if m.Machine == elf.EM_ARM {
			e.addr &^= 1 // the lowest bit marks Thumb
		}
	case elf.STT_NOTYPE:
		if e.rank == rankLocal && (m.Machine == elf.EM_AARCH64 || m.Machine == elf.EM_ARM || m.Machine == elf.EM_RISCV) {
			return e, false // mapping symbols ($x, $d) mark code or data, and name nothing
		}
		e.rank += rankUntyped
	default:
		return e, false
	}
	return e, true
}

// addDynamic reads the dynamic symbols of a file without section headers, by
// the DT_ entries that the dynamic linker uses.
func (t *table) addDynamic(m *image) (bool, error) {
	d := m.Dynamic()
	if d[elf.DT_SYMTAB] == 0 || d[elf.DT_STRTAB] == 0 {
		return false, nil
	}
	sym, ok1 := m.Offset(d[elf.DT_SYMTAB])
	str, ok2 := m.Offset(d[elf.DT_STRTAB])
	if !ok1 || !ok2 {
		return false, nil
	}
	// Only the old hash table holds the number of symbols. The string table follows the symbols in
	// the files of every known linker.
	esz := m.SymbolSize()
	var count uint64
	if b, err := m.BytesAt(d[elf.DT_HASH], 8); err == nil && d[elf.DT_HASH] != 0 {
		count = uint64(m.Order.Uint32(b[4:]))
	} else if str > sym {
		count = (str - sym) / esz
	}
	count = min(count, maxSymbols, (uint64(m.Size())-min(sym, uint64(m.Size())))/esz)
	return t.addAt(m, sym, count*esz, str, d[elf.DT_STRSZ])
}

// finish sorts the table and drops labels inside functions.
func (t *table) finish() {
	t.syms = sortEntries(t.syms)
	out := t.syms[:0]
	var end uint64 // of the functions so far
	var prev entry
	for i, e := range t.syms {
		// A label without a size inside a function, or beside a sized symbol at
		// the same address, would hide the function.
		if e.size == 0 && e.addr < end {
			continue
		}
		if i > 0 && e == prev {
			continue
		}
		prev = e
		end = max(end, e.addr+uint64(e.size))
		out = append(out, e)
	}
	t.syms = slices.Clip(out)
}

// find returns the index of the symbol that addr lies in, the first of those at its address, or -1.
// limit is the end of the code range that holds addr.
func (t *table) find(addr uint64) int {
	lo, hi := 0, len(t.syms)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if t.syms[mid].addr <= addr {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	for i, n := lo-1, 0; i >= 0 && n < maxLookBack; i, n = i-1, n+1 {
		e := &t.syms[i]
		if e.size == 0 && i == lo-1 || addr-e.addr < uint64(e.size) {
			for i > 0 && t.syms[i-1].addr == e.addr && (t.syms[i-1].size == 0 || addr-e.addr < uint64(t.syms[i-1].size)) {
				i--
			}
			return i
		}
	}
	return -1
}

// nameOf chooses among the names at the address of syms[i] that hold addr.
//
// Libraries have several names for one function: __write, __libc_write, write. The public one is
// preferred, so in this order: fewest leading underscores (a mangled name counts as none), no dot
// or dollar sign, typed before label, global before weak before local, the shortest, the first in
// alphabetical order.
func (t *table) nameOf(i int, addr uint64) string {
	best, bestName := -1, ""
	for j := i; j < len(t.syms) && j < i+maxAliases && t.syms[j].addr == t.syms[i].addr; j++ {
		e := &t.syms[j]
		if e.size != 0 && addr-e.addr >= uint64(e.size) {
			continue
		}
		name := t.strings[e.src].name(e.name)
		if name == "" {
			continue
		}
		if best < 0 || betterName(name, e.rank, bestName, t.syms[best].rank) {
			best, bestName = j, name
		}
	}
	return bestName
}

func betterName(a string, ra uint8, b string, rb uint8) bool {
	if c := cmp.Compare(underscores(a), underscores(b)); c != 0 {
		return c < 0
	}
	if ad, bd := strings.ContainsAny(a, ".$"), strings.ContainsAny(b, ".$"); ad != bd {
		return !ad
	}
	if ra != rb {
		return ra < rb
	}
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}

func underscores(s string) int {
	if mangled(s) {
		return 0
	}
	return len(s) - len(strings.TrimLeft(s, "_"))
}

func sortSpans(s []span) {
	slices.SortFunc(s, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
}
