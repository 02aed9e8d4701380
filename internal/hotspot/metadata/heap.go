package metadata

import (
	"encoding/binary"
	"math/bits"
	"strings"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
)

// Bounds on what is read of the heap.
const (
	maxNameChars  = 1024 // of a thread's name
	maxFieldBytes = 1 << 19
	maxFieldCount = 1 << 16
	// maxClassFields is how many instance fields of a class are looked at; java.lang.Thread, the
	// largest class that is needed, has some 20.
	maxClassFields = 128
)

// MaxSupers bounds how many superclasses of a class are followed.
const MaxSupers = 64

// Heap is how objects look in a VM (docs/hotspot.md, "Objects"), and the classes seen so far. It is
// used from one goroutine.
type Heap struct {
	vm *vmstructs.VM
	OK bool // objects and their classes can be read

	symbol symbolLayout
	pool   uint64 // size of a ConstantPool, in bytes; its slots follow

	Handles         bool // references from the VM are OopHandles (14+)
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
}

// heapClass is what is known of a class.
type heapClass struct {
	fields map[string]Field // fields that it declares itself
	super  uint64           // Klass; 0: none
}

// Field is where an object holds a field: its offset, in bytes, and its type as a descriptor:
// Ljava/lang/String;.
type Field struct {
	Offset    uint64
	Signature string
}

// oopColor describes how ZGC's references are turned into addresses.
type oopColor struct {
	mode     uint8 // of the constants below
	arch     cpu.Arch
	instance uint64          // of the ...GlobalsForVMStructs
	mask     vmstructs.Field // pointer to the offset mask
	good     vmstructs.Field
	shift    vmstructs.Field
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
func (h *Heap) CompressedOopsMode() string {
	switch {
	case !h.OK || !h.compressedOops:
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

// NewHeap finds how objects look in a VM. What does not work is noted there.
func NewHeap(vm *vmstructs.VM) *Heap {
	t, h := vm.Tables, &Heap{vm: vm}
	h.symbol, h.pool = newSymbolLayout(t), t.Sizes["ConstantPool"]
	h.Handles = !strings.Contains(t.Field("JavaThread::_threadObj").Type, "oop")
	h.compressedOops = vm.FlagSet("UseCompressedOops")
	h.compact = vm.FlagSet("UseCompactObjectHeaders")
	hasFlag := vm.HasFlag("UseCompressedClassPointers")
	h.compressedClass = h.compact || !hasFlag || vm.FlagSet("UseCompressedClassPointers")
	value := func(names ...string) uint64 { v, _ := vm.Mem.Static(t.Field(names...)); return v }
	h.oopBase = value("CompressedOops::_base", "CompressedOops::_narrow_oop._base", "Universe::_narrow_oop._base")
	h.oopShift = uint(value("CompressedOops::_shift", "CompressedOops::_narrow_oop._shift", "Universe::_narrow_oop._shift")) & 31
	h.klassBase = value("CompressedKlassPointers::_base", "CompressedKlassPointers::_narrow_klass._base", "Universe::_narrow_klass._base")
	h.narrowShift = uint(value("CompressedKlassPointers::_shift", "CompressedKlassPointers::_narrow_klass._shift", "Universe::_narrow_klass._shift")) & 31
	h.klassShift = uint(t.Longs["markWord::klass_shift"])
	if h.klassShift == 0 {
		h.klassShift = uint(t.Ints["markWord::klass_shift"])
	}
	h.classes = make(map[uint64]heapClass)
	h.OK = h.symbol.ok && t.Field("Klass::_name").OK && h.pool >= 16 && h.pool <= 1024 && t.Field("InstanceKlass::_constants").OK
	if h.compact && (h.klassShift < 16 || h.klassShift > 63) {
		h.OK = false
	}
	if !t.Field("InstanceKlass::_fieldinfo_stream").OK && !t.Field("InstanceKlass::_fields").OK || !t.Field("Klass::_super").OK {
		h.OK = false
	}
	if !h.OK {
		vm.Note("the VM does not publish the layout of its objects: Java thread names are unknown")
	}
	h.openColor()
	return h
}

// openColor finds how ZGC colours its references.
func (h *Heap) openColor() {
	vm, t, c := h.vm, h.vm.Tables, &h.color
	c.arch = vm.Arch
	if !vm.FlagSet("UseZGC") {
		return
	}
	has := vm.HasFlag("ZGenerational")
	switch {
	case t.Field("XGlobalsForVMStructs::_instance_p").OK && has && !vm.FlagSet("ZGenerational"):
		c.mode = colorSingle
		c.instance, _ = vm.Mem.Static(t.Field("XGlobalsForVMStructs::_instance_p"))
		c.mask, c.good = t.Field("XGlobalsForVMStructs::_XAddressOffsetMask"), t.Field("XGlobalsForVMStructs::_XAddressGoodMask")
	case t.Field("ZGlobalsForVMStructs::_ZPointerLoadShift").OK:
		c.mode = colorGenerational
		c.instance, _ = vm.Mem.Static(t.Field("ZGlobalsForVMStructs::_instance_p"))
		c.shift = t.Field("ZGlobalsForVMStructs::_ZPointerLoadShift")
	case t.Field("ZGlobalsForVMStructs::_ZAddressOffsetMask").OK || t.Field("ZGlobalsForVMStructs::_ZAddressGoodMask").OK:
		c.mode = colorSingle
		c.instance, _ = vm.Mem.Static(t.Field("ZGlobalsForVMStructs::_instance_p"))
		c.mask, c.good = t.Field("ZGlobalsForVMStructs::_ZAddressOffsetMask"), t.Field("ZGlobalsForVMStructs::_ZAddressGoodMask")
	default:
		h.OK = false
		vm.Note("the VM does not publish how ZGC marks references: Java thread names are unknown")
	}
	h.Refresh()
}

// Refresh reads the values that change while the collector works.
func (h *Heap) Refresh() {
	c := &h.color
	if c.mode == colorNone {
		return
	}
	// The fields are pointers to the variables.
	value := func(f vmstructs.Field) uint64 {
		at, _ := h.vm.Mem.Member(c.instance, f)
		v, _ := h.vm.Mem.U64(at)
		return v
	}
	c.maskV, c.goodV, c.shiftV = value(c.mask), value(c.good), value(c.shift)
}

// Generational reports whether the collector is generational ZGC. It marks only the references that
// lie in the heap: those on stacks are addresses.
func (h *Heap) Generational() bool { return h.color.mode == colorGenerational }

// BadMask returns the address of the mask of the bits that generational ZGC sets in references that
// have to be looked at before they are followed; false for other collectors.
func (h *Heap) BadMask() (addr uint64, ok bool) {
	if !h.Generational() {
		return 0, false
	}
	return h.vm.Mem.Member(h.color.instance, h.vm.Field("ZGlobalsForVMStructs::_ZPointerLoadBadMask"))
}

// Followed describes to an engine how references in objects are turned into addresses.
func (h *Heap) Followed() (r capture.Reference) {
	switch {
	case h.compressedOops:
		return capture.Reference{Kind: capture.NarrowReference, Shift: uint8(h.oopShift), Base: h.oopBase}
	case h.Generational() && h.color.arch == cpu.ARM64:
		return capture.Reference{Kind: capture.ShiftedReference, Shift: uint8(h.color.shiftV & 63)}
	case h.Generational():
		r.Kind = capture.ColoredReference
	}
	return r
}

// ReadsSymbols reports whether the VM publishes the layout of Symbols.
func (h *Heap) ReadsSymbols() bool { return h.symbol.ok }

// SymbolHead returns how many bytes of a Symbol come before its text.
func (h *Heap) SymbolHead() uint64 { return h.symbol.body }

// Begin forgets what is known of classes: they may have been unloaded.
func (h *Heap) Begin() { clear(h.classes) }

// Address turns a full-width reference into an address.
func (h *Heap) Address(ref uint64) uint64 {
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

// Reference reads a reference field of an object.
func (h *Heap) Reference(addr uint64) (uint64, bool) {
	if !h.compressedOops {
		v, ok := h.vm.Mem.U64(addr)
		return h.Address(v), ok && v != 0
	}
	v, ok := h.vm.Mem.U32(addr)
	if !ok || v == 0 {
		return 0, false
	}
	return h.oopBase + uint64(v)<<h.oopShift, true
}

// ReferenceIn is Reference for an object that has been read.
func (h *Heap) ReferenceIn(object []byte, offset uint64) (uint64, bool) {
	if offset > uint64(len(object)) || uint64(len(object))-offset < 8 {
		return 0, false
	}
	if !h.compressedOops {
		v := binary.LittleEndian.Uint64(object[offset:])
		return h.Address(v), v != 0
	}
	v := binary.LittleEndian.Uint32(object[offset:])
	return h.oopBase + uint64(v)<<h.oopShift, v != 0
}

// Handle follows a reference that the VM itself holds.
func (h *Heap) Handle(v uint64) (oop uint64, ok bool) {
	if v == 0 {
		return 0, false
	}
	if h.Handles {
		if v, ok = h.vm.Mem.U64(v); !ok || v == 0 {
			return 0, false
		}
	}
	return h.Address(v), true
}

// KlassOf returns the class of an object.
func (h *Heap) KlassOf(oop uint64) (uint64, bool) {
	switch {
	case h.compact:
		mark, ok := h.vm.Mem.U64(oop)
		return h.klassBase + mark>>h.klassShift<<h.narrowShift, ok
	case h.compressedClass:
		v, ok := h.vm.Mem.U32(oop + 8)
		return h.klassBase + uint64(v)<<h.narrowShift, ok && v != 0
	}
	v, ok := h.vm.Mem.U64(oop + 8)
	return v, ok && v != 0
}

// KlassIn is KlassOf for an object that has been read, 16 bytes of it at least.
func (h *Heap) KlassIn(object []byte) uint64 {
	switch {
	case h.compact:
		return h.klassBase + vmstructs.Word(object, 0)>>h.klassShift<<h.narrowShift
	case h.compressedClass:
		return h.klassBase + uint64(binary.LittleEndian.Uint32(object[8:]))<<h.narrowShift
	}
	return vmstructs.Word(object, 8)
}

// ArrayLength returns the offset of an array's length; the elements follow, aligned.
func (h *Heap) ArrayLength() (length uint64) {
	switch {
	case h.compact:
		return 8
	case h.compressedClass:
		return 12
	}
	return 16
}

// ArrayData returns the offset of the elements of an array of bytes or chars.
func (h *Heap) ArrayData() uint64 {
	n := h.ArrayLength() + 4
	// Without compressed class pointers the elements began at the next word (at least up to 21; 25
	// fills the gap).
	if n == 20 && h.vm.Major < 23 {
		return 24
	}
	return n
}
