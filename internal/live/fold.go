package live

import (
	"cmp"
	"iter"
	"slices"

	"github.com/candid-profiler/candid/internal/profile"
)

// folder sums stacks by the methods on them.
type folder struct {
	sum     []selfTotal // by face
	touched []uint32    // faces that have a sum
	met     []uint32    // by method: the last stack that it was met on
	stacks  uint32
}

func (f *folder) begin(faces, methods int) {
	f.grow(faces, methods)
	if f.stacks > 1<<31 {
		clear(f.met)
		f.stacks = 0
	}
}

func (f *folder) grow(faces, methods int) {
	if n := faces - len(f.sum); n > 0 {
		f.sum = append(f.sum, make([]selfTotal, n)...)
	}
	if n := methods - len(f.met); n > 0 {
		f.met = append(f.met, make([]uint32, n)...)
	}
}

func (f *folder) add(at uint32, c selfTotal) {
	if f.sum[at].total == (profile.Count{}) {
		f.touched = append(f.touched, at)
	}
	f.sum[at].add(c)
}

// stack counts one stack, given from the inside out. A method counts once, as the kind of its
// innermost occurrence.
func (f *folder) stack(c profile.Count, frames iter.Seq2[uint32, face]) {
	f.stacks++
	self := c
	for at, fc := range frames {
		if f.met[fc.method] == f.stacks {
			continue
		}
		f.met[fc.method] = f.stacks
		f.add(at, selfTotal{self, c})
		self = profile.Count{}
	}
}

// take appends the sums to out, and resets them.
func (f *folder) take(out []faceCount) []faceCount {
	for _, at := range f.touched {
		out = append(out, faceCount{at, f.sum[at]})
		f.sum[at] = selfTotal{}
	}
	f.touched = f.touched[:0]
	return out
}

// outwards returns the faces of a stack from the inside out.
func (n *names) outwards(node uint32) iter.Seq2[uint32, face] {
	return func(yield func(uint32, face) bool) {
		for node != profile.RootNode {
			at := n.trie.At(node)
			if !yield(at.Frame, n.faces[at.Frame]) {
				return
			}
			node = at.Parent
		}
	}
}

// fold sums a slot by methods. A slot that is over is summed once.
func (m *Model) fold(s *slot) []faceCount {
	if !s.dirty {
		return s.byFace
	}
	m.scratch.begin(len(m.faces), len(m.methods))
	for e, c := range s.stacks {
		m.scratch.stack(c, m.outwards(e.node))
	}
	for at, c := range s.extra {
		m.scratch.add(at, c)
	}
	s.byFace, s.dirty = m.scratch.take(s.byFace[:0]), false
	return s.byFace
}

// foldThread sums what one thread did, as far as its stacks are kept.
func (m *Model) foldThread(in []*slot, thread uint32) []faceCount {
	m.scratch.begin(len(m.faces), len(m.methods))
	for _, s := range in {
		for e, c := range s.stacks {
			if e.thread == thread {
				m.scratch.stack(c, m.outwards(e.node))
			}
		}
	}
	return m.scratch.take(nil)
}

// kept returns the stacks of a window, each once, in a stable order.
func kept(in []*slot, only func(entry) bool) []stackCount {
	sum := make(map[uint32]profile.Count)
	for _, s := range in {
		for e, c := range s.stacks {
			if only(e) {
				n := sum[e.node]
				n.Add(c)
				sum[e.node] = n
			}
		}
	}
	out := make([]stackCount, 0, len(sum))
	for node, c := range sum {
		out = append(out, stackCount{node, c})
	}
	slices.SortFunc(out, func(a, b stackCount) int { return cmp.Compare(a.node, b.node) })
	return out
}

// stackCount is a node of the trie with what ended there.
type stackCount struct {
	node uint32
	profile.Count
}
