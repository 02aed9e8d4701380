package golang

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"sync"

	"github.com/candid-profiler/candid/internal/cpu"
)

// ErrNoTable: the file is no Go program, or one whose table is not understood.
var ErrNoTable = errors.New("no table of Go functions")

// Table is the table of one file. It may be used by several goroutines. It reads
// the file when it is asked for an address that is new to it, so the file must
// stay open.
type Table struct {
	r      io.ReaderAt // of the table: offset 0 is its header
	off    int64       // of the table in the file
	size   int64       // up to its end, or that of what it lies in
	layout *layout
	ptr    int64 // size of a pointer
	step   uint64
	arch   cpu.Arch
	text   uint64 // what functions are counted from; 0 where they have addresses
	end    uint64 // just after the last function
	funcs  []byte // the index: pairs of where a function starts and where its record is
	n      int

	names, pcs, records int64 // offsets of the parts

	mu    sync.Mutex
	rules map[Rule]*Rule
}

// layout is one version of the format.
type layout struct {
	magic uint32
	// words are the header's words, in pointers after the first 8 bytes. -1: the
	// part's offsets are from the table's start.
	text, names, pcs, records int8
	index                     int8 // where the index starts, if not with the records
	offsets                   bool // functions are given by 4-byte offsets from text, not by pointers
	flag                      int8 // of the flags in a record, behind its first field; 0: there are none
}

// layouts are the versions of the format, by internal/abi's PCLnTabMagic.
var layouts = []layout{
	{magic: 0xfffffffb, text: -1, names: -1, pcs: -1, records: -1, index: 1},            // Go 1.2 to 1.15
	{magic: 0xfffffffa, text: -1, names: 2, pcs: 5, records: 6, index: -1, flag: 33},    // Go 1.16 and 1.17
	{magic: 0xfffffff0, text: 2, names: 3, pcs: 6, records: 7, offsets: true, flag: 33}, // Go 1.18 and 1.19
	{magic: 0xfffffff1, text: 2, names: 3, pcs: 6, records: 7, offsets: true, flag: 37}, // since Go 1.20
}

// Bounds: the largest Go programs known have some 500,000 functions and a table
// of 200 MiB.
const (
	maxFuncs  = 1 << 22
	maxRules  = 1 << 14
	maxSearch = 1 << 30 // bytes of a file that are searched for the table
)

// Open finds and opens the table of a file. r must stay readable as long as the
// Table is used. The error wraps ErrNoTable for files that have none.
func Open(e *elf.File, r io.ReaderAt) (*Table, error) {
	var arch cpu.Arch
	switch {
	case e.Class != elf.ELFCLASS64 || e.Data != elf.ELFDATA2LSB:
		return nil, fmt.Errorf("%w: a %v %v file", ErrNoTable, e.Class, e.Data)
	case e.Machine == elf.EM_X86_64:
		arch = cpu.AMD64
	case e.Machine == elf.EM_AARCH64:
		arch = cpu.ARM64
	default:
		return nil, fmt.Errorf("%w: a file for %v", ErrNoTable, e.Machine)
	}
	off, size, ok := place(e, r)
	if !ok {
		return nil, ErrNoTable
	}
	t, err := read(io.NewSectionReader(r, off, size), size, arch)
	if err != nil {
		return nil, err
	}
	t.off = off
	if err := t.locate(e, r); err != nil {
		return nil, err
	}
	return t, nil
}

// place finds the table in a file: by its section, else by its first bytes, in
// files whose section headers were cut off and in Go programs whose linker has put
// it into another section (lld does).
func place(e *elf.File, r io.ReaderAt) (off, size int64, ok bool) {
	marked := len(e.Sections) == 0
	for _, s := range e.Sections {
		marked = marked || strings.HasPrefix(s.Name, ".go.") || strings.HasPrefix(s.Name, ".note.go.")
		if (s.Name == ".gopclntab" || s.Name == ".data.rel.ro.gopclntab") && s.Type != elf.SHT_NOBITS {
			return int64(s.Offset), int64(s.FileSize), s.Flags&elf.SHF_COMPRESSED == 0
		}
	}
	if !marked {
		return 0, 0, false
	}
	var buf [1 << 16]byte
	searched := uint64(0)
	for _, p := range e.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		// The linker aligns the table to 32 bytes, at least.
		for at := uint64(0); at < p.Filesz && searched < maxSearch; at += uint64(len(buf)) {
			n, _ := r.ReadAt(buf[:min(uint64(len(buf)), p.Filesz-at)], int64(p.Off+at))
			searched += uint64(len(buf))
			for i := 0; i+8 <= n; i += 8 {
				if header(buf[i:]) != nil {
					off, size = int64(p.Off+at)+int64(i), int64(p.Filesz-at)-int64(i)
					if _, err := read(io.NewSectionReader(r, off, size), size, cpu.AMD64); err == nil {
						return off, size, true
					}
				}
			}
		}
	}
	return 0, 0, false
}

// header recognises the first 8 bytes of a table.
func header(b []byte) *layout {
	magic := binary.LittleEndian.Uint32(b)
	if magic < 0xfffffff0 || b[4] != 0 || b[5] != 0 || (b[6] != 1 && b[6] != 4) || b[7] != 8 {
		return nil
	}
	for i := range layouts {
		if layouts[i].magic == magic {
			return &layouts[i]
		}
	}
	return nil
}

// read reads a table's header and index.
func read(r io.ReaderAt, size int64, arch cpu.Arch) (*Table, error) {
	var b [8 + 8*8]byte
	if _, err := r.ReadAt(b[:], 0); err != nil {
		return nil, fmt.Errorf("read the header of the table of Go functions: %w: %w", ErrNoTable, err)
	}
	l := header(b[:])
	if l == nil {
		return nil, fmt.Errorf("%w: it starts with % x", ErrNoTable, b[:8])
	}
	t := &Table{r: r, size: size, layout: l, ptr: int64(b[7]), step: uint64(b[6]), arch: arch, rules: map[Rule]*Rule{}}
	word := func(i int8) int64 {
		if i < 0 {
			return 0
		}
		v := binary.LittleEndian.Uint64(b[8+8*int(i):])
		if v > uint64(size) {
			return size // nothing is there
		}
		return int64(v)
	}
	t.names, t.pcs, t.records = word(l.names), word(l.pcs), word(l.records)
	if l.text >= 0 {
		t.text = binary.LittleEndian.Uint64(b[8+8*int(l.text):])
	}
	n := binary.LittleEndian.Uint64(b[8:])
	index := t.records
	if l.index > 0 {
		index = 8 + 8*int64(l.index)
	}
	entry := t.entrySize()
	if n == 0 || n > maxFuncs || index+int64(n)*2*entry+entry > size {
		return nil, fmt.Errorf("%w: it is said to have %d functions", ErrNoTable, n)
	}
	t.n = int(n)
	t.funcs = make([]byte, int64(n)*2*entry+entry)
	if _, err := r.ReadAt(t.funcs, index); err != nil {
		return nil, fmt.Errorf("read the table of %d Go functions: %w: %w", n, ErrNoTable, err)
	}
	t.end = t.start(t.n)
	if t.start(0) >= t.end {
		return nil, fmt.Errorf("%w: its functions end before they start", ErrNoTable)
	}
	return t, nil
}

// entrySize is that of one of a pair in the index.
func (t *Table) entrySize() int64 {
	if t.layout.offsets {
		return 4
	}
	return t.ptr
}

func (t *Table) number(b []byte) uint64 {
	if t.layout.offsets {
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

// start is where function i starts, counted from the text's start; that of n is
// the end of the last one.
func (t *Table) start(i int) uint64 { return t.number(t.funcs[int64(i)*2*t.entrySize():]) }

// record is where the record of function i lies in the table.
func (t *Table) record(i int) int64 {
	off := t.number(t.funcs[int64(i)*2*t.entrySize()+t.entrySize():])
	if off > uint64(t.size) {
		return t.size
	}
	return t.records + int64(off)
}

// Place is where the table lies in the file. Where it has no section of its own,
// size is what is left of the segment that it lies in.
func (t *Table) Place() (offset, size int64) { return t.off, t.size }

// Text is the address that functions are counted from, 0 if the table gives them
// by their addresses (up to Go 1.17).
func (t *Table) Text() uint64 { return t.text }

// Covers says whether addr lies in code that the table describes.
func (t *Table) Covers(addr uint64) bool {
	return addr >= t.text && addr-t.text < t.end && addr-t.text >= t.start(0)
}

// function finds the function at an offset from the text's start.
func (t *Table) function(off uint64) (int, bool) {
	if off >= t.end {
		return 0, false
	}
	i := sort.Search(t.n, func(i int) bool { return t.start(i) > off }) - 1
	return i, i >= 0
}

// fields are what is used of a function's record.
type fields struct {
	name, pcsp uint32
	flags      uint8
}

func (t *Table) fields(r io.ReaderAt, i int) (fields, bool) {
	var b [48]byte
	entry := t.entrySize()
	need := entry + 16
	if t.layout.flag > 0 {
		need = entry + int64(t.layout.flag) + 1
	}
	if n, _ := r.ReadAt(b[:], t.record(i)); int64(n) < need {
		return fields{}, false
	}
	f := fields{name: binary.LittleEndian.Uint32(b[entry:]), pcsp: binary.LittleEndian.Uint32(b[entry+12:])}
	if t.layout.flag > 0 {
		f.flags = b[entry+int64(t.layout.flag)]
	}
	return f, true
}

// name reads a function's name; no name that matters here is longer than 63 bytes.
func (t *Table) name(r io.ReaderAt, off uint32) string {
	var b [64]byte
	n, _ := r.ReadAt(b[:], t.names+int64(off))
	for i, c := range b[:n] {
		if c == 0 {
			return string(b[:i])
		}
	}
	return ""
}
