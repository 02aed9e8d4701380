package climeta

import (
	"strconv"
	"strings"
)

// Parameters returns the types of a method's parameters as C# would write them: "int, string[]". It
// is false if the signature cannot be read. owner are the names of the type parameters of the
// method's type, own are those of the method itself.
func (m *Metadata) Parameters(of Method, owner, own []string) (string, bool) {
	b, ok := m.Blob(of.sig, maxSignature)
	if !ok || len(b) == 0 {
		return "", false
	}
	s := signature{m: m, b: b[1:], types: owner, methods: own}
	const generic = 0x10 // II.23.2.1
	if b[0]&generic != 0 {
		s.number()
	}
	n := s.number()
	if n > maxParams {
		return "", false
	}
	s.typ(0) // what is returned
	var out []string
	for range n {
		out = append(out, s.typ(0))
		if s.bad {
			return "", false
		}
	}
	return strings.Join(out, ", "), !s.bad
}

// unknownType stands for a type whose name is not known.
const unknownType = "?"

// signature is the rest of a signature that is being read.
type signature struct {
	m              *Metadata
	b              []byte
	types, methods []string
	bad            bool
}

func (s *signature) number() uint32 {
	v, n, ok := Compressed(s.b)
	if !ok {
		s.bad = true
		return 0
	}
	s.b = s.b[n:]
	return v
}

func (s *signature) next() byte {
	if len(s.b) == 0 {
		s.bad = true
		return 0
	}
	c := s.b[0]
	s.b = s.b[1:]
	return c
}

// Primitive returns C#'s name of an element type (II.23.1.16); "" if it is not a simple type.
func Primitive(element byte) string {
	if int(element) < len(primitives) {
		return primitives[element]
	}
	return ""
}

var primitives = [...]string{0x01: "void", 0x02: "bool", 0x03: "char", 0x04: "sbyte", 0x05: "byte", 0x06: "short", 0x07: "ushort",
	0x08: "int", 0x09: "uint", 0x0a: "long", 0x0b: "ulong", 0x0c: "float", 0x0d: "double", 0x0e: "string",
	0x16: "TypedReference", 0x18: "nint", 0x19: "nuint", 0x1c: "object"}

// Element types with more behind them (II.23.1.16).
const (
	elemPointer   = 0x0f
	elemByRef     = 0x10
	elemValueType = 0x11
	elemClass     = 0x12
	elemVar       = 0x13
	elemArray     = 0x14
	elemGeneric   = 0x15
	elemFunction  = 0x1b
	elemSZArray   = 0x1d
	elemMVar      = 0x1e
	elemModReq    = 0x1f
	elemModOpt    = 0x20
	elemSentinel  = 0x41
	elemPinned    = 0x45
)

// Element types of signatures that were compiled ahead of time (docs/design/coreclr/botr/
// readytorun-format.md, "Fixups").
const (
	elemNativeValueType = 0x3d
	elemCanon           = 0x3e
	elemModule          = 0x3f
)

// typ reads a type (II.23.2.12).
func (s *signature) typ(depth int) string {
	if depth > maxDepth {
		s.bad = true
	}
	if s.bad {
		return ""
	}
	switch c := s.next(); c {
	case elemPointer:
		return s.typ(depth+1) + "*"
	case elemByRef:
		return "ref " + s.typ(depth+1)
	case elemValueType, elemClass:
		return s.named()
	case elemVar:
		return s.param(s.types, "T")
	case elemMVar:
		return s.param(s.methods, "M")
	case elemSZArray:
		return s.typ(depth+1) + "[]"
	case elemArray:
		return s.array(depth)
	case elemGeneric:
		s.next()
		name := s.named()
		args := s.args(depth)
		if s.bad {
			return ""
		}
		return Instantiate(name, args)
	case elemModReq, elemModOpt:
		s.number()
		return s.typ(depth + 1)
	case elemSentinel, elemPinned:
		return s.typ(depth + 1)
	case elemFunction:
		return s.function(depth)
	case elemCanon:
		return "System.__Canon"
	case elemNativeValueType:
		return s.typ(depth + 1)
	case elemModule: // what follows is numbered as in another module
		s.number()
		m := s.m
		s.m = nil
		s.typ(depth + 1)
		s.m = m
		return unknownType
	default:
		name := Primitive(c)
		s.bad = s.bad || name == ""
		return name
	}
}

func (s *signature) array(depth int) string {
	of := s.typ(depth + 1)
	rank := s.number()
	for range 2 { // sizes and lower bounds
		n := s.number()
		for range n {
			if s.number(); s.bad {
				return ""
			}
		}
	}
	if rank == 0 || rank > 32 {
		s.bad = true
		return ""
	}
	return of + "[" + strings.Repeat(",", int(rank)-1) + "]"
}

// function reads the type of a pointer to a function.
func (s *signature) function(depth int) string {
	if s.next()&0x10 != 0 {
		s.number()
	}
	n := s.number()
	if n > maxParams {
		s.bad = true
		return ""
	}
	returned := s.typ(depth + 1)
	var args []string
	for range n {
		args = append(args, s.typ(depth+1))
		if s.bad {
			return ""
		}
	}
	return "delegate*<" + strings.Join(append(args, returned), ", ") + ">"
}

func (s *signature) param(names []string, prefix string) string {
	i := s.number()
	if int64(i) < int64(len(names)) {
		return names[i]
	}
	return prefix + strconv.Itoa(int(i))
}

// named reads the name of a type that is defined somewhere.
func (s *signature) named() string {
	table, row, ok := decode(typeDefOrRef, s.number())
	if !ok || s.bad {
		s.bad = true
		return ""
	}
	if s.m == nil {
		return unknownType
	}
	var t Type
	switch table {
	case TypeDef:
		t, ok = s.m.Type(row)
	case TypeRef:
		t, ok = s.m.reference(row)
	default:
		ok = false
	}
	s.bad = s.bad || !ok
	return t.String()
}

// Instantiate puts arguments into the name of a generic type, which has ` and a number for each
// part that takes some: List`1 becomes List<int>. Arguments that are left over are appended.
func Instantiate(name string, args []string) string {
	var out strings.Builder
	for len(args) > 0 {
		i := strings.IndexByte(name, '`')
		if i < 0 {
			break
		}
		end := i + 1
		for end < len(name) && name[end] >= '0' && name[end] <= '9' {
			end++
		}
		n, err := strconv.Atoi(name[i+1 : end])
		out.WriteString(name[:i])
		if n = min(n, len(args)); err == nil && n > 0 {
			out.WriteString("<" + strings.Join(args[:n], ", ") + ">")
			args = args[n:]
		}
		name = name[end:]
	}
	out.WriteString(name)
	if len(args) > 0 {
		out.WriteString("<" + strings.Join(args, ", ") + ">")
	}
	return out.String()
}
