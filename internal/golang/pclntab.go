package golang

import (
	"encoding/binary"
	"fmt"
	"io"
	"sort"
	"sync"
)

// Pclntab is the table of functions, lines and frame sizes that every Go program carries for its
// own tracebacks, even when stripped (cmd/link: pcln.go; runtime: symtab.go, pcHeader and _func).
// It is not kept in memory: each look-up reads a few small pieces, so the reader behind it should
// cache what it read last. It may be used by several goroutines.
type Pclntab struct {
	r      io.ReaderAt // offset 0 is the header
	size   int64       // up to the end of the table, or of the section or segment that it lies in
	layout *layout
	order  binary.ByteOrder
	ptr    int64  // size of a pointer
	step   uint64 // bytes per unit of code
	text   uint64 // base of function offsets; 0 if the table holds addresses
	first  uint64 // where the first function starts
	end    uint64 // just after the last one
	n      int

	// Offsets of the parts.
	index, names, units, files, pcs, records int64

	look  sync.Once
	marks []uint64 // where every markEvery-th function starts; made on first use
}

// markEvery is how many functions of the index are read to find one of them.
const markEvery = 64

// layout is one version of the format.
type layout struct {
	magic uint32
	// Positions in the header, in pointers after the first 8 bytes. -1: the part's offsets are from
	// the table's start, or there is no such part.
	text, names, units, files, pcs, records int8
	index                                   int8 // where the index starts, if it is not with the records
	offsets                                 bool // functions are given by 4-byte offsets from text, not by pointers
	flag                                    int8 // of the flags in a record, after its first field; 0: there are none
}

// layouts are the versions of the format, by internal/abi's PCLnTabMagic.
var layouts = []layout{
	{magic: 0xfffffffb, text: -1, names: -1, units: -1, files: -1, pcs: -1, records: -1, index: 1},          // Go 1.2 to 1.15
	{magic: 0xfffffffa, text: -1, names: 2, units: 3, files: 4, pcs: 5, records: 6, index: -1, flag: 33},    // Go 1.16 and 1.17
	{magic: 0xfffffff0, text: 2, names: 3, units: 4, files: 5, pcs: 6, records: 7, offsets: true, flag: 33}, // Go 1.18 and 1.19
	{magic: 0xfffffff1, text: 2, names: 3, units: 4, files: 5, pcs: 6, records: 7, offsets: true, flag: 37}, // since Go 1.20
}

// Bounds: the largest Go programs known have some 500,000 functions and a table
// of 200 MiB.
const (
	maxFuncs = 1 << 22
	maxPath  = 4096 // bytes of a source file's name
)

// headerOf recognises the first 8 bytes of a table.
func headerOf(b []byte, order binary.ByteOrder) *layout {
	if b[4] != 0 || b[5] != 0 || (b[6] != 1 && b[6] != 2 && b[6] != 4) || (b[7] != 4 && b[7] != 8) {
		return nil
	}
	magic := order.Uint32(b)
	for i := range layouts {
		if layouts[i].magic == magic {
			return &layouts[i]
		}
	}
	return nil
}

// ReadPclntab reads the header of the table that starts at offset 0 of r and is size bytes long.
// The error wraps ErrNoTable if there is no table.
func ReadPclntab(r io.ReaderAt, size int64, order binary.ByteOrder) (*Pclntab, error) {
	var b [8 + 8*8]byte
	if n, err := r.ReadAt(b[:], 0); n < 8+8*2 {
		return nil, fmt.Errorf("read the header of the table of Go functions: %w: %w", ErrNoTable, err)
	}
	l := headerOf(b[:], order)
	if l == nil {
		return nil, fmt.Errorf("%w: it starts with % x", ErrNoTable, b[:8])
	}
	t := &Pclntab{r: r, size: size, layout: l, order: order, ptr: int64(b[7]), step: uint64(b[6])}
	raw := func(i int8) uint64 { return t.word(b[8+t.ptr*int64(i):], t.ptr) }
	part := func(i int8) int64 {
		if i < 0 {
			return 0
		}
		return int64(min(raw(i), uint64(size))) // at the end nothing is there
	}
	t.names, t.units, t.files, t.pcs, t.records = part(l.names), part(l.units), part(l.files), part(l.pcs), part(l.records)
	if l.text >= 0 {
		t.text = raw(l.text)
	}
	n := raw(0)
	if t.index = t.records; l.index > 0 {
		t.index = 8 + t.ptr*int64(l.index)
	}
	entry := t.entrySize()
	if n == 0 || n > maxFuncs || t.index+int64(n)*2*entry+entry > size {
		return nil, fmt.Errorf("%w: it is said to have %d functions", ErrNoTable, n)
	}
	t.n = int(n)
	var ok1, ok2 bool
	t.first, ok1 = t.start(t.r, 0)
	t.end, ok2 = t.start(t.r, t.n)
	if !ok1 || !ok2 || t.first >= t.end {
		return nil, fmt.Errorf("%w: its functions end before they start", ErrNoTable)
	}
	if !l.offsets && l.files < 0 {
		// The number of files is stored where the first offset of their names would be.
		if at, ok := t.number(r, t.index+int64(n)*2*entry+entry, 4); ok {
			t.files = int64(min(at, uint64(size)))
		} else {
			t.files = size
		}
	}
	return t, nil
}

// entrySize returns the size of one number of a pair in the index.
func (t *Pclntab) entrySize() int64 {
	if t.layout.offsets {
		return 4
	}
	return t.ptr
}

func (t *Pclntab) word(b []byte, size int64) uint64 {
	if size == 4 {
		return uint64(t.order.Uint32(b))
	}
	return t.order.Uint64(b)
}

// number reads a number of 4 or 8 bytes.
func (t *Pclntab) number(r io.ReaderAt, at, size int64) (uint64, bool) {
	var b [8]byte
	if at < 0 || at > t.size-size {
		return 0, false
	}
	if n, _ := r.ReadAt(b[:size], at); int64(n) < size {
		return 0, false
	}
	return t.word(b[:], size), true
}

// start returns where function i starts, relative to the text's start; for i = n it is the end of
// the last function.
func (t *Pclntab) start(r io.ReaderAt, i int) (uint64, bool) {
	entry := t.entrySize()
	return t.number(r, t.index+int64(i)*2*entry, entry)
}

// record returns where the record of function i lies in the table.
func (t *Pclntab) record(r io.ReaderAt, i int) (int64, bool) {
	entry := t.entrySize()
	off, ok := t.number(r, t.index+int64(i)*2*entry+entry, entry)
	if !ok || off > uint64(t.size-t.records) {
		return 0, false
	}
	return t.records + int64(off), true
}

// Base returns the base of function offsets in the table's header: 0 up to Go 1.17, where functions
// have addresses, since Go 1.26, and if that was left to the loader.
func (t *Pclntab) Base() uint64 { return t.text }

// Offsets reports whether functions are stored as offsets from the start of the code and not as
// addresses.
func (t *Pclntab) Offsets() bool { return t.layout.offsets }

// Range returns where the first function starts and the last one ends, as offsets from the start of
// the code, or as addresses.
func (t *Pclntab) Range() (first, end uint64) { return t.first, t.end }

// function finds the function at an offset from the text's start.
func (t *Pclntab) function(off uint64) (int, bool) {
	if off < t.first || off >= t.end {
		return 0, false
	}
	t.look.Do(t.mark)
	from := (sort.Search(len(t.marks), func(i int) bool { return t.marks[i] > off }) - 1) * markEvery
	if from < 0 {
		return 0, false
	}
	pair := 2 * t.entrySize()
	b := make([]byte, int64(min(markEvery, t.n-from))*pair)
	if n, _ := t.r.ReadAt(b, t.index+int64(from)*pair); n < len(b) {
		return 0, false
	}
	n := sort.Search(int(int64(len(b))/pair), func(i int) bool { return t.word(b[int64(i)*pair:], pair/2) > off })
	return from + n - 1, n > 0
}

// mark reads through the index once.
func (t *Pclntab) mark() {
	pair := 2 * t.entrySize()
	in := &window{r: t.r}
	marks := make([]uint64, 0, (t.n+markEvery-1)/markEvery)
	for i := 0; i < t.n; i += markEvery {
		start, ok := t.number(in, t.index+int64(i)*pair, pair/2)
		if !ok {
			return // the file was cut short
		}
		marks = append(marks, start)
	}
	t.marks = marks
}

// fields are the used fields of a function's record. Functions begin with 0.
type fields struct {
	name, pcsp, pcfile, pcline, unit uint32
	start                            uint32 // line of the declaration, since Go 1.20
	flags                            uint8
	pcdata, funcdata                 int64 // where these lists are, if there are any
	npcdata                          uint32
	nfuncdata                        uint8
}

func (t *Pclntab) fields(index, r io.ReaderAt, i int) (fields, bool) {
	at, ok := t.record(index, i)
	if !ok {
		return fields{}, false
	}
	var b [48]byte
	entry := t.entrySize()
	need := entry + 24
	if t.layout.flag > 0 {
		need = entry + int64(t.layout.flag) + 1
	}
	if n, _ := r.ReadAt(b[:min(int64(len(b)), t.size-at)], at); int64(n) < need {
		return fields{}, false
	}
	u32 := func(at int64) uint32 { return t.order.Uint32(b[entry+at:]) }
	f := fields{name: u32(0), pcsp: u32(12), pcfile: u32(16), pcline: u32(20)}
	if t.layout.flag > 0 {
		f.unit, f.flags = u32(28), b[entry+int64(t.layout.flag)]
	}
	if t.layout.flag == startLineLayout {
		f.start, f.npcdata, f.nfuncdata = u32(32), u32(24), b[entry+39]
		f.pcdata = at + entry + 40
		f.funcdata = f.pcdata + 4*int64(f.npcdata)
	}
	return f, true
}

// string reads the string that ends with a zero byte, at most most bytes of it.
func (t *Pclntab) string(r io.ReaderAt, at int64, most int) string {
	var out []byte
	var b [128]byte
	for at >= 0 && at < t.size && len(out) < most {
		n, _ := r.ReadAt(b[:min(len(b), most-len(out), int(min(t.size-at, 128)))], at)
		for i, c := range b[:n] {
			if c == 0 {
				return string(append(out, b[:i]...))
			}
		}
		if n == 0 {
			break
		}
		out = append(out, b[:n]...)
		at += int64(n)
	}
	return string(out)
}

// Function returns the name of the function at an offset from the start of the code (an address up
// to Go 1.17) and where it starts. A longer name is cut to most bytes.
func (t *Pclntab) Function(off uint64, most int) (name string, start uint64, ok bool) {
	i, ok := t.function(off)
	if !ok {
		return "", 0, false
	}
	start, ok1 := t.start(t.r, i)
	f, ok2 := t.fields(t.r, t.r, i)
	if !ok1 || !ok2 {
		return "", 0, false
	}
	name = t.string(t.r, t.names+int64(f.name), most)
	return name, start, name != ""
}

// Line returns the file and the line of the instruction at an offset from the start of the code (an
// address up to Go 1.17).
func (t *Pclntab) Line(off uint64) (file string, line int32, ok bool) {
	i, ok := t.function(off)
	if !ok {
		return "", 0, false
	}
	start, ok1 := t.start(t.r, i)
	f, ok2 := t.fields(t.r, t.r, i)
	if !ok1 || !ok2 {
		return "", 0, false
	}
	return t.position(&f, off-start)
}

// position returns the file and the line of the instruction at an offset from its function's start.
func (t *Pclntab) position(f *fields, off uint64) (file string, line int32, ok bool) {
	number, ok1 := t.value(f.pcfile, off)
	line, ok2 := t.value(f.pcline, off)
	if !ok1 || !ok2 || number < 0 || line <= 0 {
		return "", 0, false
	}
	if t.layout.units < 0 && number == 0 {
		return "", 0, false // no file
	}
	at := t.files + int64(number)*4 // a list of offsets from the table's start
	if t.layout.units >= 0 {
		at = t.units + (int64(f.unit)+int64(number))*4
	}
	name, ok := t.number(t.r, at, 4)
	if !ok {
		return "", 0, false
	}
	if t.layout.units >= 0 {
		name += uint64(t.files)
	}
	file = t.string(t.r, int64(name), maxPath)
	return file, line, file != ""
}

// maxTable bounds one function's table of values, in bytes. A pair stands for at least one
// instruction.
const maxTable = 1 << 20

// value runs the table of values at off, up to the instruction at offset from in its function. The
// table is a list of pairs of variable-length numbers: the change of the value (in zigzag), and the
// number of units of code for which the new value holds. It ends with a change of 0 that is not the
// first.
func (t *Pclntab) value(off uint32, from uint64) (int32, bool) {
	if off == 0 {
		return 0, false
	}
	in := varints{t: t, at: t.pcs + int64(off)}
	value, pc := int32(-1), uint64(0)
	for first := true; in.read < maxTable; first = false {
		change, ok := in.next()
		if !ok || change == 0 && !first {
			return 0, false
		}
		length, ok := in.next()
		if !ok {
			return 0, false
		}
		value += int32(change>>1) ^ -int32(change&1)
		pc += uint64(length) * t.step
		if from < pc {
			return value, true
		}
	}
	return 0, false
}

// varints reads the numbers that start at an offset of the table.
type varints struct {
	t    *Pclntab
	at   int64
	read int
	buf  [128]byte
	i, n int
}

func (v *varints) byte() (byte, bool) {
	if v.i == v.n {
		v.n, _ = v.t.r.ReadAt(v.buf[:], v.at)
		v.at += int64(v.n)
		if v.i = 0; v.n == 0 {
			return 0, false
		}
	}
	v.i++
	v.read++
	return v.buf[v.i-1], true
}

func (v *varints) next() (uint32, bool) {
	var out uint32
	for shift := 0; shift < 35; shift += 7 {
		b, ok := v.byte()
		if !ok {
			return 0, false
		}
		out |= uint32(b&0x7f) << shift
		if b&0x80 == 0 {
			return out, true
		}
	}
	return 0, false
}
