package coreclr

import (
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/climeta"
)

// maxFields bounds the fields that a type declares.
const maxFields = 1 << 10

// field is one field of a type.
type field struct {
	off uint64 // in an object from the word after its MethodTable, in a value from its beginning
	typ uint8  // ECMA-335 II.23.1.16: elementClass, elementValue, ...
}

// Kinds of fields.
const (
	elementValue  = 0x11
	elementClass  = 0x12
	elementObject = 0x1c
)

// fieldsOf returns the instance fields that a type itself declares, by name; nil if they cannot be read.
// The class has an array of FieldDesc, each of which names the type, the row of its field in the metadata,
// and its offset (src/coreclr/vm/field.h; class.h: EEClass). What follows the type's own names another
// type.
func (vm *VM) fieldsOf(table uint64) map[string]field {
	l := &vm.lay.table
	class, ok := vm.mem.Word(table + l.class)
	if ok && class&1 != 0 { // an instantiation, which has the class of another one
		table = class &^ 1
		class, ok = vm.mem.Word(table + l.class)
	}
	if !ok || class == 0 || class&7 != 0 {
		return nil
	}
	owner, ok1 := vm.mem.Word(class + vm.lay.class.table)
	list, ok2 := vm.mem.Word(class + vm.lay.class.fields)
	t := vm.methodTable(table)
	if !ok1 || !ok2 || owner != table || list == 0 || list&7 != 0 || t.module == 0 {
		return nil
	}
	m := vm.moduleAt(t.module)
	if m.meta == nil {
		return nil
	}
	const (
		size    = 16
		static  = 1 << 24
		row     = 1<<24 - 1
		few     = 1<<17 - 1 // up to 8 the bits above are of the name's hash if there are few fields
		offset  = 1<<27 - 1
		typeBit = 27
	)
	out := map[string]field{}
	for i := range uint64(maxFields) {
		var b [size]byte
		if !vm.mem.Bytes(list+size*i, b[:]) {
			break
		}
		le := binary.LittleEndian
		if le.Uint64(b[:]) != table {
			break
		}
		first, second := le.Uint32(b[8:]), le.Uint32(b[12:])
		if first&static != 0 {
			continue
		}
		n := first & row
		if m.meta.Rows(climeta.Field) <= few {
			n &= few
		}
		if name, ok := m.meta.Cell(climeta.Field, n, 1); ok {
			if s, ok := m.meta.String(name); ok {
				out[s] = field{off: uint64(second & offset), typ: uint8(second >> typeBit)}
			}
		}
	}
	return out
}
