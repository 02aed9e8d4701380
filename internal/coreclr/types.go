package coreclr

import (
	"encoding/binary"
	"strings"

	"github.com/candid-profiler/candid/internal/climeta"
)

// Flags of a MethodTable (src/coreclr/vm/methodtable.h).
const (
	tableCategory      = 0x000f0000
	tableArray         = 0x00080000 // with tableArrayMask
	tableArrayMask     = 0x000c0000
	tableValue         = 0x00040000 // with tableArrayMask: a type of values
	tableSZArray       = 0x00020000 // of an array: it has one dimension and starts at 0
	tableHasComponents = 0x80000000 // arrays and strings; then the bits for generics mean other things
	tableGenerics      = 0x00000030
	tableGenericInst   = 0x00000010
	tableSharedInst    = 0x00000020
	tableTypical       = 0x00000030 // the definition itself
)

// methodTable is a MethodTable, which stands for a type.
type methodTable struct {
	flags  uint32
	row    uint32 // of TypeDef
	module uint64
}

func (vm *VM) methodTable(addr uint64) methodTable {
	l := &vm.lay.table
	var b [4]byte
	var t methodTable
	if addr&7 != 0 || !vm.mem.Bytes(addr+l.flags, b[:]) {
		return t
	}
	t.flags = binary.LittleEndian.Uint32(b[:])
	if vm.mem.Bytes(addr+l.flags2, b[:]) {
		t.row = binary.LittleEndian.Uint32(b[:]) >> vm.lay.tokenShift
	}
	t.module, _ = vm.mem.Word(addr + l.module)
	return t
}

func (t methodTable) array() bool { return t.flags&tableArrayMask == tableArray }

// generic reports whether the type has type arguments that may be read.
func (t methodTable) generic() bool {
	if t.flags&tableHasComponents != 0 {
		return false
	}
	k := t.flags & tableGenerics
	return k == tableGenericInst || k == tableSharedInst
}

// typeArgs returns the names of a type's arguments, nil if it has none. The array of dictionaries is
// preceded by their number and that of the arguments; the last one is the type's own.
func (vm *VM) typeArgs(addr uint64, t methodTable, depth int) []string {
	if !t.generic() {
		return nil
	}
	all, ok := vm.mem.Word(addr + vm.lay.table.args)
	var b [8]byte
	if !ok || all < 8 || !vm.mem.Bytes(all-8, b[:]) {
		return nil
	}
	dicts, args := binary.LittleEndian.Uint16(b[4:]), binary.LittleEndian.Uint16(b[6:])
	if dicts == 0 || dicts > 256 || args == 0 || args > maxArgs {
		return nil
	}
	own, ok := vm.mem.Word(all + 8*uint64(dicts-1))
	if !ok {
		return nil
	}
	return vm.typeList(own, int(args), depth)
}

// typeList returns the names of n types whose handles follow each other.
func (vm *VM) typeList(at uint64, n, depth int) []string {
	out := make([]string, n)
	for i := range out {
		h, ok := vm.mem.Word(at + 8*uint64(i))
		if !ok {
			return nil
		}
		out[i] = vm.typeName(h, depth+1)
	}
	return out
}

// typeName returns the name of a type as C# would write it, with its namespace. A handle is the
// address of a MethodTable, or of a TypeDesc plus 2.
func (vm *VM) typeName(handle uint64, depth int) string {
	const unknown = "?"
	if handle == 0 || depth > maxTypeDepth {
		return unknown
	}
	if s, ok := vm.names.types[handle]; ok {
		return s
	}
	s := unknown
	if handle&2 != 0 {
		s = vm.descName(handle&^2, depth)
	} else if t := vm.methodTable(handle); t.array() {
		element, _ := vm.mem.Word(handle + vm.lay.table.args)
		s = vm.typeName(element, depth+1) + "[" + strings.Repeat(",", vm.dimensions(handle, t)-1) + "]"
	} else if t.module != 0 {
		if m := vm.moduleAt(t.module); m.meta != nil {
			if name, ok := m.meta.Type(t.row); ok {
				s = climeta.Keyword(name)
				if s == "" {
					s = climeta.Instantiate(climeta.PlainType(name), vm.typeArgs(handle, t, depth))
				}
			}
		}
	}
	if depth == 0 && s != unknown && len(s) <= maxText {
		vm.names.rememberType(handle, s)
	}
	return s
}

// dimensions returns how many dimensions an array type has.
func (vm *VM) dimensions(addr uint64, t methodTable) int {
	if t.flags&tableSZArray != 0 {
		return 1
	}
	class, ok := vm.mem.Word(addr + vm.lay.table.class)
	var b [1]byte
	if !ok || class&1 != 0 || !vm.mem.Bytes(class+vm.lay.rank, b[:]) || b[0] == 0 || b[0] > 32 {
		return 1
	}
	return int(b[0])
}

// descName names a type that has no MethodTable: a pointer, a reference, a type parameter.
func (vm *VM) descName(addr uint64, depth int) string {
	var b [1]byte
	if !vm.mem.Bytes(addr+vm.lay.typ.kind, b[:]) {
		return "?"
	}
	const (
		pointer   = 0x0f // ECMA-335 II.23.1.16
		byRef     = 0x10
		variable  = 0x13
		function  = 0x1b
		methodVar = 0x1e
	)
	switch b[0] {
	case pointer, byRef:
		of, _ := vm.mem.Word(addr + vm.lay.typ.arg)
		if b[0] == pointer {
			return vm.typeName(of, depth+1) + "*"
		}
		return "ref " + vm.typeName(of, depth+1)
	case function:
		return "delegate*"
	case variable, methodVar:
		return vm.variable(addr)
	}
	return "?"
}

// variable names a type parameter.
func (vm *VM) variable(addr uint64) string {
	var b [4]byte
	at, ok := vm.mem.Word(addr + vm.lay.typ.module)
	if !ok || !vm.mem.Bytes(addr+vm.lay.typ.token, b[:]) {
		return "T"
	}
	if m := vm.moduleAt(at); m.meta != nil {
		if name, ok := m.meta.Cell(climeta.GenericParam, binary.LittleEndian.Uint32(b[:])&0xffffff, 3); ok {
			if s, ok := m.meta.String(name); ok && s != "" {
				return s
			}
		}
	}
	return "T"
}
