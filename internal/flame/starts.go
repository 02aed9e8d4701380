package flame

import (
	"github.com/candid-profiler/candid/internal/attribution"
	"github.com/candid-profiler/candid/internal/profile"
)

// Marks of a symbol in StartMarks.
const (
	MarkStart  = 1 << iota // attribution.Starts
	MarkNamed              // and its name says so
	MarkBegins             // attribution.Begins
)

// StartMarks returns for each symbol what a page needs to fold how threads start by itself.
func (t *Tree) StartMarks(funcs []profile.Func) []uint8 {
	is, named, _ := t.beginning(funcs)
	out := make([]uint8, len(t.Symbols))
	for i, s := range t.Symbols {
		if is[i] {
			out[i] = MarkStart
			if named[i] {
				out[i] |= MarkNamed
			}
		}
		if s.Func != NoFunc && attribution.Begins(s.Kind, funcs[s.Func].Module) {
			out[i] |= MarkBegins
		}
	}
	return out
}

// beginning reports for each symbol whether it may belong to what starts a thread, and whether its
// name says so.
func (t *Tree) beginning(funcs []profile.Func) (is, named []bool, any bool) {
	is, named = make([]bool, len(t.Symbols)), make([]bool, len(t.Symbols))
	for i, s := range t.Symbols {
		if s.Func == NoFunc {
			continue
		}
		f := &funcs[s.Func]
		is[i], named[i] = attribution.Starts(s.Kind, f.Name, f.Module)
		any = any || is[i]
	}
	return is, named, any
}

// foldable reports for each place whether it and all above it belong to what starts a thread, and
// for each whether its stacks are shown without that. It is nil, nil if no stack is.
func (t *Tree) foldable(funcs []profile.Func, parent []uint32) (start, body []bool) {
	is, named, any := t.beginning(funcs)
	if !any {
		return nil, nil
	}
	n := len(t.Order)
	start = make([]bool, n)
	leads := make([]bool, n) // to a place of a start
	for i := n - 1; i > 0; i-- {
		sym := t.Nodes.At(t.Order[i]).Frame
		// Without names, what a VM's own threads do looks like their start: then only what leads to
		// Java code belongs to the start.
		if start[i] = is[sym] && (named[sym] || leads[i]); start[i] {
			leads[parent[i]] = true
		}
	}
	body = make([]bool, n)
	found := false
	for i := 1; i < n; i++ {
		up := parent[i]
		if start[i] = start[i] && (up == 0 || start[up]); start[i] || up == 0 || !start[up] {
			continue
		}
		s := t.Symbols[t.Nodes.At(t.Order[i]).Frame]
		if attribution.Begins(s.Kind, funcs[s.Func].Module) {
			body[i], found = true, true
		}
	}
	if !found {
		return nil, nil
	}
	return start, body
}

// HasStarts reports whether FoldStarts may change anything.
func (t *Tree) HasStarts(funcs []profile.Func) bool {
	is, _, any := t.beginning(funcs)
	if !any {
		return false
	}
	for i, d := range t.Depth {
		if d == 1 && is[t.Nodes.At(t.Order[i]).Frame] {
			return true
		}
	}
	return false
}

// FoldStarts returns the tree without the frames by which threads and programs start, which are the
// same in all of them: stacks begin with the first function that does the thread's work. Stacks
// that have nothing else stay as they are. It also returns the place there for each place of t;
// symbols keep their index. It returns t and nil if there is nothing to fold. funcs are those that
// the symbols refer to.
func (t *Tree) FoldStarts(funcs []profile.Func) (*Tree, []uint32) {
	n := len(t.Order)
	parent := make([]uint32, n)
	ended := make([]uint32, n) // samples
	var way []uint32           // by depth
	for i, id := range t.Order {
		d := int(t.Depth[i])
		way = append(way[:d], uint32(i))
		if ended[i] = t.Samples[id]; d > 0 {
			parent[i] = way[d-1]
			ended[parent[i]] -= t.Samples[id]
		}
	}
	start, body := t.foldable(funcs, parent)
	if start == nil {
		return t, nil
	}
	left := make([]uint32, n) // of a start: samples of stacks that stay as they are
	for i := n - 1; i > 0; i-- {
		if start[i] {
			left[i] += ended[i]
		} else if !body[i] {
			left[i] = t.Samples[t.Order[i]]
		}
		if up := parent[i]; start[up] && up > 0 {
			left[up] += left[i]
		}
	}
	m := &merger{p: &profile.Profile{Funcs: funcs}, Tree: Tree{Symbols: t.Symbols, Nodes: profile.NewTrie()}}
	to := make([]uint32, n)
	for i, id := range t.Order {
		switch {
		case i == 0 || start[i] && left[i] == 0: // no sample ended there
		case body[i]:
			to[i] = m.Nodes.Child(0, t.Nodes.At(id).Frame)
		default:
			to[i] = m.Nodes.Child(to[parent[i]], t.Nodes.At(id).Frame)
		}
	}
	m.Nodes.Seal()
	m.resize()
	most := make([]uint32, m.Nodes.Len())
	for i, id := range t.Order {
		at := to[i]
		if i > 0 && at == 0 {
			continue
		}
		m.Samples[at] += ended[i]
		all := t.Samples[id]
		for tally, c := range t.tallies {
			if c == nil || c[id] == 0 {
				continue
			}
			share := c[id]
			if start[i] { // scaled to the samples that are left
				share = uint32(uint64(share) * uint64(left[i]) / uint64(all))
			}
			m.add(tally, at, share)
		}
		if all > most[at] {
			most[at], m.Line[at], m.Lines[at] = all, t.Line[id], t.Lines[id]
		}
	}
	for i := m.Nodes.Len() - 1; i > 0; i-- {
		m.Samples[m.Nodes.At(uint32(i)).Parent] += m.Samples[i]
	}
	place := m.sort()
	for i := range to {
		to[i] = place[to[i]]
	}
	out := m.Tree
	return &out, to
}
