package v8

import (
	"path"
	"unicode/utf16"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/walk"
)

// name is the name of a frame's function.
type name struct {
	function string
	file     string
	stub     bool
}

// frameKey is the slots from which a frame's name was read.
type frameKey struct{ function, bytecode, context uint64 }

const (
	maxKnown = 1 << 14
	maxNames = 1 << 18
)

// describe finds the function whose frame rbp points at, and sets it in f. The frame is one of V8's
// generated code, or of code that runs bytecode.
func (vm *VM) describe(c *walk.Cursor, f *walk.Frame, p place) {
	if p.role == entry {
		f.Kind, f.Ref = walk.KindInterpreted, 0
	}
	fp := c.Regs.FP()
	slot := func(what string) (uint64, bool) {
		off, ok := vm.ints[what]
		at := fp + uint64(int64(off))
		// A function that has just been called has not stored all of them yet.
		if !ok || off > 0 || off < -128 || off&7 != 0 || at < c.Regs.SP() || !c.InCopy(at) {
			return 0, false
		}
		return c.Word(at)
	}
	context, ok1 := slot("off_fp_context")
	if !ok1 {
		vm.entered(c, f)
		return
	}
	if context&1 == 0 {
		// A frame that is not a function's has its type there (src/execution/frames.h).
		f.Kind = walk.KindStub
		f.Ref = vm.intern(name{function: vm.frameType(context >> 1), stub: true})
		return
	}
	function, ok := slot("off_fp_function")
	if !ok {
		vm.entered(c, f)
		return
	}
	bytecode, _ := slot("off_fp_bytecode_array")
	f.Ref = vm.function(frameKey{function, bytecode, context})
}

// entered is describe for generated code that has just been called, and has no frame yet or nothing
// in it: the function is in rdi and its context in rsi (src/codegen/x64/register-x64.h,
// kJSFunctionRegister, kContextRegister).
func (vm *VM) entered(c *walk.Cursor, f *walk.Frame) {
	const both = 1<<cpu.RDI | 1<<cpu.RSI
	if c.Leaf && f.Kind == walk.KindCompiled && c.Regs.Known&both == both {
		f.Ref = vm.function(frameKey{c.Regs.R[cpu.RDI], 0, c.Regs.R[cpu.RSI]})
	}
}

// function returns the number of a frame's name; 0 if it cannot be told.
func (vm *VM) function(k frameKey) uint64 {
	ref, ok := vm.known[k]
	if !ok {
		if n, ok := vm.heap.function(k); ok {
			ref = vm.intern(n)
		}
		if len(vm.known) < maxKnown {
			vm.known[k] = ref
		}
	}
	return ref
}

// intern returns the number of a name, from 1; 0 if there are too many.
func (vm *VM) intern(n name) uint64 {
	ref, ok := vm.nameRef[n]
	if !ok && len(vm.names) < maxNames {
		vm.names = append(vm.names, n)
		ref = uint64(len(vm.names))
		vm.nameRef[n] = ref
	}
	return ref
}

// frameType returns the name of a frame type by its number.
func (vm *VM) frameType(n uint64) string {
	if v, ok := vm.ints["frametype_IrregexpFrame"]; ok && uint64(v) == n {
		return "[regular expression]"
	}
	return "[V8 code]"
}

// Resolver names the frames that vm stepped over; native names those of files.
func (vm *VM) Resolver(native symbol.Resolver) symbol.Resolver { return &resolver{vm, native} }

type resolver struct {
	vm     *VM
	native symbol.Resolver
}

// Resolve implements symbol.Resolver.
func (r *resolver) Resolve(f walk.Frame, out []symbol.Frame) []symbol.Frame {
	if f.Kind == walk.KindNative {
		return r.native.Resolve(f, out)
	}
	s := symbol.Frame{Function: "[JavaScript function]", BCI: -1, Kind: f.Kind, Flags: f.Flags, Addr: f.PC, NoName: true}
	if f.Kind == walk.KindStub {
		s.Function = "[V8 code]"
	}
	if f.Ref > 0 && f.Ref <= uint64(len(r.vm.names)) {
		n := &r.vm.names[f.Ref-1]
		s.Function, s.File, s.NoName = n.function, n.file, false
		if n.file != "" {
			s.Module = path.Base(n.file)
		}
	}
	if s.NoName {
		// Node itself may have written a name for perf (--perf-basic-prof).
		if g, ok := r.vm.native.Frame(f.PC, f.Flags); ok && g.Kind == walk.KindUnknown {
			if named := r.native.Resolve(g, nil); len(named) == 1 && !named[0].NoName {
				s.Function, s.Module, s.NoName = named[0].Function, named[0].Module, false
			}
		}
	}
	return append(out, s)
}

// Prepare implements symbol.Preparer.
func (r *resolver) Prepare(f walk.Frame) bool {
	if p, ok := r.native.(symbol.Preparer); ok && f.Kind == walk.KindNative {
		return p.Prepare(f)
	}
	return true
}

// heap reads V8's objects. Pointers to them have the lowest bit set, and numbers have not
// (include/v8-internal.h).
type heap struct {
	*facts
	mem walk.Memory
	off offsets
}

// offsets are the offsets of fields, in bytes.
type offsets struct {
	instanceType, shared, context, data, nameOrScope, script, codeBytecode, scriptName uint64
	length, one, two, first, second, actual                                            uint64
}

func newHeap(f *facts, mem walk.Memory) heap {
	of := func(names ...string) uint64 {
		for _, n := range names {
			if v, ok := f.ints["class_"+n]; ok && v > 0 && v < 1<<10 {
				return uint64(v)
			}
		}
		return 0
	}
	o := offsets{
		instanceType: of("Map__instance_type__uint16_t"),
		shared:       of("JSFunction__shared__SharedFunctionInfo"),
		context:      of("JSFunction__context__Context"),
		data:         of("SharedFunctionInfo__function_data__Object", "SharedFunctionInfo__function_data__Tagged_Object_"),
		nameOrScope:  of("SharedFunctionInfo__name_or_scope_info__Object", "SharedFunctionInfo__name_or_scope_info__Tagged_Object_", "SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_"),
		script:       of("SharedFunctionInfo__script_or_debug_info__HeapObject", "SharedFunctionInfo__script_or_debug_info__Object", "SharedFunctionInfo__script__Tagged_HeapObject_"),
		codeBytecode: of("Code__bytecode_or_interpreter_data__HeapObject", "Code__deoptimization_data__FixedArray"),
		scriptName:   of("Script__name__Object"),
		length:       of("String__length__int32_t"),
		one:          of("SeqOneByteString__chars__char"),
		two:          of("SeqTwoByteString__chars__char"),
		first:        of("ConsString__first__String"),
		second:       of("ConsString__second__String"),
		actual:       of("ThinString__actual__String"),
	}
	return heap{f, mem, o}
}

// field reads a field of an object.
func (h *heap) field(object, off uint64) (uint64, bool) {
	if object&3 != 1 || off == 0 {
		return 0, false
	}
	return h.mem.Word(object - 1 + off)
}

// typeOf returns an object's type; 0 if it is not an object.
func (h *heap) typeOf(object uint64) int32 {
	if object&3 != 1 || object < 4096 {
		return 0
	}
	m, ok := h.mem.Word(object - 1)
	if !ok || m&3 != 1 {
		return 0
	}
	var b [2]byte
	if h.off.instanceType == 0 || !h.mem.Bytes(m-1+h.off.instanceType, b[:]) {
		return 0
	}
	return int32(b[0]) | int32(b[1])<<8
}

// is reports whether an object is of the type of that name.
func (h *heap) is(object uint64, typ string) bool {
	want, ok := h.ints["type_"+typ]
	return ok && want != 0 && h.typeOf(object) == want
}

// functionTypes is how many types of functions follow the plain one in the list of types
// (src/objects/instance-type.h of V8 9.6 and later; earlier ones have one less).
const functionTypes = 15

// function returns the name of a frame's function. The collector may have moved it since the stack
// was copied, and something else may be there: the copied stack must agree with what is found.
func (h *heap) function(k frameKey) (name, bool) {
	typ, first := h.typeOf(k.function), h.ints["type_JSFunction__JS_FUNCTION_TYPE"]
	if first == 0 || typ < first || typ >= first+functionTypes {
		return name{}, false
	}
	shared, ok := h.field(k.function, h.off.shared)
	if !ok || !h.is(shared, "SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE") || !h.agrees(k, shared) {
		return name{}, false
	}
	called, ok := h.field(shared, h.off.nameOrScope)
	if !ok {
		return name{}, false
	}
	var n name
	if h.is(called, "ScopeInfo__SCOPE_INFO_TYPE") {
		n.function = h.scopeName(called)
	} else {
		n.function, _ = h.text(called, 0)
	}
	if n.function == "" {
		n.function = "(anonymous)"
	}
	if script, ok := h.field(shared, h.off.script); ok && h.is(script, "Script__SCRIPT_TYPE") {
		if at, ok := h.field(script, h.off.scriptName); ok {
			n.file, _ = h.text(at, 0)
		}
	}
	n.function, n.file = symbol.Printable(n.function), symbol.Printable(n.file)
	return n, true
}

// agrees reports whether a frame's slots are those of a function: an interpreter's frame has the
// function's bytecode, and any frame has the function's context or one that was made within it.
func (h *heap) agrees(k frameKey, shared uint64) bool {
	if data, ok := h.field(shared, h.off.data); ok && k.bytecode&3 == 1 {
		if data == k.bytecode {
			return true
		}
		if h.is(data, "Code__CODE_TYPE") {
			if of, ok := h.field(data, h.off.codeBytecode); ok && of == k.bytecode {
				return true
			}
		}
	}
	own, ok := h.field(k.function, h.off.context)
	if !ok || own&3 != 1 {
		return false
	}
	// A context holds its outer context two words after its length (src/objects/contexts.h:
	// SCOPE_INFO_INDEX, PREVIOUS_INDEX).
	const previous = 8 + 8 + 8
	const nested = 16
	for at, n := k.context, 0; n < nested; n++ {
		if at == own {
			return true
		}
		if at, ok = h.field(at, previous); !ok || at&3 != 1 {
			return false
		}
	}
	return false
}

// scopeName finds a function's name in V8's record of its scope, whose layout is not published:
// after its variables' names the first text is the function's (src/objects/scope-info.tq). It is ""
// if there is none.
func (h *heap) scopeName(scope uint64) string {
	const words = 16
	first, locals := h.ints["scopeinfo_idx_first_vars"], h.ints["scopeinfo_idx_ncontextlocals"]
	if first < 0 || first > words || locals < 0 || locals > words {
		return ""
	}
	n, ok := h.mem.Word(scope - 1 + 8 + 8*uint64(locals))
	if !ok || n&1 != 0 || n>>32 > 1<<12 {
		return ""
	}
	from := uint64(first) + 2*(n>>32)
	for i := from; i < from+words; i++ {
		at, ok := h.mem.Word(scope - 1 + 8 + 8*i)
		if !ok {
			return ""
		}
		if at&3 != 1 {
			continue
		}
		if text, ok := h.text(at, 0); ok {
			return text
		}
	}
	return ""
}

// Bounds of texts.
const (
	maxText  = 512
	maxRopes = 8
)

// text reads a string; false if it is not one that can be read.
func (h *heap) text(at uint64, depth int) (string, bool) {
	typ, limit := h.typeOf(at), h.ints["FirstNonstringType"]
	// 0 is the type of an internalized string of two bytes too.
	if limit <= 0 || typ >= limit || depth > maxRopes || at&3 != 1 {
		return "", false
	}
	var size [4]byte
	if h.off.length == 0 || !h.mem.Bytes(at-1+h.off.length, size[:]) {
		return "", false
	}
	n := int(size[0]) | int(size[1])<<8 | int(size[2])<<16
	if n > maxText || size[3] != 0 {
		return "", false
	}
	switch typ & h.ints["StringRepresentationMask"] {
	case h.ints["SeqStringTag"]:
		if typ&h.ints["StringEncodingMask"] == h.ints["OneByteStringTag"] {
			b := make([]byte, n)
			if h.off.one == 0 || !h.mem.Bytes(at-1+h.off.one, b) {
				return "", false
			}
			r := make([]rune, n)
			for i := range b { // Latin-1
				r[i] = rune(b[i])
			}
			return string(r), true
		}
		b := make([]byte, 2*n)
		if h.off.two == 0 || !h.mem.Bytes(at-1+h.off.two, b) {
			return "", false
		}
		u := make([]uint16, n)
		for i := range u {
			u[i] = uint16(b[2*i]) | uint16(b[2*i+1])<<8
		}
		return string(utf16.Decode(u)), true
	case h.ints["ThinStringTag"]:
		if actual, ok := h.field(at, h.off.actual); ok {
			return h.text(actual, depth+1)
		}
	case h.ints["ConsStringTag"]:
		a, ok1 := h.field(at, h.off.first)
		b, ok2 := h.field(at, h.off.second)
		if !ok1 || !ok2 {
			return "", false
		}
		x, ok1 := h.text(a, depth+1)
		y, ok2 := h.text(b, depth+1)
		return x + y, ok1 && ok2 && len(x)+len(y) <= 4*maxText
	}
	return "", false
}
