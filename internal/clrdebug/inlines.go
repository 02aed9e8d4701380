package clrdebug

import "sort"

// Inlines is what the compiler recorded of the methods that it inlined into one, if the program runs
// with DOTNET_RichDebugInfo=1 (src/coreclr/jit/jitconfigvalues.h; the form is that of
// CompressDebugInfo::CompressRichDebugInfo in src/coreclr/vm/debuginfostore.cpp, the same from 8 to 10).
type Inlines struct {
	Nodes  []Inlinee // the method itself is the first one
	Places []Place   // by ascending offset
}

// Inlinee is a method that was inlined into its parent.
type Inlinee struct {
	Method uint64 // MethodDesc
	IL     int32  // offset of the instruction of the parent that called it
	Parent uint32 // index; NoParent: none
}

// Place says that from an offset in the code on, the code is of an instruction of an inlinee.
type Place struct {
	Native uint32
	Node   uint32 // index of the inlinee
	IL     int32  // negative: no instruction
}

// NoParent is the Parent of the method itself.
const NoParent = 1<<32 - 1

// Bounds of what is known of one method.
const (
	maxInlinees = 1 << 14
	maxPlaces   = 1 << 18
)

// DecodeInlines decodes it: the numbers of inlinees and of places, the inlinees with the indices of
// their first child and their next sibling, and the places, all as differences to the one before. It
// returns nil if nothing was inlined, or if it makes no sense.
func DecodeInlines(data []byte) *Inlines {
	r := NewNibbles(data)
	n, m := r.Number(), r.Number()
	// An inlinee takes 19 nibbles at least, a place four.
	if r.Bad || n < 2 || n > maxInlinees || m > maxPlaces || 19*uint64(n)+4*uint64(m) > 2*uint64(len(data)) {
		return nil
	}
	const prologue = -2 // the offset that the first one's is relative to
	in := &Inlines{Nodes: make([]Inlinee, n), Places: make([]Place, m)}
	child, sibling := make([]uint32, n), make([]uint32, n)
	il, lastChild, lastSibling := int32(prologue), int32(0), int32(0)
	for i := range in.Nodes {
		node := &in.Nodes[i]
		node.Method, node.Parent = r.Word(), NoParent
		il += r.Signed()
		lastChild += r.Signed()
		lastSibling += r.Signed()
		if r.Bad || lastChild < 0 || lastSibling < 0 || uint32(lastChild) >= n || uint32(lastSibling) >= n {
			return nil
		}
		node.IL, child[i], sibling[i] = il, uint32(lastChild), uint32(lastSibling)
	}
	for i := range in.Nodes {
		for k := child[i]; k != 0; k = sibling[k] {
			if in.Nodes[k].Parent != NoParent {
				return nil
			}
			in.Nodes[k].Parent = uint32(i)
		}
	}
	native, node := uint32(0), int32(0)
	il = prologue
	for i := range in.Places {
		native += r.Number()
		node += r.Signed()
		il += r.Signed()
		r.Number() // what is known of the place
		if r.Bad || node < 0 || uint32(node) >= n {
			return nil
		}
		in.Places[i] = Place{native, uint32(node), il}
	}
	return in
}

// At returns the place that the code at an offset belongs to; false if that is not known.
func (in *Inlines) At(off uint32) (Place, bool) {
	i := sort.Search(len(in.Places), func(i int) bool { return in.Places[i].Native > off })
	if i == 0 {
		return Place{}, false
	}
	return in.Places[i-1], true
}
