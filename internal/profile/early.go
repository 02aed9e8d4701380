package profile

import "regexp"

// early excludes samples while they are added, so that a part of a large file takes only the memory
// of that part.
type early struct {
	states        StateSet
	from, to      uint64
	focus, ignore *matched
	left          uint64
}

// matched caches which stacks of a Builder have a function whose name matches.
type matched struct {
	re    *regexp.Regexp
	funcs []verdict // by index into Funcs
	nodes []verdict
	path  []uint32
}

type verdict uint8

const (
	unknown verdict = iota
	no
	yes
)

// LeaveOut makes Add exclude what a filter does not choose, as far as that is certain when a sample
// is added: by its state, its time since the beginning and the functions of its stack. Names of
// threads and places of events are known later. It is called before the first Add; the filter must
// be applied to the profile too.
func (b *Builder) LeaveOut(f Filter) {
	e := &early{states: f.States, from: uint64(max(f.From, 0)), to: uint64(max(f.To, 0))}
	if f.Focus != nil {
		e.focus = &matched{re: f.Focus}
	}
	if f.Ignore != nil {
		e.ignore = &matched{re: f.Ignore}
	}
	b.early = e
}

// LeftOut returns how many samples were left out.
func (b *Builder) LeftOut() uint64 {
	if b.early == nil {
		return 0
	}
	return b.early.left
}

// LooksAtStacks reports whether Add looks at nodes, frames and functions. If it does not, others
// may be added at the same time.
func (b *Builder) LooksAtStacks() bool {
	return b.early != nil && (b.early.focus != nil || b.early.ignore != nil)
}

func (e *early) takes(b *Builder, s *Sample) bool {
	// A time of 0 may come from a file without times, which is not cut by time.
	ok := e.states.Has(s.State) && (s.Time == 0 || e.reaches(s)) &&
		(e.focus == nil || e.focus.has(b, s.Node)) && (e.ignore == nil || !e.ignore.has(b, s.Node))
	if !ok {
		e.left++
	}
	return ok
}

// reaches reports whether a sample may belong to the time that is asked for: the events, and so
// what weights count, are known only later.
func (e *early) reaches(s *Sample) bool {
	begin := s.Time
	if s.State >= StateRunnable {
		begin -= min(begin, s.Weight)
	}
	return s.Time >= e.from && (e.to == 0 || begin < e.to)
}

// has reports whether a function that matches is on the stack that ends in node.
func (m *matched) has(b *Builder, node uint32) bool {
	if n := b.nodes.Len(); n > len(m.nodes) {
		m.nodes = append(m.nodes, make([]verdict, n-len(m.nodes))...)
		m.nodes[RootNode] = no
	}
	m.path = m.path[:0]
	for m.nodes[node] == unknown {
		m.path = append(m.path, node)
		node = b.nodes.At(node).Parent
	}
	v := m.nodes[node]
	for i := len(m.path) - 1; i >= 0; i-- {
		if v == no {
			v = m.matches(b, b.p.Frames[b.nodes.At(m.path[i]).Frame].Func)
		}
		m.nodes[m.path[i]] = v
	}
	return v == yes
}

func (m *matched) matches(b *Builder, fn uint32) verdict {
	if n := len(b.p.Funcs); n > len(m.funcs) {
		m.funcs = append(m.funcs, make([]verdict, n-len(m.funcs))...)
	}
	if m.funcs[fn] == unknown {
		m.funcs[fn] = no
		if m.re.MatchString(b.p.Funcs[fn].Name) {
			m.funcs[fn] = yes
		}
	}
	return m.funcs[fn]
}
