package climeta

// Instance is an instance of a generic method, or of a method of a generic type.
type Instance struct {
	Row     uint32   // of MethodDef
	Types   []string // arguments of its type, as C# would write them; "?" for those that are not known
	Methods []string // its own
}

// Flags of a method's signature in code that was compiled ahead of time (src/coreclr/inc/readytorun.h:
// ReadyToRunMethodSigFlags).
const (
	sigMethodArgs = 0x04
	sigSlot       = 0x08
	sigMemberRef  = 0x10
	sigConstraint = 0x20
	sigOwner      = 0x40
	sigContext    = 0x80
)

// Instance reads the signature of an instance of a method, as code that was compiled ahead of time has it. It
// is false if the method is one of another module.
func (m *Metadata) Instance(b []byte) (Instance, bool) {
	s := signature{m: m, b: b}
	i, here := s.instance()
	for _, names := range [][]string{i.Types, i.Methods} {
		for n := range names {
			names[n] = PlainNested(names[n])
		}
	}
	return i, here && !s.bad
}

// SkipInstance returns what follows such a signature.
func SkipInstance(b []byte) (rest []byte, ok bool) {
	s := signature{b: b}
	s.instance()
	return s.b, !s.bad
}

// instance reads the signature of an instance; here is false if the method is not this module's.
func (s *signature) instance() (i Instance, here bool) {
	flags := s.number()
	if flags&(sigSlot|sigConstraint) != 0 {
		s.bad = true
		return i, false
	}
	here = flags&(sigContext|sigMemberRef) == 0
	if flags&sigContext != 0 {
		s.number()
		s.m = nil
	}
	if flags&sigOwner != 0 {
		i.Types = s.owner()
	}
	i.Row = s.number()
	if flags&sigMethodArgs != 0 {
		i.Methods = s.args(0)
	}
	return i, here
}

// owner reads the type of a method, and returns its arguments.
func (s *signature) owner() []string {
	for n := 0; n < maxDepth && len(s.b) > 0; n++ {
		switch s.b[0] {
		case elemNativeValueType:
			s.next()
		case elemModule:
			s.next()
			s.number()
			s.m = nil
		case elemGeneric:
			s.next()
			s.next()
			s.named()
			return s.args(0)
		default:
			s.typ(0)
			return nil
		}
	}
	s.bad = true
	return nil
}

// args reads a number of types and those.
func (s *signature) args(depth int) []string {
	n := s.number()
	if n > maxParams {
		s.bad = true
		return nil
	}
	var out []string
	for range n {
		out = append(out, s.typ(depth+1))
		if s.bad {
			return nil
		}
	}
	return out
}
