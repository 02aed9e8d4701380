package pdb

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"sort"
)

// Numbers of streams.
const (
	streamInfo  = 1
	streamTypes = 2
	streamDBI   = 3
	streamIDs   = 4
)

// File is a program database. It is used from one goroutine.
type File struct {
	// GUID is the identity that the image has too.
	GUID [16]byte

	c       *container
	modules []module
	places  []contribution // by segment and offset
	symbols int            // the stream of public and global symbols
	names   []byte         // of source files
	types   records
	ids     records
	parsed  int // bytes of the modules that have been parsed
}

// module is what was one object file.
type module struct {
	stream     int
	symbols    uint32 // bytes of its symbols
	old, lines uint32 // bytes of its lines in the old and in the present form, which follow
	parsed     bool
	functions  []function
	inlinees   map[uint32]inlinee
	lineBlocks []lineBlock
	checksums  []byte // the list of source files
}

// contribution is a range of code that came from a module.
type contribution struct {
	segment      uint16
	offset, size uint32
	module       uint16
}

// Function is a function or a public symbol.
type Function struct {
	Segment uint16 // number of the section in the image, from 1
	Offset  uint32 // in the section
	Size    uint32 // 0: not known
	Name    string
	Public  bool // from the linker's list, mangled; else from the compiler
}

// Open reads the lists of modules. r must stay readable. The error wraps ErrFormat.
func Open(r io.ReaderAt) (*File, error) {
	c, err := openContainer(r)
	if err != nil {
		return nil, err
	}
	f := &File{c: c, symbols: -1}
	info, err := c.stream(streamInfo)
	if err != nil {
		return nil, err
	}
	if len(info) < 28 {
		return nil, fmt.Errorf("%w: no header", ErrFormat)
	}
	copy(f.GUID[:], info[12:28])
	if n, ok := named(info[28:], "/names"); ok {
		if b, err := c.stream(n); err == nil && len(b) >= 12 {
			f.names = b[12:]
		}
	}
	return f, f.readDBI()
}

// named finds the number of a stream with a name: a hash table behind the names.
func named(b []byte, name string) (int, bool) {
	le := binary.LittleEndian
	u32 := func() uint32 {
		if len(b) < 4 {
			b = nil
			return 0
		}
		v := le.Uint32(b)
		b = b[4:]
		return v
	}
	n := u32()
	if uint64(n) > uint64(len(b)) {
		return 0, false
	}
	texts := b[:n]
	b = b[n:]
	used := u32()
	u32() // capacity
	for range 2 {
		words := u32()
		if uint64(words)*4 > uint64(len(b)) {
			return 0, false
		}
		b = b[4*words:]
	}
	for ; used > 0 && len(b) >= 8; used-- {
		key, value := u32(), u32()
		if cString(texts, key) == name {
			return int(value), true
		}
	}
	return 0, false
}

const (
	dbiHeader    = 64
	moduleFixed  = 64
	contribFixed = 28
	maxModules   = 1 << 16
)

func (f *File) readDBI() error {
	b, err := f.c.stream(streamDBI)
	if err != nil {
		return err
	}
	if len(b) == 0 {
		return nil // types only
	}
	if len(b) < dbiHeader {
		return fmt.Errorf("%w: the list of modules has %d bytes", ErrFormat, len(b))
	}
	le := binary.LittleEndian
	f.symbols = int(le.Uint16(b[20:]))
	modules, contribs := le.Uint32(b[24:]), le.Uint32(b[28:])
	b = b[dbiHeader:]
	if uint64(modules)+uint64(contribs) > uint64(len(b)) {
		return fmt.Errorf("%w: the list of modules ends early", ErrFormat)
	}
	list, rest := b[:modules], b[modules:modules+contribs]
	for len(list) >= moduleFixed && len(f.modules) < maxModules {
		m := module{stream: int(le.Uint16(list[34:])), symbols: le.Uint32(list[36:]), old: le.Uint32(list[40:]), lines: le.Uint32(list[44:])}
		f.modules = append(f.modules, m)
		at := moduleFixed
		for range 2 { // its name and the library's
			i := bytes.IndexByte(list[min(at, len(list)):], 0)
			if i < 0 {
				return nil
			}
			at += i + 1
		}
		list = list[min((at+3)&^3, len(list)):]
	}
	const version60, version2 = 0xeffe0000 + 19970605, 0xeffe0000 + 20140516
	if len(rest) < 4 {
		return nil
	}
	size := contribFixed
	switch le.Uint32(rest) {
	case version60:
	case version2:
		size += 4
	default:
		return nil
	}
	for rest = rest[4:]; len(rest) >= size; rest = rest[size:] {
		if c := (contribution{le.Uint16(rest), le.Uint32(rest[4:]), le.Uint32(rest[8:]), le.Uint16(rest[16:])}); c.size > 0 {
			f.places = append(f.places, c)
		}
	}
	sort.SliceStable(f.places, func(i, j int) bool {
		a, b := &f.places[i], &f.places[j]
		return a.segment < b.segment || a.segment == b.segment && a.offset < b.offset
	})
	return nil
}

// cString returns the text at off that ends with 0.
func cString(b []byte, off uint32) string {
	if uint64(off) >= uint64(len(b)) {
		return ""
	}
	b = b[off:]
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b[:min(len(b), maxName)])
}

// maxName bounds a name, in bytes.
const maxName = 8 << 10

// Functions calls add for each public symbol that is code, and then for each function that the
// compilers described. The error wraps ErrFormat; what was found before it has been added.
func (f *File) Functions(add func(Function)) error {
	b, err := f.c.stream(f.symbols)
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	for kind, r := range each(b) {
		const code, function = 1, 2
		if kind == symPublic && len(r) >= 10 && le.Uint32(r)&(code|function) != 0 {
			add(Function{Offset: le.Uint32(r[4:]), Segment: le.Uint16(r[8:]), Name: cString(r, 10), Public: true})
		}
	}
	for i := range f.modules {
		b, err := f.moduleSymbols(&f.modules[i])
		if err != nil {
			return err
		}
		for kind, r := range each(b) {
			if procedure(kind) && len(r) >= procName {
				add(Function{Offset: le.Uint32(r[28:]), Segment: le.Uint16(r[32:]), Size: le.Uint32(r[12:]), Name: cString(r, procName)})
			}
		}
	}
	return nil
}

// moduleSymbols reads the symbols of a module, without the signature before them.
func (f *File) moduleSymbols(m *module) ([]byte, error) {
	b, err := f.c.stream(m.stream)
	if err != nil || m.symbols < 4 || uint64(m.symbols) > uint64(len(b)) {
		return nil, err
	}
	return b[4:m.symbols], nil
}

// Kinds of symbols.
const (
	symEnd         = 0x0006
	symPublic      = 0x110e
	symLocalProc   = 0x110f
	symGlobalProc  = 0x1110
	symLocalProcID = 0x1146
	symProcID      = 0x1147
	symInline      = 0x114d
	symInlineEnd   = 0x114e
	symProcIDEnd   = 0x114f
	symInline2     = 0x115d
	procName       = 35 // where the name of a procedure begins
)

func procedure(kind uint16) bool {
	return kind == symLocalProc || kind == symGlobalProc || kind == symLocalProcID || kind == symProcID
}

// each calls yield for each record: 2 bytes of length, 2 of kind, and the rest.
func each(b []byte) func(yield func(uint16, []byte) bool) {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= 4 {
			n := int(binary.LittleEndian.Uint16(b)) + 2
			if n < 4 || n > len(b) || !yield(binary.LittleEndian.Uint16(b[2:]), b[4:n]) {
				return
			}
			b = b[n:]
		}
	}
}
