package jfr

import (
	"fmt"
	"strings"

	"github.com/candid-profiler/candid/internal/javaname"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// tracePlan is how a stack is read: a number that says whether it is truncated, and an array of
// frames.
type tracePlan struct {
	plan      *plan
	truncated int // index of the step; -1: none
	frames    int
	frame     slots
}

// tracePlan finds the fields of a stack.
func (s *schema) tracePlan(t *class) (tracePlan, error) {
	p, err := s.planOf(t)
	if err != nil {
		return tracePlan{}, err
	}
	out := tracePlan{plan: p, truncated: -1, frames: -1}
	for i := range p.steps {
		f := &t.fields[p.steps[i].field]
		switch {
		case f.name == "truncated" && p.steps[i].op == opByte && !f.array:
			out.truncated = i
		case f.name == "frames" && p.steps[i].op == opStruct && f.array:
			out.frames = i
			if out.frame, err = s.slotsOf(s.byID[f.typ], []string{"method", "lineNumber", "bytecodeIndex", "type"}, nil); err != nil {
				return out, err
			}
		}
	}
	if out.frames < 0 {
		return out, fmt.Errorf("%w: its stacks have no frames", ErrMalformed)
	}
	return out, nil
}

// maxFrames bounds the depth of a stack: async-profiler has 2048 frames, candid at most some 3000.
const maxFrames = 1 << 14

// foreignStack returns the node of a stack by its number; 0 is none.
func (r *reader) foreignStack(c *chunk, id uint64) (node uint32, truncated bool, err error) {
	p := &c.pools
	if n, ok := p.nodes[id]; ok {
		return n >> 1, n&1 != 0, nil
	}
	at, ok := p.traces.get(id)
	if !ok {
		return root, false, nil
	}
	cur := &cursor{b: p.checkpoints[at.checkpoint], pos: int(at.pos)}
	var frames []profile.Frame
	for i := range r.readers.trace.plan.steps {
		st := &r.readers.trace.plan.steps[i]
		switch {
		case i == r.readers.trace.truncated:
			truncated = cur.byte() != 0
		case i == r.readers.trace.frames:
			n := st.count(cur)
			var rec record
			for j := range n {
				rec = record{}
				r.readers.trace.frame.read(cur, &rec)
				if cur.err != nil {
					return root, false, cur.err
				}
				if j < maxFrames {
					frames = append(frames, r.foreignFrame(c, &rec))
				}
			}
			truncated = truncated || n > maxFrames
		case st.array:
			for range st.count(cur) {
				st.skip(cur)
			}
		default:
			st.skip(cur)
		}
	}
	if cur.err != nil {
		return root, false, cur.err
	}
	for i := len(frames) - 1; i >= 0; i-- {
		node = r.b.Node(node, r.b.Frame(frames[i]))
	}
	kept := node << 1
	if truncated {
		kept |= 1
	}
	p.nodes[id] = kept
	return node, truncated, nil
}

// kernelDescriptor is a descriptor that async-profiler writes for what is not a Java method
// (Lookup::fillNativeMethodInfo in src/lookup.cpp).
const kernelDescriptor = "(Lk;)L;"

var kindOfType = map[string]walk.Kind{
	frameTypeNames[frameInterpreted]: walk.KindInterpreted,
	frameTypeNames[frameJIT]:         walk.KindCompiled,
	frameTypeNames[frameInlined]:     walk.KindInlined,
	frameTypeNames[frameNative]:      walk.KindNativeMethod,
	frameTypeNames[frameCPP]:         walk.KindNative,
	frameTypeNames[frameKernel]:      walk.KindKernel,
	frameTypeNames[frameC1]:          walk.KindC1,
}

// foreignFrame makes a frame of a method, a line, a bytecode index and a type.
func (r *reader) foreignFrame(c *chunk, rec *record) profile.Frame {
	f := profile.Frame{Line: int32(rec.n[1]), BCI: int32(rec.n[2]), Kind: r.frameKind(c, rec.n[3])}
	f.Line, f.BCI = max(f.Line, 0), max(f.BCI, -1)
	fn, native := r.foreignFunction(c, rec.n[0])
	f.Func = fn
	if native {
		f.BCI = -1
		if f.Kind == walk.KindNativeMethod {
			f.Kind = walk.KindNative
		}
	}
	return f
}

func (r *reader) frameKind(c *chunk, id uint64) walk.Kind {
	t, _ := c.pools.frameTypes.get(id)
	return kindOfType[c.pools.text(t)] // unknown if there is none
}

// foreignFunction returns the function of a method, and whether it is native code.
func (r *reader) foreignFunction(c *chunk, id uint64) (fn uint32, native bool) {
	p := &c.pools
	if kept, ok := p.funcs.get(id); ok {
		return kept >> 1, kept&1 != 0
	}
	m, _ := p.methods.get(id)
	class, _ := p.classes.get(m.class)
	className, name, descriptor := p.symbol(class), p.symbol(m.name), p.symbol(m.descriptor)
	native = descriptor == nativeDescriptor || descriptor == kernelDescriptor
	var f profile.Func
	switch {
	case native:
		f = profile.Func{Name: name, Module: className}
		if descriptor == kernelDescriptor {
			f.Module = "[kernel]"
		}
	default:
		if !strings.HasPrefix(descriptor, "(") { // some tools write it behind the name
			name, descriptor = javaname.Split(name)
		}
		f = profile.Func{Signature: descriptor}
		if className == "" {
			f.Name = name
		} else {
			f.Name, f.Raw = javaname.Function(withoutHash(className), name)
		}
	}
	if f.Name == "" {
		f.Name, f.NoName = "[unknown]", true
	}
	fn = r.b.Func(f)
	kept := fn << 1
	if native {
		kept |= 1
	}
	p.funcs.put(id, kept)
	return fn, native
}

// withoutHash removes the number that the JDK's recorder appends to the names of hidden classes,
// and to those of VM-anonymous classes in 8 and 11. No class has a number as its name.
func withoutHash(class string) string {
	i := strings.LastIndexByte(class, '/')
	if i > 0 && i+1 < len(class) && strings.Trim(class[i+1:], "0123456789") == "" {
		return class[:i]
	}
	return class
}
