package profile

import (
	"cmp"
	"regexp"
	"runtime"
	"slices"
	"sync"

	"github.com/candid-profiler/candid/internal/walk"
)

// MethodCount is a row of the method list.
type MethodCount struct {
	Method uint32 // index into Selection.Methods
	// Self counts stacks in which the method is innermost, Total all stacks with it, each once
	// however often the method is on it.
	Self, Total Count
	// Kinds counts samples by the kind of frame that the method's innermost occurrence was.
	Kinds [walk.NumKinds]uint64
	// Guessed counts the samples whose innermost occurrence of the method is a frame that was
	// guessed.
	Guessed uint64
	// Coarse counts the samples with the method innermost whose place inside inlined code is only
	// known up to the next safepoint or call.
	Coarse uint64
}

// Kind returns the most frequent kind of the method.
func (m *MethodCount) Kind() walk.Kind {
	best := walk.Kind(0)
	for k := range walk.NumKinds {
		if m.Kinds[k] > m.Kinds[best] {
			best = k
		}
	}
	return best
}

// List returns the method list: the most self weight first, then total, then name.
func (s *Selection) List() []MethodCount {
	parts := make([][]MethodCount, max(1, min(runtime.GOMAXPROCS(0), len(s.ended)/leastListed)))
	var wg sync.WaitGroup
	for w := range parts {
		from, to := len(s.ended)*w/len(parts), len(s.ended)*(w+1)/len(parts)
		wg.Go(func() { parts[w] = s.rows(s.ended[from:to]) })
	}
	wg.Wait()
	rows := parts[0]
	for _, p := range parts[1:] {
		for i := range rows {
			rows[i].add(&p[i])
		}
	}
	rows = slices.DeleteFunc(rows, func(m MethodCount) bool { return m.Total.Samples == 0 })
	slices.SortFunc(rows, func(a, b MethodCount) int {
		x, y := s.Func(a.Method), s.Func(b.Method)
		return cmp.Or(cmp.Compare(b.Self.Weight, a.Self.Weight), cmp.Compare(b.Self.Samples, a.Self.Samples),
			cmp.Compare(b.Total.Weight, a.Total.Weight), cmp.Compare(b.Total.Samples, a.Total.Samples),
			cmp.Compare(x.Name, y.Name), cmp.Compare(x.Module, y.Module), cmp.Compare(s.Methods[a.Method].Line, s.Methods[b.Method].Line), cmp.Compare(a.Method, b.Method))
	})
	return rows
}

// leastListed is how many stacks are worth a separate worker.
const leastListed = 1 << 14

// rows returns a row for each method, for some of the stacks.
func (s *Selection) rows(stacks []ended) []MethodCount {
	rows := make([]MethodCount, len(s.Methods))
	for i := range rows {
		rows[i].Method = uint32(i)
	}
	// Stack by stack, from the inside out: the first occurrence of a method is its innermost one.
	// This takes no memory per node, of which there are many.
	p := s.Profile
	met := make([]uint32, len(s.Methods)) // the last stack in which a method was met
	for i, e := range stacks {
		innermost := true
		for node := e.node; node != RootNode; node = p.Nodes[node].Parent {
			id := s.faceOf[p.Nodes[node].Frame]
			if id == hidden {
				continue
			}
			f := &s.faces[id]
			if innermost {
				innermost = false
				rows[f.method].Self.Add(e.Count)
				if f.coarse {
					rows[f.method].Coarse += e.Samples
				}
			}
			if met[f.method] == uint32(i+1) {
				continue
			}
			met[f.method] = uint32(i + 1)
			row := &rows[f.method]
			row.Total.Add(e.Count)
			row.Kinds[f.kind] += e.Samples
			if f.guessed {
				row.Guessed += e.Samples
			}
		}
	}
	return rows
}

// add adds the same row for other stacks.
func (m *MethodCount) add(o *MethodCount) {
	m.Self.Add(o.Self)
	m.Total.Add(o.Total)
	for k, n := range o.Kinds {
		m.Kinds[k] += n
	}
	m.Guessed += o.Guessed
	m.Coarse += o.Coarse
}

// CoarseEvents reports by event whether any method is more coarse than not, as MethodCount.Coarse
// counts it over all samples: then statements about inlined code must be qualified. Any recording
// of a JVM has a coarse frame here and there.
func (p *Profile) CoarseEvents() []bool {
	out := make([]bool, len(p.Events))
	if !slices.ContainsFunc(p.Frames, func(f Frame) bool { return f.Flags&walk.Coarse != 0 }) {
		return out
	}
	type method struct{ name, module string }
	known := make(map[method]uint32)
	methods := make([]uint32, len(p.Funcs))
	for i := range p.Funcs {
		k := method{p.Funcs[i].Name, p.Funcs[i].Module}
		if _, ok := known[k]; !ok {
			known[k] = uint32(len(known))
		}
		methods[i] = known[k]
	}
	type selfs struct{ all, coarse uint64 }
	rows := make([][]selfs, len(p.Events))
	p.Each(func(s *Sample, n uint64) {
		if s.Node == RootNode {
			return
		}
		if rows[s.Event] == nil {
			rows[s.Event] = make([]selfs, len(known))
		}
		f := &p.Frames[p.Nodes[s.Node].Frame]
		m := &rows[s.Event][methods[f.Func]]
		m.all += n
		if f.Flags&walk.Coarse != 0 {
			m.coarse += n
		}
	})
	for event, of := range rows {
		out[event] = slices.ContainsFunc(of, func(m selfs) bool { return m.coarse*2 > m.all })
	}
	return out
}

// Callers returns the tree of the callers of all methods whose name matches: those methods below
// the root, and below each node its callers. A stack counts once, for the innermost such method on
// it.
func (s *Selection) Callers(re *regexp.Regexp) *Tree {
	calls := s.Calls()
	match := make([]bool, len(s.Methods))
	for i := range match {
		match[i] = re.MatchString(s.Func(uint32(i)).Name)
	}
	// By node of the call tree: the innermost match on the path to it, and the samples that have
	// their innermost match here.
	nearest := make([]uint32, len(calls.Nodes))
	counts := make([]Count, len(calls.Nodes))
	for i := 1; i < len(calls.Nodes); i++ {
		n := &calls.Nodes[i]
		nearest[i] = nearest[n.Parent]
		if match[n.Method] {
			nearest[i] = uint32(i)
		}
		counts[nearest[i]].Add(n.Self)
	}
	trie := NewTrie()
	t := &Tree{Nodes: make([]TreeNode, 1)}
	for i := 1; i < len(calls.Nodes); i++ {
		if counts[i].Samples == 0 || nearest[i] != uint32(i) {
			continue
		}
		at := uint32(RootNode)
		for n := uint32(i); n != RootNode; n = calls.Nodes[n].Parent {
			from := &calls.Nodes[n]
			parent := at
			at = trie.Child(parent, from.Method)
			if int(at) == len(t.Nodes) {
				t.Nodes = append(t.Nodes, TreeNode{Parent: parent, Method: from.Method, Kind: from.Kind})
			}
		}
		t.Nodes[at].Self.Add(counts[i])
	}
	t.sum()
	t.link()
	return t
}
