package coreclr

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/candid-profiler/candid/internal/climeta"
	"github.com/candid-profiler/candid/internal/symbol"
)

// Kinds of MethodDesc: the lowest bits of its flags (src/coreclr/vm/method.hpp,
// MethodClassification).
const (
	descIL = iota
	descFCall
	descPInvoke
	descEEImpl
	descArray
	descInstantiated
	descComInterop
	descDynamic
)

// named is what a method is called.
type named struct {
	known     bool
	function  string // readable
	raw       string // as metadata has it
	signature string
	module    *module // nil: it has none
	token     uint32  // row of MethodDef; 0 for none
	stub      bool    // the runtime made it for itself
}

// Bounds of names.
const (
	maxArgs      = 64 // type arguments
	maxTypeDepth = 12 // types in types
	maxText      = 4096
)

// methodDesc is a MethodDesc.
type methodDesc struct {
	kind   uint16
	token  uint32 // row of MethodDef
	table  uint64 // MethodTable of its type
	flags  uint16
	flags3 uint16
	chunk  uint64
	addr   uint64
}

// methodDesc reads a MethodDesc. Its number in its type's chunk of them leads to the chunk, which
// has the type and the upper bits of the token.
func (vm *VM) methodDesc(addr uint64) (methodDesc, bool) {
	l := &vm.lay
	var b [8]byte
	if addr&7 != 0 || !vm.mem.Bytes(addr, b[:]) {
		return methodDesc{}, false
	}
	le := binary.LittleEndian
	m := methodDesc{addr: addr, flags3: le.Uint16(b[l.desc.flags3&7:]), flags: le.Uint16(b[l.desc.flags&6:])}
	m.kind = m.flags & 7
	m.chunk = addr - uint64(b[l.desc.chunk&7])*8 - l.chunk.size
	var t [2]byte
	table, ok1 := vm.mem.Word(m.chunk + l.chunk.table)
	ok2 := vm.mem.Bytes(m.chunk+l.chunk.tokens, t[:])
	const low = 12 // MethodDescTokenRemainderBitCount
	m.table, m.token = table, uint32(le.Uint16(t[:])&0xfff)<<low|uint32(m.flags3&(1<<low-1))
	return m, ok1 && ok2
}

// name finds out what the method of a piece of code is called.
func (vm *VM) name(c *code) *named {
	n := &c.named
	if n.known {
		return n
	}
	if c.freed && !vm.stands(c) {
		return &named{known: true, function: unloaded}
	}
	*n = named{known: true, function: unknownMethod}
	if c.method != 0 {
		if d, ok := vm.methodDesc(c.method); ok && d.kind == descDynamic {
			vm.nameDynamic(n, d)
		} else if ok {
			vm.nameMethod(n, d)
		}
	}
	if n.function == unknownMethod && c.image != nil {
		vm.nameByImage(n, c)
	}
	return n
}

const (
	unloaded      = "[unloaded method]"
	unknownMethod = "[managed method]"
)

// nameDynamic names a method that is in no module: one that the program made with
// System.Reflection.Emit.DynamicMethod, or one that the runtime made for itself, an IL stub.
func (vm *VM) nameDynamic(n *named, d methodDesc) {
	p, ok := vm.mem.Word(d.addr + vm.lay.dynamic.name)
	text, ok2 := vm.cstring(p, 512)
	if !ok || !ok2 || text == "" {
		n.function = "DynamicClass.[dynamic method]"
		return
	}
	text = symbol.Printable(text)
	if strings.HasPrefix(text, "IL_STUB") {
		n.function, n.stub = text, true
		return
	}
	n.function = "DynamicClass." + text // as .NET's own stack traces have it
}

// nameMethod names a method of a type.
func (vm *VM) nameMethod(n *named, d methodDesc) {
	t := vm.methodTable(d.table)
	if t.module == 0 {
		return
	}
	m := vm.moduleAt(t.module)
	n.module, n.token = m, d.token
	if d.kind == descArray {
		n.function = vm.typeName(d.table, 0) + "." + arrayMethod(vm, d)
		n.raw, n.token = "", 0
		return
	}
	if m.meta == nil {
		n.function = fmt.Sprintf("%s.[method %#x]", m.label(), 0x06000000|d.token)
		return
	}
	nameDefinition(n, m, d.token, vm.typeArgs(d.table, t, 0), vm.methodArgs(d))
}

// nameDefinition names a method by the metadata of its module, with the arguments of its type and its
// own; nil for those that are not known.
func nameDefinition(n *named, m *module, row uint32, typeArgs, methodArgs []string) {
	n.module, n.token = m, row
	def, ok := m.meta.Method(row)
	if !ok {
		n.function = fmt.Sprintf("%s.[method %#x]", m.label(), 0x06000000|row)
		return
	}
	owner, _ := m.meta.Type(def.Owner)
	n.raw = symbol.Printable(owner.String() + "." + def.Name)
	n.function = symbol.Printable(climeta.Readable(owner, def.Name, typeArgs, methodArgs))
	params, methodParams := typeArgs, methodArgs
	if params == nil {
		params = m.meta.TypeParams(climeta.TypeDef, def.Owner)
	}
	if methodParams == nil {
		methodParams = m.meta.TypeParams(climeta.MethodDef, row)
	}
	if s, ok := m.meta.Parameters(def, params, methodParams); ok {
		n.signature = symbol.Printable("(" + climeta.PlainNested(s) + ")")
	}
	if len(n.function) > maxText {
		n.function = n.function[:maxText]
	}
	if n.raw == n.function {
		n.raw = ""
	}
}

// label returns what a module is called if nothing better is known of a method.
func (m *module) label() string {
	if m.name == "" {
		return "[module]"
	}
	return symbol.Printable(m.name)
}

// arrayMethod returns the name of a method that the runtime makes for arrays: the first four of its
// type are Get, Set, Address and the constructors (vm/method.hpp, ArrayMethodDesc).
func arrayMethod(vm *VM, d methodDesc) string {
	const slot = 4
	var b [2]byte
	if !vm.mem.Bytes(d.addr+slot, b[:]) {
		return "[array method]"
	}
	// They follow the methods of System.Array, whose number is not the same in all versions; their
	// order in the chunk is theirs.
	switch i := (d.addr - d.chunk - vm.lay.chunk.size) / 8; {
	case i == 0:
		return "Get"
	case i <= 4:
		return "Set"
	case i <= 8:
		return "Address"
	}
	return ".ctor"
}

// methodArgs returns the type arguments of a generic method, nil if it has none.
func (vm *VM) methodArgs(d methodDesc) []string {
	if d.kind != descInstantiated {
		return nil
	}
	l := &vm.lay.generic
	var b [2]byte
	args, ok := vm.mem.Word(d.addr + l.args)
	if !ok || args == 0 || !vm.mem.Bytes(d.addr+l.count, b[:]) {
		return nil
	}
	n := binary.LittleEndian.Uint16(b[:])
	if n == 0 || n > maxArgs {
		return nil
	}
	return vm.typeList(args, int(n), 0)
}
