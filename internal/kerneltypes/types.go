// Package kerneltypes finds the few types that a program needs in the kernel's description of all
// its types (BTF), which has more than a hundred thousand, without loading the rest.
package kerneltypes

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ID is the number of a type in the description.
type ID uint32

// Kind is the kind of a type, as in linux/btf.h.
type Kind uint8

// The kinds.
const (
	Void Kind = iota
	Int
	Ptr
	Array
	Struct
	Union
	Enum
	Fwd
	Typedef
	Volatile
	Const
	Restrict
	Func
	FuncProto
	Var
	DataSec
	Float
	DeclTag
	TypeTag
	Enum64
	kinds
)

// Type is a type in the description.
type Type struct {
	Kind Kind
	Name string
	Size uint32 // of an Int, Struct, Union, Enum, Float
	To   ID     // for types that refer to another type
	Flag bool   // of a Struct or Union: members are described as bit fields

	more []byte // the words after the type's head
	vlen int
}

// Member is a member of a struct or union.
type Member struct {
	Name string
	Type ID
	Bit  uint32 // its offset in bits
	Bits uint32 // width of a bit field in bits, 0: it is not one
}

// Set is a description of types.
type Set struct {
	types, strings []byte
	marks          []uint32 // where every markEvery-th type is
}

const (
	headerSize = 24
	magic      = 0xeB9F
	headSize   = 12
	markEvery  = 64
	longest    = 512 // bytes of a name
)

var errShort = errors.New("the description of the kernel's types is cut short")

// sizes are how many bytes follow a type's head, and how many more for each of its parts.
var sizes = [kinds]struct{ fixed, part uint32 }{
	Int: {4, 0}, Array: {12, 0}, Struct: {0, 12}, Union: {0, 12}, Enum: {0, 8}, FuncProto: {0, 8},
	Var: {4, 0}, DataSec: {0, 12}, DeclTag: {4, 0}, Enum64: {0, 12},
}

// Wanted is a kind of type and a name to find.
type Wanted struct {
	Kind Kind
	Name string
}

// Find scans a description once, and returns it with the types that are wanted. Several types may
// have the same name.
func Find(raw []byte, wanted []Wanted) (*Set, map[Wanted][]ID, error) {
	s, err := open(raw)
	if err != nil {
		return nil, nil, err
	}
	names := make(map[string]bool, len(wanted))
	var kindWanted [kinds]bool
	var begins [1 << 12]bool // whether a wanted name begins with this hash
	for _, w := range wanted {
		if w.Kind >= kinds || len(w.Name) < 3 {
			return nil, nil, fmt.Errorf("look for %q, kind %d: no such types", w.Name, w.Kind)
		}
		names[w.Name], kindWanted[w.Kind] = true, true
		begins[beginning(w.Name[0], w.Name[1], w.Name[2])] = true
	}
	found := map[Wanted][]ID{}
	types, strings := s.types, s.strings
	s.marks = make([]uint32, 0, len(types)/(markEvery*24)+1)
	id := ID(1)
	for at := 0; at < len(types); id++ {
		if len(types)-at < headSize {
			return nil, nil, errShort
		}
		if id%markEvery == 0 {
			s.marks = append(s.marks, uint32(at))
		}
		head := types[at : at+headSize : at+headSize]
		info := binary.LittleEndian.Uint32(head[4:])
		kind := Kind(info >> 24 & 31)
		if kind == Void || kind >= kinds {
			return nil, nil, fmt.Errorf("type %d of the kernel's description is of an unknown kind %d", id, kind)
		}
		at += headSize + int(sizes[kind].fixed+(info&0xffff)*sizes[kind].part)
		if !kindWanted[kind] {
			continue
		}
		name := int(binary.LittleEndian.Uint32(head))
		if name == 0 || name > len(strings)-4 || !begins[beginning(strings[name], strings[name+1], strings[name+2])] {
			continue
		}
		if b := cString(strings[name:]); names[string(b)] {
			w := Wanted{kind, string(b)}
			found[w] = append(found[w], id)
		}
	}
	return s, found, nil
}

func beginning(a, b, c byte) int { return int(a&15)<<8 | int(b&15)<<4 | int(c&15) }

// open finds the parts of a description.
func open(raw []byte) (*Set, error) {
	if len(raw) < headerSize {
		return nil, errShort
	}
	if binary.LittleEndian.Uint16(raw) != magic || raw[2] != 1 {
		return nil, errors.New("the description of the kernel's types has an unknown form")
	}
	word := func(at int) uint64 { return uint64(binary.LittleEndian.Uint32(raw[at:])) }
	body, typeOff, typeLen, strOff, strLen := word(4), word(8), word(12), word(16), word(20)
	if size := uint64(len(raw)); body+typeOff+typeLen > size || body+strOff+strLen > size {
		return nil, errShort
	}
	return &Set{types: raw[body+typeOff:][:typeLen], strings: raw[body+strOff:][:strLen]}, nil
}

func cString(b []byte) []byte {
	for i, c := range b[:min(len(b), longest)] {
		if c == 0 {
			return b[:i]
		}
	}
	return nil
}

func (s *Set) name(off uint32) string {
	if uint64(off) >= uint64(len(s.strings)) {
		return ""
	}
	return string(cString(s.strings[off:]))
}

// Type returns a type by its number.
func (s *Set) Type(id ID) (Type, error) {
	if id == 0 {
		return Type{}, nil
	}
	at, first := 0, ID(1)
	if m := int(id / markEvery); m > 0 {
		if m > len(s.marks) {
			return Type{}, fmt.Errorf("the kernel does not describe a type %d", id)
		}
		at, first = int(s.marks[m-1]), ID(m*markEvery)
	}
	for {
		if len(s.types)-at < headSize {
			return Type{}, fmt.Errorf("the kernel does not describe a type %d", id)
		}
		head := s.types[at:]
		info := binary.LittleEndian.Uint32(head[4:])
		kind := Kind(info >> 24 & 31)
		if kind == Void || kind >= kinds {
			return Type{}, fmt.Errorf("type %d of the kernel's description is of an unknown kind %d", first, kind)
		}
		size := headSize + int(sizes[kind].fixed+(info&0xffff)*sizes[kind].part)
		if len(head) < size {
			return Type{}, errShort
		}
		if first < id {
			first, at = first+1, at+size
			continue
		}
		t := Type{Kind: kind, Name: s.name(binary.LittleEndian.Uint32(head)), Flag: info>>31 != 0, more: head[headSize:size], vlen: int(info & 0xffff)}
		switch last := binary.LittleEndian.Uint32(head[8:]); kind {
		case Int, Struct, Union, Enum, Enum64, Float, DataSec:
			t.Size = last
		default:
			t.To = ID(last)
		}
		return t, nil
	}
}

// Members returns the members of a struct or union.
func (s *Set) Members(t Type) []Member {
	if t.Kind != Struct && t.Kind != Union {
		return nil
	}
	list := make([]Member, t.vlen)
	for i := range list {
		b := t.more[i*12:]
		m := Member{Name: s.name(binary.LittleEndian.Uint32(b)), Type: ID(binary.LittleEndian.Uint32(b[4:])), Bit: binary.LittleEndian.Uint32(b[8:])}
		if t.Flag {
			m.Bit, m.Bits = m.Bit&0xffffff, m.Bit>>24
		}
		list[i] = m
	}
	return list
}

// Element returns an array's element type and the number of elements.
func (t Type) Element() (ID, uint32) {
	if t.Kind != Array {
		return 0, 0
	}
	return ID(binary.LittleEndian.Uint32(t.more)), binary.LittleEndian.Uint32(t.more[8:])
}

// Encoding returns how an integer is encoded: bit 0 says that it is signed.
func (t Type) Encoding() uint8 {
	if t.Kind != Int {
		return 0
	}
	return t.more[3] & 15
}

// maxLinks bounds how many typedefs and qualifiers a type has one after the other.
const maxLinks = 32

// Plain follows typedefs and qualifiers to the type that they stand for.
func (s *Set) Plain(id ID) (ID, Type, error) {
	for range maxLinks {
		t, err := s.Type(id)
		if err != nil {
			return 0, t, err
		}
		switch t.Kind {
		case Typedef, Volatile, Const, Restrict, TypeTag:
			id = t.To
		default:
			return id, t, nil
		}
	}
	return 0, Type{}, fmt.Errorf("type %d of the kernel's description leads nowhere", id)
}
