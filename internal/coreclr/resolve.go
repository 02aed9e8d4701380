package coreclr

import (
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/walk"
)

// nameTable is what is known of names.
type nameTable struct {
	types map[uint64]string
}

const maxTypes = 1 << 16

func (t *nameTable) open() { t.types = map[uint64]string{} }

func (t *nameTable) rememberType(handle uint64, s string) {
	if len(t.types) >= maxTypes {
		clear(t.types)
	}
	t.types[handle] = s
}

var _ symbol.Resolver = (*VM)(nil)

// Resolve appends the method that a frame of this VM stands for, after those that were inlined into it
// there, as far as the runtime has recorded them. It must be called in the batch in which the frame was
// walked. The Ref of a frame is the id of its code<<32 | the offset in it; 0 for
// a stub of which nothing is known.
func (vm *VM) Resolve(f walk.Frame, out []symbol.Frame) []symbol.Frame {
	s := symbol.Frame{BCI: -1, Kind: f.Kind, Flags: f.Flags, Addr: f.PC}
	id := f.Ref >> 32
	if id == 0 || id >= uint64(len(vm.code.all)) {
		s.Function = "[stub]"
		// An image has nothing but stubs between its functions. Of code that was generated, it cannot be
		// told any more whether it was a method's.
		if in := vm.sectionOf(f.PC); vm.ended() && (in == nil || in.kind != image) {
			s.Function, s.Kind, s.NoName = unknownMethod, walk.KindCompiled, true
		}
		return append(out, s)
	}
	c := vm.code.all[id]
	if c.stub != 0 || c.method == 0 && c.image == nil {
		s.Function = "[stub]"
		return append(out, s)
	}
	n := vm.name(c)
	s.Function, s.Raw, s.Signature = n.function, n.raw, n.signature
	s.NoName = n.function == unknownMethod || n.function == unloaded
	off := uint32(f.Ref)
	if f.Flags&walk.ReturnAddress != 0 {
		off--
	}
	il, inlined := int32(0), false
	out, il, inlined = vm.appendInlined(out, c, off, &s)
	file, line, ok := "", int32(0), false
	if inlined {
		file, line, ok = vm.lineAt(n, il)
	} else {
		file, line, ok = vm.line(c, n, off)
	}
	if ok {
		s.File, s.Line = symbol.Printable(file), line
	}
	if n.stub {
		s.Kind = walk.KindStub
	}
	return append(out, s)
}
