package vmstructs

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/candid-profiler/candid/internal/target"
)

// maxTableEntries bounds what the target's tables may claim. A product VM has about 1,600 fields,
// 900 types and 900 constants.
const maxTableEntries = 1 << 14

// MaxString bounds the strings by which a VM names things, in bytes.
const MaxString = 512

// Field is one entry of gHotSpotVMStructs.
type Field struct {
	Offset uint64 // in the object, for instance fields
	Addr   uint64 // of the variable, for static fields
	Width  uint8  // bytes, 8 if not known
	Signed bool
	OK     bool   // the VM publishes it
	Type   string // in C++, without const and volatile
}

// Tables is what a VM publishes about itself: the four gHotSpotVM* arrays. VMs of the same library
// share everything but the address.
type Tables struct {
	*Published
	base uint64 // base of addresses: where the first array's symbol is
}

// Published is the part that is the same in all VMs of a library. It does not change.
type Published struct {
	Fields map[string]Field  // "Type::field"; Tables.Here gives their addresses
	Sizes  map[string]uint64 // of types, bytes
	Ints   map[string]int32  // constants
	Longs  map[string]uint64 // constants
}

// symbolNames are the exported variables that describe the arrays: the first of
// each row holds the pointer to the array.
var symbolNames = [...]string{
	"gHotSpotVMStructs", "gHotSpotVMStructEntryArrayStride",
	"gHotSpotVMStructEntryTypeNameOffset", "gHotSpotVMStructEntryFieldNameOffset",
	"gHotSpotVMStructEntryTypeStringOffset", "gHotSpotVMStructEntryIsStaticOffset",
	"gHotSpotVMStructEntryOffsetOffset", "gHotSpotVMStructEntryAddressOffset",

	"gHotSpotVMTypes", "gHotSpotVMTypeEntryArrayStride",
	"gHotSpotVMTypeEntryTypeNameOffset", "gHotSpotVMTypeEntryIsUnsignedOffset",
	"gHotSpotVMTypeEntrySizeOffset",

	"gHotSpotVMIntConstants", "gHotSpotVMIntConstantEntryArrayStride",
	"gHotSpotVMIntConstantEntryNameOffset", "gHotSpotVMIntConstantEntryValueOffset",

	"gHotSpotVMLongConstants", "gHotSpotVMLongConstantEntryArrayStride",
	"gHotSpotVMLongConstantEntryNameOffset", "gHotSpotVMLongConstantEntryValueOffset",
}

// chunked reads the target in aligned chunks and keeps them, so that thousands of short strings
// that lie together cost a few reads. It is for data that does not change: the VM's own constants.
type chunked struct {
	r      target.Reader
	chunks map[uint64][]byte
}

const (
	chunkSize = 4096
	maxChunks = 4096
)

func (c *chunked) chunk(base uint64) []byte {
	if b, ok := c.chunks[base]; ok {
		return b
	}
	if len(c.chunks) >= maxChunks {
		return nil
	}
	b := make([]byte, chunkSize)
	if err := c.r.ReadAt(b, base); err != nil {
		b = nil
	}
	c.chunks[base] = b
	return b
}

// ReadAt implements target.Reader.
func (c *chunked) ReadAt(p []byte, addr uint64) error {
	for len(p) > 0 {
		b := c.chunk(addr &^ (chunkSize - 1))
		if b == nil {
			return c.r.ReadAt(p, addr)
		}
		n := copy(p, b[addr&(chunkSize-1):])
		p, addr = p[n:], addr+uint64(n)
	}
	return nil
}

// cstring reads a string that ends with a zero byte, of at most maxTableString
// bytes.
func (c *chunked) cstring(addr uint64) (string, bool) {
	var s []byte
	for len(s) < MaxString {
		b := c.chunk(addr &^ (chunkSize - 1))
		if b == nil {
			return "", false
		}
		b = b[addr&(chunkSize-1):]
		for i, ch := range b {
			if ch == 0 {
				return string(append(s, b[:i]...)), true
			}
			if i >= MaxString {
				return "", false
			}
		}
		s = append(s, b...)
		addr += uint64(len(b))
	}
	return "", false
}

// tableReader decodes the arrays at the addresses of the symbols.
type tableReader struct {
	mem     chunked
	symbols map[string]uint64 // addresses in the target
	err     error
}

// value reads the 64-bit variable of a symbol, uncached: the VM's start-up code may not have filled
// it in yet.
func (t *tableReader) value(symbol string) uint64 {
	addr := t.symbols[symbol]
	var b [8]byte
	if addr == 0 {
		t.fail(fmt.Errorf("symbol %s is missing: %w", symbol, ErrNotHotSpot))
		return 0
	}
	if err := t.mem.r.ReadAt(b[:], addr); err != nil {
		t.fail(fmt.Errorf("read %s: %w", symbol, err))
		return 0
	}
	return binary.LittleEndian.Uint64(b[:])
}

func (t *tableReader) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

// array calls f with each entry of an array until f returns that it was the last.
func (t *tableReader) array(pointer, stride string, f func(entry []byte) bool) {
	base, size := t.value(pointer), t.value(stride)
	if t.err != nil {
		return
	}
	if base == 0 || size == 0 {
		t.fail(fmt.Errorf("%s is not filled in yet: %w", pointer, ErrNotReady))
		return
	}
	if size < 16 || size > 256 {
		t.fail(fmt.Errorf("%s is %d, no plausible size of an entry: %w", stride, size, ErrNotHotSpot))
		return
	}
	entry := make([]byte, size)
	for i := uint64(0); i < maxTableEntries; i++ {
		if err := t.mem.ReadAt(entry, base+i*size); err != nil {
			t.fail(fmt.Errorf("read entry %d of %s: %w", i, pointer, err))
			return
		}
		if !f(entry) {
			return
		}
	}
	t.fail(fmt.Errorf("%s has no end: %w", pointer, ErrNotHotSpot))
}

// column returns the 8 bytes at an entry's column, 0 if they are outside the entry.
func column(entry []byte, off uint64) uint64 {
	if off > uint64(len(entry)) || uint64(len(entry))-off < 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(entry[off:])
}

// column32 is column for 4 bytes.
func column32(entry []byte, off uint64) uint32 {
	if off > uint64(len(entry)) || uint64(len(entry))-off < 4 {
		return 0
	}
	return binary.LittleEndian.Uint32(entry[off:])
}

// readTables decodes the four arrays. The error wraps ErrNotReady if the VM has
// not filled them in yet.
func readTables(r target.Reader, symbols map[string]uint64) (*Tables, error) {
	t := &tableReader{mem: chunked{r: r, chunks: make(map[uint64][]byte)}, symbols: symbols}
	base := symbols[symbolNames[0]]
	out := &Published{
		Fields: make(map[string]Field, 2048),
		Sizes:  make(map[string]uint64, 1024),
		Ints:   make(map[string]int32, 1024),
		Longs:  make(map[string]uint64, 128),
	}
	unsigned := make(map[string]bool)

	name, size, isUnsigned := t.value("gHotSpotVMTypeEntryTypeNameOffset"),
		t.value("gHotSpotVMTypeEntrySizeOffset"), t.value("gHotSpotVMTypeEntryIsUnsignedOffset")
	t.array("gHotSpotVMTypes", "gHotSpotVMTypeEntryArrayStride", func(e []byte) bool {
		s, ok := t.mem.cstring(column(e, name))
		if ok {
			out.Sizes[s] = column(e, size)
			unsigned[s] = column32(e, isUnsigned) != 0
		}
		return column(e, name) != 0
	})

	name, fieldName, typeString := t.value("gHotSpotVMStructEntryTypeNameOffset"),
		t.value("gHotSpotVMStructEntryFieldNameOffset"), t.value("gHotSpotVMStructEntryTypeStringOffset")
	static, offset, address := t.value("gHotSpotVMStructEntryIsStaticOffset"),
		t.value("gHotSpotVMStructEntryOffsetOffset"), t.value("gHotSpotVMStructEntryAddressOffset")
	t.array("gHotSpotVMStructs", "gHotSpotVMStructEntryArrayStride", func(e []byte) bool {
		if column(e, name) == 0 || column(e, fieldName) == 0 {
			return false
		}
		typ, ok1 := t.mem.cstring(column(e, name))
		fld, ok2 := t.mem.cstring(column(e, fieldName))
		if !ok1 || !ok2 {
			return true
		}
		of, _ := t.mem.cstring(column(e, typeString))
		of = strings.TrimPrefix(strings.TrimPrefix(of, "const "), "volatile ")
		f := Field{OK: true, Width: 8, Type: of}
		if column32(e, static) != 0 {
			if f.Addr = column(e, address); f.Addr != 0 {
				f.Addr -= base
			}
		} else {
			f.Offset = column(e, offset)
		}
		if n := out.Sizes[of]; !strings.HasSuffix(of, "*") && (n == 1 || n == 2 || n == 4) {
			f.Width, f.Signed = uint8(n), !unsigned[of]
		}
		out.Fields[typ+"::"+fld] = f
		return true
	})

	name, value := t.value("gHotSpotVMIntConstantEntryNameOffset"), t.value("gHotSpotVMIntConstantEntryValueOffset")
	t.array("gHotSpotVMIntConstants", "gHotSpotVMIntConstantEntryArrayStride", func(e []byte) bool {
		if s, ok := t.mem.cstring(column(e, name)); ok {
			out.Ints[s] = int32(column32(e, value))
		}
		return column(e, name) != 0
	})
	name, value = t.value("gHotSpotVMLongConstantEntryNameOffset"), t.value("gHotSpotVMLongConstantEntryValueOffset")
	t.array("gHotSpotVMLongConstants", "gHotSpotVMLongConstantEntryArrayStride", func(e []byte) bool {
		if s, ok := t.mem.cstring(column(e, name)); ok {
			out.Longs[s] = column(e, value)
		}
		return column(e, name) != 0
	})
	if t.err != nil {
		return nil, t.err
	}
	return &Tables{out, base}, nil
}

// Here returns a published field with its address in this VM.
func (t *Tables) Here(f Field) Field {
	if f.Addr != 0 {
		f.Addr += t.base
	}
	return f
}

// Field returns the first of the named fields that the VM publishes.
func (t *Tables) Field(names ...string) Field {
	for _, n := range names {
		if f, ok := t.Fields[n]; ok {
			return t.Here(f)
		}
	}
	return Field{}
}

// Load takes the field's value out of the object's bytes, sign-extended if its type is signed. It
// returns 0 if the field is not published or lies outside.
func (f Field) Load(object []byte) uint64 {
	if !f.OK || f.Offset > uint64(len(object)) || uint64(len(object))-f.Offset < uint64(f.Width) {
		return 0
	}
	b := object[f.Offset:]
	switch f.Width {
	case 1:
		if f.Signed {
			return uint64(int8(b[0]))
		}
		return uint64(b[0])
	case 2:
		v := binary.LittleEndian.Uint16(b)
		if f.Signed {
			return uint64(int16(v))
		}
		return uint64(v)
	case 4:
		v := binary.LittleEndian.Uint32(b)
		if f.Signed {
			return uint64(int32(v))
		}
		return uint64(v)
	}
	return binary.LittleEndian.Uint64(b)
}

// End returns the offset just above the field.
func (f Field) End() uint64 {
	if !f.OK {
		return 0
	}
	return f.Offset + uint64(f.Width)
}
