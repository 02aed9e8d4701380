package climeta

import "strings"

// Type is the name of a type in the terms of metadata.
type Type struct {
	Namespace string
	Names     []string // outermost first; generic ones end with ` and a number
}

// String returns the name as reflection does: System.Collections.Generic.Dictionary`2+Enumerator.
func (t Type) String() string {
	s := strings.Join(t.Names, "+")
	if t.Namespace != "" {
		s = t.Namespace + "." + s
	}
	return s
}

// Method is a method's definition.
type Method struct {
	Name  string
	Owner uint32 // row of its type in TypeDef; 0 if that is not known
	Flags uint16 // MethodAttributes (II.23.1.10)
	sig   uint32
}

// Static reports whether the method has no receiver.
func (m Method) Static() bool { return m.Flags&0x10 != 0 }

// Method returns the method in a row of MethodDef.
func (m *Metadata) Method(row uint32) (Method, bool) {
	flags, ok1 := m.Cell(MethodDef, row, 2)
	name, ok2 := m.Cell(MethodDef, row, 3)
	sig, ok3 := m.Cell(MethodDef, row, 4)
	if !ok1 || !ok2 || !ok3 {
		return Method{}, false
	}
	text, ok := m.String(name)
	return Method{Name: text, Owner: m.ownerOf(row), Flags: uint16(flags), sig: sig}, ok
}

// ownerOf returns the row of the type that a method belongs to: types are in the order of their
// first methods, and methods with the same owner follow each other (II.22.37).
func (m *Metadata) ownerOf(method uint32) uint32 {
	if m.rows[MethodPtr] > 0 {
		// Edited metadata lists methods through another table.
		for i := uint32(1); i <= m.rows[MethodPtr]; i++ {
			if v, ok := m.Cell(MethodPtr, i, 0); ok && v == method {
				method = i
				break
			}
		}
	}
	lo, hi := uint32(1), m.rows[TypeDef]+1 // the owner is the last type whose list starts at or before
	for lo < hi {
		mid := lo + (hi-lo)/2
		first, ok := m.Cell(TypeDef, mid, 5)
		if !ok {
			return 0
		}
		if first <= method {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

// Type returns the name of the type in a row of TypeDef.
func (m *Metadata) Type(row uint32) (Type, bool) {
	var t Type
	for range maxNesting {
		name, ok1 := m.Cell(TypeDef, row, 1)
		space, ok2 := m.Cell(TypeDef, row, 2)
		text, ok3 := m.String(name)
		if !ok1 || !ok2 || !ok3 {
			return Type{}, false
		}
		t.Names = append([]string{text}, t.Names...)
		outer := m.enclosing(row)
		if outer == 0 {
			t.Namespace, _ = m.String(space)
			return t, true
		}
		row = outer
	}
	return Type{}, false
}

// enclosing returns the row of the type that a type is nested in, 0 for none. The table is sorted
// by the nested type (II.22.32).
func (m *Metadata) enclosing(row uint32) uint32 {
	lo, hi := uint32(1), m.rows[NestedClass]+1
	for lo < hi {
		mid := lo + (hi-lo)/2
		nested, ok := m.Cell(NestedClass, mid, 0)
		switch {
		case !ok:
			return 0
		case nested == row:
			outer, _ := m.Cell(NestedClass, mid, 1)
			return outer
		case nested < row:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return 0
}

// reference returns the name of the type in a row of TypeRef.
func (m *Metadata) reference(row uint32) (Type, bool) {
	var t Type
	for range maxNesting {
		scope, ok1 := m.Cell(TypeRef, row, 0)
		name, ok2 := m.Cell(TypeRef, row, 1)
		space, ok3 := m.Cell(TypeRef, row, 2)
		text, ok4 := m.String(name)
		if !ok1 || !ok2 || !ok3 || !ok4 {
			return Type{}, false
		}
		t.Names = append([]string{text}, t.Names...)
		table, outer, ok := decode(resolutionScope, scope)
		if !ok || table != TypeRef {
			t.Namespace, _ = m.String(space)
			return t, true
		}
		row = outer
	}
	return Type{}, false
}

// TypeParams returns the names of the type parameters of a type (table TypeDef) or of a method
// (MethodDef), in their order. The table is sorted by owner (II.22.20).
func (m *Metadata) TypeParams(table int, row uint32) []string {
	owner := row << 1
	if table == MethodDef {
		owner |= 1
	}
	lo, hi := uint32(1), m.rows[GenericParam]+1
	for lo < hi {
		mid := lo + (hi-lo)/2
		if v, ok := m.Cell(GenericParam, mid, 2); ok && v < owner {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	var out []string
	for ; len(out) < maxParams; lo++ {
		v, ok := m.Cell(GenericParam, lo, 2)
		if !ok || v != owner {
			break
		}
		name, _ := m.Cell(GenericParam, lo, 3)
		text, _ := m.String(name)
		out = append(out, text)
	}
	return out
}
