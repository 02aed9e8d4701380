package hotspot

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf16"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/target"
)

// Bounds on what is read of the heap.
const (
	maxNameChars  = 1024 // of a thread's name
	maxSupers     = 64
	maxFieldBytes = 1 << 19
	maxFieldCount = 1 << 16
	// maxClassFields is how many instance fields of a class are looked at;
	// java.lang.Thread, the largest of those that matter, has some 20.
	maxClassFields = 128
)

// heapLayout is how objects look in this VM (docs/hotspot.md, "Objects").
type heapLayout struct {
	ok bool

	handles         bool // references from the VM are OopHandles (14+)
	compressedOops  bool
	compressedClass bool
	compact         bool // compact object headers
	klassShift      uint // of the class in a compact header
	oopBase         uint64
	oopShift        uint
	klassBase       uint64
	narrowShift     uint
	color           oopColor

	classes map[uint64]heapClass // by Klass
	thread  threadFields
}

// heapClass is what is known of a class.
type heapClass struct {
	fields map[string]javaField // that it declares itself
	super  uint64               // Klass; 0: none
}

// javaField is where an object holds a field.
type javaField struct {
	offset    uint64
	signature string
}

// oopColor says how ZGC's references are turned into addresses.
type oopColor struct {
	mode     uint8 // of the constants below
	arch     cpu.Arch
	instance uint64 // of the ...GlobalsForVMStructs
	mask     field  // pointer to the offset mask
	good     field
	shift    field
	maskV    uint64
	goodV    uint64
	shiftV   uint64
}

const (
	colorNone         = iota
	colorSingle       // (value AND mask) OR good
	colorGenerational // shifted by the color's own bit
)

// CompressedOopsMode says how references of 32 bits are turned into addresses, in the
// VM's own words (share/oops/compressedOops.cpp); "" if there are none.
func (vm *VM) CompressedOopsMode() string {
	h := &vm.heap
	switch {
	case !h.ok || !h.compressedOops:
		return ""
	case h.oopBase != 0 && h.oopBase&(1<<(32+h.oopShift)-1) == 0:
		return "Non-zero disjoint base"
	case h.oopBase != 0:
		return "Non-zero based"
	case h.oopShift != 0:
		return "Zero based"
	}
	return "32-bit"
}

func (vm *VM) openHeap() {
	t, h := vm.t, &vm.heap
	h.handles = !strings.Contains(t.typeOf("JavaThread::_threadObj"), "oop")
	h.compressedOops = vm.flagSet("UseCompressedOops")
	h.compact = vm.flagSet("UseCompactObjectHeaders")
	_, hasFlag := vm.flags["UseCompressedClassPointers"]
	h.compressedClass = h.compact || !hasFlag || vm.flagSet("UseCompressedClassPointers")
	value := func(names ...string) uint64 { v, _ := vm.peek.static(t.field(names...)); return v }
	h.oopBase = value("CompressedOops::_base", "CompressedOops::_narrow_oop._base", "Universe::_narrow_oop._base")
	h.oopShift = uint(value("CompressedOops::_shift", "CompressedOops::_narrow_oop._shift", "Universe::_narrow_oop._shift")) & 31
	h.klassBase = value("CompressedKlassPointers::_base", "CompressedKlassPointers::_narrow_klass._base", "Universe::_narrow_klass._base")
	h.narrowShift = uint(value("CompressedKlassPointers::_shift", "CompressedKlassPointers::_narrow_klass._shift", "Universe::_narrow_klass._shift")) & 31
	h.klassShift = uint(t.longs["markWord::klass_shift"])
	if h.klassShift == 0 {
		h.klassShift = uint(t.ints["markWord::klass_shift"])
	}
	h.classes = make(map[uint64]heapClass)
	h.ok = vm.methods.layout.ok && t.field("InstanceKlass::_constants").ok
	if h.compact && (h.klassShift < 16 || h.klassShift > 63) {
		h.ok = false
	}
	if !t.field("InstanceKlass::_fieldinfo_stream").ok && !t.field("InstanceKlass::_fields").ok || !t.field("Klass::_super").ok {
		h.ok = false
	}
	if !h.ok {
		vm.note("the VM does not publish the layout of its objects: Java thread names are unknown")
	}
	vm.openColor()
}

// openColor finds how ZGC marks its references.
func (vm *VM) openColor() {
	t, c := vm.t, &vm.heap.color
	c.arch = vm.arch
	if !vm.flagSet("UseZGC") {
		return
	}
	_, has := vm.flags["ZGenerational"]
	switch {
	case t.field("XGlobalsForVMStructs::_instance_p").ok && has && !vm.flagSet("ZGenerational"):
		c.mode = colorSingle
		c.instance, _ = vm.peek.static(t.field("XGlobalsForVMStructs::_instance_p"))
		c.mask, c.good = t.field("XGlobalsForVMStructs::_XAddressOffsetMask"), t.field("XGlobalsForVMStructs::_XAddressGoodMask")
	case t.field("ZGlobalsForVMStructs::_ZPointerLoadShift").ok:
		c.mode = colorGenerational
		c.instance, _ = vm.peek.static(t.field("ZGlobalsForVMStructs::_instance_p"))
		c.shift = t.field("ZGlobalsForVMStructs::_ZPointerLoadShift")
	case t.field("ZGlobalsForVMStructs::_ZAddressOffsetMask").ok || t.field("ZGlobalsForVMStructs::_ZAddressGoodMask").ok:
		c.mode = colorSingle
		c.instance, _ = vm.peek.static(t.field("ZGlobalsForVMStructs::_instance_p"))
		c.mask, c.good = t.field("ZGlobalsForVMStructs::_ZAddressOffsetMask"), t.field("ZGlobalsForVMStructs::_ZAddressGoodMask")
	default:
		vm.heap.ok = false
		vm.note("the VM does not publish how ZGC marks references: Java thread names are unknown")
	}
	vm.heap.refresh(&vm.peek)
}

// refresh reads the values that change while the collector works.
func (h *heapLayout) refresh(p *peek) {
	c := &h.color
	if c.mode == colorNone {
		return
	}
	// The fields are pointers to the variables.
	value := func(f field) uint64 {
		at, _ := p.member(c.instance, f)
		v, _ := p.u64(at)
		return v
	}
	c.maskV, c.goodV, c.shiftV = value(c.mask), value(c.good), value(c.shift)
}

// begin forgets what was learnt of classes: they may have been unloaded.
func (h *heapLayout) begin() { clear(h.classes) }

// address turns a full-width reference into an address.
func (h *heapLayout) address(ref uint64) uint64 {
	c := &h.color
	switch {
	case ref == 0:
		return 0
	case c.mode == colorSingle && c.maskV != 0:
		return ref&c.maskV | c.goodV
	case c.mode == colorGenerational:
		if c.arch == cpu.ARM64 {
			return ref >> (c.shiftV & 63)
		}
		// One of the bits 12 to 15 is set; the shift follows from which (25
		// cpu/x86/gc/z/zAddress_x86.inline.hpp).
		if k := ref >> 12 & 15; k != 0 {
			return ref >> (13 + bits.TrailingZeros64(k))
		}
		return ref // not colored
	}
	return ref
}

// reference reads a reference field of an object.
func (vm *VM) reference(addr uint64) (uint64, bool) {
	h := &vm.heap
	if !h.compressedOops {
		v, ok := vm.peek.u64(addr)
		return h.address(v), ok && v != 0
	}
	v, ok := vm.peek.u32(addr)
	if !ok || v == 0 {
		return 0, false
	}
	return h.oopBase + uint64(v)<<h.oopShift, true
}

// referenceIn is reference for an object that has been read.
func (h *heapLayout) referenceIn(object []byte, offset uint64) (uint64, bool) {
	if offset > uint64(len(object)) || uint64(len(object))-offset < 8 {
		return 0, false
	}
	if !h.compressedOops {
		v := binary.LittleEndian.Uint64(object[offset:])
		return h.address(v), v != 0
	}
	v := binary.LittleEndian.Uint32(object[offset:])
	return h.oopBase + uint64(v)<<h.oopShift, v != 0
}

// handle follows a reference that the VM itself holds.
func (vm *VM) handle(v uint64) (oop uint64, ok bool) {
	if v == 0 {
		return 0, false
	}
	if vm.heap.handles {
		if v, ok = vm.peek.u64(v); !ok || v == 0 {
			return 0, false
		}
	}
	return vm.heap.address(v), true
}

// klassOf gives the class of an object.
func (vm *VM) klassOf(oop uint64) (uint64, bool) {
	h := &vm.heap
	switch {
	case h.compact:
		mark, ok := vm.peek.u64(oop)
		return h.klassBase + mark>>h.klassShift<<h.narrowShift, ok
	case h.compressedClass:
		v, ok := vm.peek.u32(oop + 8)
		return h.klassBase + uint64(v)<<h.narrowShift, ok && v != 0
	}
	v, ok := vm.peek.u64(oop + 8)
	return v, ok && v != 0
}

// klassIn is klassOf for an object that has been read, 16 bytes of it at least.
func (h *heapLayout) klassIn(object []byte) uint64 {
	switch {
	case h.compact:
		return h.klassBase + word(object, 0)>>h.klassShift<<h.narrowShift
	case h.compressedClass:
		return h.klassBase + uint64(binary.LittleEndian.Uint32(object[8:]))<<h.narrowShift
	}
	return word(object, 8)
}

// arrayLength is where an array holds its length; its elements follow, aligned.
func (h *heapLayout) arrayLength() (length uint64) {
	switch {
	case h.compact:
		return 8
	case h.compressedClass:
		return 12
	}
	return 16
}

// arrayData is where an array of bytes or chars holds its elements.
func (vm *VM) arrayData() uint64 {
	n := vm.heap.arrayLength() + 4
	// Without compressed class pointers the elements began at the next word (up
	// to 21 at least; 25 fills the gap).
	if n == 20 && vm.major < 23 {
		return 24
	}
	return n
}

// fieldOf finds an instance field of an object's class or its superclasses.
func (vm *VM) fieldOf(oop uint64, name string) (javaField, bool) {
	klass, ok := vm.klassOf(oop)
	if !ok {
		return javaField{}, false
	}
	return vm.fieldOfClass(klass, name)
}

// fieldOfClass is fieldOf for an object of a class.
func (vm *VM) fieldOfClass(klass uint64, name string) (javaField, bool) {
	for range maxSupers {
		if klass == 0 || klass&7 != 0 {
			break
		}
		c, cached := vm.heap.classes[klass]
		if !cached {
			c.fields = vm.classFields(klass)
			c.super, _ = vm.peek.member(klass, vm.t.field("Klass::_super"))
			if len(vm.heap.classes) < 4096 {
				vm.heap.classes[klass] = c
			}
		}
		if f, ok := c.fields[name]; ok {
			return f, true
		}
		klass = c.super
	}
	return javaField{}, false
}

// rawField is an entry of a class's field table.
type rawField struct {
	name, signature uint16 // constant pool indexes
	offset          uint32
	static          bool
}

const accStatic = 0x8 // JVM specification, table 4.5-A

// classFields reads the instance fields that a class declares itself.
func (vm *VM) classFields(klass uint64) map[string]javaField {
	t := vm.t
	var raw []rawField
	if f := t.field("InstanceKlass::_fieldinfo_stream"); f.ok {
		raw = decodeFieldStream(vm.metaArray(klass, f, 1), unsigned5Bias(vm.major))
	} else {
		count := maxFieldCount
		if n, ok := vm.peek.member(klass, t.field("InstanceKlass::_java_fields_count")); ok {
			count = int(n)
		}
		raw = decodeFieldArray(vm.metaArray(klass, t.field("InstanceKlass::_fields"), 2), count)
	}
	pool, ok := vm.peek.member(klass, t.field("InstanceKlass::_constants"))
	if !ok {
		return nil
	}
	out := make(map[string]javaField)
	read := 0
	for _, f := range raw {
		if f.static || read >= maxClassFields {
			continue
		}
		read++
		var slots [16]byte
		reqs := []target.Read{{Addr: vm.poolSlot(pool, f.name), Buf: slots[:8]}, {Addr: vm.poolSlot(pool, f.signature), Buf: slots[8:]}}
		vm.peek.readV(reqs)
		var text [2]string
		vm.symbols([]uint64{word(slots[:], 0), word(slots[:], 8)}, text[:])
		if text[0] != "" {
			out[text[0]] = javaField{offset: uint64(f.offset), signature: text[1]}
		}
	}
	return out
}

// metaArray reads an Array<T> of the VM that a class points to; elements are
// size bytes and follow the 4 bytes of the length.
func (vm *VM) metaArray(klass uint64, f field, size uint64) []byte {
	at, ok := vm.peek.member(klass, f)
	if !ok {
		return nil
	}
	n, ok := vm.peek.u32(at)
	if !ok || uint64(n)*size > maxFieldBytes {
		return nil
	}
	b := make([]byte, uint64(n)*size)
	if vm.peek.r.ReadAt(b, at+4) != nil {
		return nil
	}
	return b
}

// decodeFieldArray decodes InstanceKlass::_fields (8 to 20): six 16-bit values a
// field, the last two its offset and a tag in the lowest two bits, which is 1
// where the offset is set (17 share/oops/fieldInfo.hpp).
func decodeFieldArray(b []byte, count int) []rawField {
	var out []rawField
	for ; len(b) >= 12 && count > 0 && len(out) < maxFieldCount; b, count = b[12:], count-1 {
		u2 := func(i int) uint16 { return binary.LittleEndian.Uint16(b[2*i:]) }
		packed := uint32(u2(5))<<16 | uint32(u2(4))
		if packed&3 != 1 {
			continue
		}
		out = append(out, rawField{name: u2(1), signature: u2(2), offset: packed >> 2, static: u2(0)&accStatic != 0})
	}
	return out
}

// decodeFieldStream decodes InstanceKlass::_fieldinfo_stream (21 and later; 25
// share/oops/fieldInfo.hpp).
func decodeFieldStream(b []byte, bias uint32) []rawField {
	u := unsigned5{data: b, bias: bias}
	java := u.next()
	u.next() // how many the VM injected; they come last
	var out []rawField
	for i := uint32(0); i < java && i < maxFieldCount && !u.bad; i++ {
		name, sig, offset, access, flags := u.next(), u.next(), u.next(), u.next(), u.next()
		if flags&1 != 0 {
			u.next() // initializer
		}
		if flags&4 != 0 {
			u.next() // generic signature
		}
		if flags&16 != 0 {
			u.next() // contention group
		}
		if !u.bad && name < 1<<16 && sig < 1<<16 {
			out = append(out, rawField{uint16(name), uint16(sig), offset, access&accStatic != 0})
		}
	}
	return out
}

// threadName reads the name of a thread's object; ok is false unless the object
// points back to the thread.
func (vm *VM) threadName(t javaThread) (string, bool) {
	vm.heap.refresh(&vm.peek)
	oop, ok := vm.handle(t.object)
	if !ok {
		return "", false
	}
	f, ok := vm.fieldOf(oop, "eetop")
	if !ok {
		return "", false
	}
	if back, ok := vm.peek.u64(oop + f.offset); !ok || back != t.addr {
		return "", false
	}
	f, ok = vm.fieldOf(oop, "name")
	if !ok {
		return "", false
	}
	// JDK 8 before update 40 or so had the name as char[].
	at, ok := vm.reference(oop + f.offset)
	if !ok {
		return "", false
	}
	if f.signature == "[C" {
		return vm.charArray(at, false)
	}
	return vm.javaString(at)
}

// javaString reads a java.lang.String.
func (vm *VM) javaString(oop uint64) (string, bool) {
	f, ok := vm.fieldOf(oop, "value")
	if !ok {
		return "", false
	}
	array, ok := vm.reference(oop + f.offset)
	if !ok {
		return "", false
	}
	latin := false
	if f.signature == "[B" {
		c, ok := vm.fieldOf(oop, "coder")
		if !ok {
			return "", false
		}
		coder, ok := vm.peek.u8(oop + c.offset)
		if !ok || coder > 1 {
			return "", false
		}
		latin = coder == 0
	}
	return vm.charArray(array, latin)
}

// charArray reads an array of Latin-1 bytes, or of UTF-16 as bytes or chars.
func (vm *VM) charArray(array uint64, latin bool) (string, bool) {
	n, ok := vm.peek.u32(array + vm.heap.arrayLength())
	if !ok || n > maxNameLength {
		return "", false
	}
	b := make([]byte, vm.charBytes(n, latin))
	if len(b) > 0 && vm.peek.r.ReadAt(b, array+vm.arrayData()) != nil {
		return "", false
	}
	return decodeChars(b, latin), true
}

// maxNameLength is more than any array has that is a name.
const maxNameLength = 1 << 24

// charBytes is how many bytes of an array of that length are read.
func (vm *VM) charBytes(length uint32, latin bool) uint64 {
	bytes := uint64(length)
	if !latin && vm.major == 8 {
		bytes *= 2 // a char[]
	}
	return min(bytes, 2*maxNameChars)
}

// decodeChars makes text of Latin-1 or UTF-16.
func decodeChars(b []byte, latin bool) string {
	if latin {
		r := make([]rune, len(b))
		for i, c := range b {
			r[i] = rune(c)
		}
		return printable(string(r))
	}
	u := make([]uint16, len(b)/2)
	for i := range u {
		u[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return printable(string(utf16.Decode(u)))
}

// printable replaces control characters: names go to terminals and files.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return '\uFFFD'
		}
		return r
	}, s)
}
