package flame

import (
	"slices"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Rewriting describes how stacks are shown other than they were taken. No sample is left out by it,
// and none is counted elsewhere than on its own stack.
type Rewriting struct {
	Drop  []bool         // by function: its frames are left out, and their callees are called by their callers
	Group []uint32       // by function: adjacent frames of one group are one; 0: no group
	Fold  []bool         // by function: everything from its outermost to its innermost frame is one frame
	Names []profile.Func // the functions that stand for the groups: group g is Names[g-1]
	skid  bool           // symbols with Skid are left out
}

// rewriter derives a trie from another one.
type rewriter struct {
	w      *Rewriting
	trie   *profile.Trie
	funcs  uint32
	fn     []uint32 // by new node: its function, with groups numbered behind the functions
	parent []uint32 // by new node
}

func newRewriter(w *Rewriting, funcs int) *rewriter {
	return &rewriter{w: w, trie: profile.NewTrie(), funcs: uint32(funcs), fn: []uint32{NoFunc}, parent: []uint32{0}}
}

// child returns the new node for a frame of function fn that was called from new node at: a node of
// its own with that key, or the one it becomes a part of. grouped returns the key of what stands
// for a group.
func (r *rewriter) child(at, fn, key uint32, grouped func(g uint32) uint32) uint32 {
	if fn < r.funcs {
		switch g := r.w.Group[fn]; {
		case r.w.Drop[fn]:
			return at
		case g > 0:
			if fn = r.funcs + g - 1; r.fn[at] == fn {
				return at
			}
			key = grouped(g)
		case r.w.Fold[fn]:
			for a := at; a != 0; a = r.parent[a] {
				if r.fn[a] == fn {
					return a
				}
			}
		}
	}
	n := r.trie.Child(at, key)
	if int(n) == len(r.fn) {
		r.fn, r.parent = append(r.fn, fn), append(r.parent, at)
	}
	return n
}

func (w *Rewriting) funcs(p *profile.Profile) []profile.Func {
	return append(slices.Clip(p.Funcs), w.Names...)
}

// Rewrite returns the tree as w shows it, the place there for each place of t, and the functions
// that its symbols refer to. Symbols of t keep their index.
func (t *Tree) Rewrite(p *profile.Profile, w *Rewriting) (*Tree, []uint32, []profile.Func) {
	q := &profile.Profile{Funcs: w.funcs(p)}
	m := &merger{p: q, symbol: make(map[Symbol]uint32), Tree: Tree{Symbols: slices.Clip(t.Symbols)}}
	r := newRewriter(w, len(p.Funcs))
	to := make([]uint32, len(t.Order))
	own := make([]uint32, len(t.Order)) // samples that ended there
	parent := make([]uint32, len(t.Order))
	var way []uint32 // by depth
	for i, id := range t.Order {
		d := int(t.Depth[i])
		way = append(way[:d], uint32(i))
		own[i] = t.Samples[id]
		if d == 0 {
			continue
		}
		up := way[d-1]
		parent[i] = up
		own[up] -= t.Samples[id]
		sym := t.Nodes.At(id).Frame
		s := t.Symbols[sym]
		if w.skid && s.Skid {
			to[i] = to[up]
			continue
		}
		to[i] = r.child(to[up], s.Func, sym, func(g uint32) uint32 {
			return m.sym(Symbol{Func: uint32(len(p.Funcs)) + g - 1, Kind: s.Kind})
		})
	}
	m.Nodes = r.trie
	m.Nodes.Seal()
	m.resize()
	most := make([]uint32, m.Nodes.Len())
	for i, id := range t.Order {
		n := to[i]
		m.Samples[n] += own[i]
		if i > 0 && n == to[parent[i]] && w.dropped(t.Symbols[t.Nodes.At(id).Frame]) {
			continue
		}
		for tally, c := range t.tallies {
			if c != nil && c[id] > 0 {
				m.add(tally, n, c[id])
			}
		}
		if t.Samples[id] > most[n] {
			most[n], m.Line[n], m.Lines[n] = t.Samples[id], t.Line[id], t.Lines[id]
		}
	}
	for n := m.Nodes.Len() - 1; n > 0; n-- {
		m.Samples[r.parent[n]] += m.Samples[n]
	}
	place := m.sort()
	for i := range to {
		to[i] = place[to[i]]
	}
	out := m.Tree
	return &out, to, q.Funcs
}

func (w *Rewriting) dropped(s Symbol) bool {
	return w.skid && s.Skid || int(s.Func) < len(w.Drop) && w.Drop[s.Func]
}

// FoldSkid returns the tree without the frames in which samples came late (walk.Skid): those
// samples count for the callers. It also returns the place there for each place of t; symbols keep
// their index. It returns t and nil if there are none.
func (t *Tree) FoldSkid(p *profile.Profile) (*Tree, []uint32) {
	if !slices.ContainsFunc(t.Symbols, func(s Symbol) bool { return s.Skid }) {
		return t, nil
	}
	n := len(p.Funcs)
	out, to, _ := t.Rewrite(p, &Rewriting{Drop: make([]bool, n), Group: make([]uint32, n), Fold: make([]bool, n), skid: true})
	return out, to
}

// Apply returns the profile with stacks as w shows them. It shares what did not change.
func (w *Rewriting) Apply(p *profile.Profile) *profile.Profile {
	out := *p
	out.Funcs, out.Frames = w.funcs(p), slices.Clip(p.Frames)
	r := newRewriter(w, len(p.Funcs))
	type group struct {
		g    uint32
		kind walk.Kind
	}
	frames := make(map[group]uint32)
	to := make([]uint32, len(p.Nodes))
	for i := 1; i < len(p.Nodes); i++ {
		n := p.Nodes[i]
		f := &p.Frames[n.Frame]
		to[i] = r.child(to[n.Parent], f.Func, n.Frame, func(g uint32) uint32 {
			k := group{g, f.Kind}
			frame, ok := frames[k]
			if !ok {
				frame = uint32(len(out.Frames))
				out.Frames = append(out.Frames, profile.Frame{Func: uint32(len(p.Funcs)) + g - 1, BCI: -1, Kind: f.Kind, Prov: f.Prov})
				frames[k] = frame
			}
			return frame
		})
	}
	out.Nodes = make([]profile.Node, r.trie.Len())
	for i := range out.Nodes {
		out.Nodes[i] = r.trie.At(uint32(i))
	}
	out.Samples = slices.Clone(p.Samples)
	for i := range out.Samples {
		out.Samples[i].Node = to[out.Samples[i].Node]
	}
	return &out
}
