package hotspot

import (
	"encoding/binary"
	"math/bits"
	"strings"

	"github.com/candid-profiler/candid/internal/cpu"
)

// Bounds on what is read of the heap.
const (
	maxNameChars  = 1024 // of a thread's name
	maxSupers     = 64
	maxFieldBytes = 1 << 19
	maxFieldCount = 1 << 16
	// maxClassFields is how many instance fields of a class are looked at; java.lang.Thread, the
	// largest class that is needed, has some 20.
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
	fields map[string]javaField // fields that it declares itself
	super  uint64               // Klass; 0: none
}

// javaField is where an object holds a field.
type javaField struct {
	offset    uint64
	signature string
}

// oopColor describes how ZGC's references are turned into addresses.
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

// CompressedOopsMode returns how references of 32 bits are turned into addresses, in the VM's own
// words (share/oops/compressedOops.cpp); "" if there are none.
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
	_, hasFlag := vm.flag("UseCompressedClassPointers")
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

// openColor finds how ZGC colours its references.
func (vm *VM) openColor() {
	t, c := vm.t, &vm.heap.color
	c.arch = vm.arch
	if !vm.flagSet("UseZGC") {
		return
	}
	_, has := vm.flag("ZGenerational")
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

// begin forgets what is known of classes: they may have been unloaded.
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

// klassOf returns the class of an object.
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

// arrayLength returns the offset of an array's length; the elements follow, aligned.
func (h *heapLayout) arrayLength() (length uint64) {
	switch {
	case h.compact:
		return 8
	case h.compressedClass:
		return 12
	}
	return 16
}

// arrayData returns the offset of the elements of an array of bytes or chars.
func (vm *VM) arrayData() uint64 {
	n := vm.heap.arrayLength() + 4
	// Without compressed class pointers the elements began at the next word (at least up to 21; 25
	// fills the gap).
	if n == 20 && vm.major < 23 {
		return 24
	}
	return n
}
