package record

import (
	"slices"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/walk"
)

// frameKey identifies the physical frames of one process that are the same for the profile.
type frameKey struct {
	ref   uint64
	pc    uint64 // 0 if ref alone identifies it
	owner uint8
	kind  walk.Kind
	prov  walk.Provenance
	flags walk.FrameFlags
}

func (k *frameKey) hash() uint64 {
	h := k.ref*0x9e3779b97f4a7c15 ^ k.pc*0xc2b2ae3d27d4eb4f
	h ^= uint64(k.owner)<<24 | uint64(k.kind)<<16 | uint64(k.prov)<<8 | uint64(k.flags)
	h *= 0xff51afd7ed558ccd
	return h ^ h>>32
}

// interner converts the walked stacks of one process to nodes of the profile's trie. Names are
// looked up once for each distinct physical frame; after that a stack costs a comparison with the
// thread's last one and a hash lookup for each frame that differs.
type interner struct {
	b         *profile.Builder
	resolvers []symbol.Resolver // by walk.Frame.Owner; nil if nobody resolves it
	byRef     []bool            // by owner: Ref identifies the frame, whatever its PC is
	kernel    symbol.Resolver

	keys    []frameKey // of the distinct physical frames
	ends    []uint32   // by frame, the end in logical of what it stands for; the previous frame's end is the begin
	blank   []bool     // by frame, whether it stands for a managed frame without a name
	logical []uint32   // profile frames; those of one physical frame outermost first
	table   []uint32   // open addressing over keys: index+1, 0 empty

	last    map[uint32]*lastStack
	scratch []symbol.Frame
	patient bool // wait for names
}

// lastStack is a thread's previous stack, outermost frame first. Successive
// stacks of a thread share most of their outer frames.
type lastStack struct {
	frames []walk.Frame
	nodes  []uint32
	blank  []bool // by node, whether the method of this frame or of one further out is unknown
}

// maxLast bounds how many threads' last stacks are kept.
const maxLast = 256

func newInterner(b *profile.Builder, kernel symbol.Resolver) *interner {
	return &interner{b: b, kernel: kernel, table: make([]uint32, 1024), last: make(map[uint32]*lastStack)}
}

// maxKeys is how many physical frames an interner knows: a runtime that recompiles its code again
// and again always has new ones.
var maxKeys = 1 << 18

// anew returns an interner like in that knows no frame yet.
func (in *interner) anew(b *profile.Builder) *interner {
	next := newInterner(b, in.kernel)
	next.resolvers, next.byRef = in.resolvers, in.byRef
	return next
}

func (in *interner) key(f *walk.Frame) frameKey {
	k := frameKey{ref: f.Ref, pc: f.PC, owner: f.Owner, kind: f.Kind, prov: f.Prov, flags: f.Flags}
	// A runtime's stubs share a Ref: only the PC distinguishes them.
	if f.Kind != walk.KindKernel && f.Kind != walk.KindStub && int(f.Owner) < len(in.byRef) && in.byRef[f.Owner] {
		k.pc = 0
	}
	return k
}

// node returns the trie node of a whole stack. It returns false if a frame cannot be named yet; all
// others have been named then.
func (in *interner) node(tid uint32, st *walk.Stack) (uint32, bool) {
	l := in.last[tid]
	if l == nil {
		if len(in.last) >= maxLast {
			clear(in.last)
		}
		l = &lastStack{}
		in.last[tid] = l
	}
	n := len(st.Frames)
	node := uint32(profile.RootNode)
	i := min(st.Same, len(l.frames))
	for ; i < n && i < len(l.frames); i++ {
		f, known := &st.Frames[n-1-i], &l.frames[i]
		if *f != *known && in.key(f) != in.key(known) {
			break
		}
	}
	if i > 0 {
		node = l.nodes[i-1]
	}
	blank := i > 0 && l.blank[i-1]
	l.frames, l.nodes, l.blank = l.frames[:i], l.nodes[:i], l.blank[:i]
	for ; i < n; i++ {
		f := &st.Frames[n-1-i]
		id, ok := in.physical(in.key(f), f)
		if !ok {
			for j := range st.Frames[:n-1-i] {
				f := &st.Frames[j]
				in.physical(in.key(f), f)
			}
			return 0, false
		}
		for _, logical := range in.standsFor(id) {
			node = in.b.Node(node, logical)
		}
		l.frames = append(l.frames, *f)
		l.nodes = append(l.nodes, node)
		blank = blank || in.blank[id]
		l.blank = append(l.blank, blank)
	}
	return node, true
}

// unnamed reports whether, in the stack that node last handled for a thread, the method of some
// managed frame is unknown.
func (in *interner) unnamed(tid uint32) bool {
	l := in.last[tid]
	return l != nil && len(l.blank) > 0 && l.blank[len(l.blank)-1]
}

// standsFor returns the profile frames of the physical frame with an index in keys.
func (in *interner) standsFor(i uint32) []uint32 {
	from := uint32(0)
	if i > 0 {
		from = in.ends[i-1]
	}
	return in.logical[from:in.ends[i]]
}

// physical returns the index of a physical frame in keys, and names it if it is new; false if it
// cannot be named yet.
func (in *interner) physical(k frameKey, f *walk.Frame) (uint32, bool) {
	mask := uint64(len(in.table) - 1)
	for h := k.hash() & mask; ; h = (h + 1) & mask {
		e := in.table[h]
		if e == 0 {
			break
		}
		if in.keys[e-1] == k {
			return e - 1, true
		}
	}
	if p := in.preparer(f); p != nil && !in.patient && !p.Prepare(*f) {
		return 0, false
	}
	return in.add(k, f), true
}

// preparer returns f's resolver if that may need a while before it can name f.
func (in *interner) preparer(f *walk.Frame) symbol.Preparer {
	if f.Kind == walk.KindKernel || int(f.Owner) >= len(in.resolvers) {
		return nil
	}
	p, _ := in.resolvers[f.Owner].(symbol.Preparer)
	return p
}

func (in *interner) add(k frameKey, f *walk.Frame) uint32 {
	if 2*(len(in.keys)+1) > len(in.table) {
		in.grow()
	}
	id := uint32(len(in.keys))
	in.blank = append(in.blank, in.name(f))
	in.keys = append(in.keys, k)
	in.ends = append(in.ends, uint32(len(in.logical)))
	in.insert(k, id)
	return id
}

func (in *interner) insert(k frameKey, id uint32) {
	mask := uint64(len(in.table) - 1)
	h := k.hash() & mask
	for in.table[h] != 0 {
		h = (h + 1) & mask
	}
	in.table[h] = id + 1
}

func (in *interner) grow() {
	in.table = make([]uint32, 2*len(in.table))
	for id := range in.keys {
		in.insert(in.keys[id], uint32(id))
	}
}

// name resolves a physical frame and appends what it stands for to logical. It reports whether a
// managed frame among that has no name.
func (in *interner) name(f *walk.Frame) (blank bool) {
	in.scratch = in.scratch[:0]
	switch {
	case f.Kind == walk.KindKernel:
		if in.kernel != nil {
			in.scratch = in.kernel.Resolve(*f, in.scratch)
		}
	case int(f.Owner) < len(in.resolvers) && in.resolvers[f.Owner] != nil:
		in.scratch = in.resolvers[f.Owner].Resolve(*f, in.scratch)
	}
	if len(in.scratch) == 0 {
		in.scratch = append(in.scratch, unknownFrame(f))
	}
	// Frames are added in the order in which they are named.
	from := len(in.logical)
	for i := range in.scratch {
		in.logical = append(in.logical, in.b.Frame(profileFrame(in.b, &in.scratch[i], f)))
		blank = blank || in.scratch[i].NoName && profile.ManagedFrame(in.scratch[i].Kind)
	}
	slices.Reverse(in.logical[from:])
	return blank
}

// unknownFrame returns a frame for code that no file and no runtime claims.
func unknownFrame(f *walk.Frame) symbol.Frame {
	if f.Kind == walk.KindKernel {
		return symbol.Frame{Function: "[kernel]", BCI: -1, Kind: f.Kind, NoName: true} // its address may be secret
	}
	return symbol.Frame{Function: "[unknown]", BCI: -1, Kind: f.Kind, Addr: f.PC, NoName: true}
}

func profileFrame(b *profile.Builder, s *symbol.Frame, f *walk.Frame) profile.Frame {
	fn := b.Func(profile.Func{
		Name: s.Function, Raw: s.Raw, Signature: s.Signature,
		Module: s.Module, File: s.File, Start: s.Start, NoName: s.NoName,
	})
	out := profile.Frame{
		Func: fn, Line: s.Line, BCI: s.BCI, Kind: s.Kind, Prov: f.Prov,
		Flags: s.Flags | f.Flags, Addr: s.Addr,
	}
	switch out.Kind {
	case walk.KindInterpreted, walk.KindCompiled, walk.KindC1, walk.KindC2, walk.KindNativeMethod, walk.KindStub, walk.KindInlined,
		walk.KindTier0, walk.KindInstrumented, walk.KindOSR, walk.KindTier1, walk.KindReadyToRun:
		// Addresses of generated code mean nothing after the run, and would split one place into
		// many frames. Functions that are inlined in native code have the address of the frame that
		// they are in.
		out.Addr = 0
	}
	return out
}
