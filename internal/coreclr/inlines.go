package coreclr

import (
	"github.com/candid-profiler/candid/internal/clrdebug"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/walk"
)

// maxInlineDepth bounds the depth of inlining.
const maxInlineDepth = 64

// inlinesOf reads what is known of methods that were inlined into one; nil if that is nothing.
func (vm *VM) inlinesOf(c *code) *clrdebug.Inlines {
	if c.rich {
		return c.inlines
	}
	c.rich = true
	d, ok := vm.debugInfoOf(c)
	if !ok || d.richSize == 0 {
		return nil
	}
	data := make([]byte, d.richSize)
	if vm.mem.Bytes(d.rich, data) {
		c.inlines = clrdebug.DecodeInlines(data)
	}
	return c.inlines
}

// appendInlined appends the methods that were inlined into a method at an offset of its code, innermost
// first, each like the frame of the method itself. il is the instruction of the method that called the
// outermost of them; it is false if there are none.
func (vm *VM) appendInlined(out []symbol.Frame, c *code, off uint32, like *symbol.Frame) (frames []symbol.Frame, il int32, ok bool) {
	in := vm.inlinesOf(c)
	if in == nil {
		return out, 0, false
	}
	p, ok := in.At(off)
	if !ok || p.Node == 0 {
		return out, 0, false
	}
	frames, il = out, p.IL
	for depth, k := 0, p.Node; k != 0; depth++ {
		node := &in.Nodes[k]
		if depth == maxInlineDepth || node.Parent == clrdebug.NoParent {
			return out, 0, false // it leads in circles, or nowhere
		}
		n := vm.nameInlinee(c, k)
		s := *like
		s.Kind = walk.KindInlined
		s.Function, s.Raw, s.Signature = n.function, n.raw, n.signature
		s.NoName = n.function == unknownMethod
		s.File, s.Line = "", 0
		if file, line, ok := vm.lineAt(n, il); ok {
			s.File, s.Line = symbol.Printable(file), line
		}
		frames = append(frames, s)
		il, k = node.IL, node.Parent
	}
	return frames, il, true
}

// nameInlinee finds out what an inlined method is called.
func (vm *VM) nameInlinee(c *code, node uint32) *named {
	if c.inlinees == nil {
		c.inlinees = make([]named, len(c.inlines.Nodes))
	}
	n := &c.inlinees[node]
	if n.known {
		return n
	}
	*n = named{known: true, function: unknownMethod}
	if d, ok := vm.methodDesc(c.inlines.Nodes[node].Method); ok && d.kind == descDynamic {
		vm.nameDynamic(n, d)
	} else if ok {
		vm.nameMethod(n, d)
	}
	return n
}
