package store

import (
	"cmp"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/profile"
)

// enter enters the functions, frames and nodes of all samples. What is new among them gets its place
// in an order in which neighbours are alike, which makes blocks small: functions by module and file,
// in the order of lines; stacks one below the other as in a tree that is printed, and frames in the
// order in which these have them.
func (in *intern) enter() {
	p, needed := in.p, make([]bool, len(in.p.Nodes))
	needed[profile.RootNode] = true
	p.Each(func(s *profile.Sample, _ uint64) {
		for n := s.Node; !needed[n]; n = p.Nodes[n].Parent {
			needed[n] = true
		}
	})
	seen, lines := make([]bool, len(p.Frames)), make(map[uint32]int32)
	for i := 1; i < len(needed); i++ {
		f := p.Nodes[i].Frame
		if !needed[i] || seen[f] {
			continue
		}
		seen[f] = true
		fr := &p.Frames[f]
		if line, ok := lines[fr.Func]; !ok || fr.Line < line {
			lines[fr.Func] = fr.Line
		}
	}
	fns := make([]uint32, 0, len(lines))
	for f := range lines {
		fns = append(fns, f)
	}
	slices.SortFunc(fns, func(a, b uint32) int {
		x, y := &p.Funcs[a], &p.Funcs[b]
		return cmp.Or(strings.Compare(x.Module, y.Module), strings.Compare(x.File, y.File), cmp.Compare(lines[a], lines[b]),
			cmp.Compare(len(x.Name), len(y.Name)), strings.Compare(x.Name, y.Name), cmp.Compare(a, b))
	})
	for _, f := range fns {
		in.fn(f)
	}
	in.enterNodes(needed)
}

// enterNodes enters the nodes that are needed.
func (in *intern) enterNodes(needed []bool) {
	p, s := in.p, in.s
	var roots []uint32                     // new nodes whose parent is not
	below := make(map[uint32][]uint32, 64) // the new nodes below a new one
	for i := 1; i < len(needed); i++ {
		if !needed[i] {
			continue
		}
		parent := p.Nodes[i].Parent
		if in.nodes[parent] == 0 {
			below[parent] = append(below[parent], uint32(i))
			continue
		}
		if f, ok := in.known(p.Nodes[i].Frame); ok {
			if at, ok := s.trie.Find(in.nodes[parent]-1, f); ok {
				in.nodes[i] = at + 1
				continue
			}
		}
		roots = append(roots, uint32(i))
	}
	frame := func(i uint32) uint32 { return p.Nodes[i].Frame }
	slices.SortFunc(roots, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(in.nodes[p.Nodes[a].Parent], in.nodes[p.Nodes[b].Parent]), cmp.Compare(frame(a), frame(b)), cmp.Compare(a, b))
	})
	var open []uint32
	for _, root := range roots {
		for open = append(open[:0], root); len(open) > 0; {
			i := open[len(open)-1]
			open = open[:len(open)-1]
			in.node(i)
			children := below[i]
			slices.SortFunc(children, func(a, b uint32) int { return cmp.Or(cmp.Compare(frame(b), frame(a)), cmp.Compare(b, a)) })
			open = append(open, children...)
		}
	}
}

// known returns the index of a frame that the tables have.
func (in *intern) known(i uint32) (at uint32, ok bool) {
	if in.frames[i] != 0 {
		return in.frames[i] - 1, true
	}
	f := &in.p.Frames[i]
	at, ok = in.s.frames[frame{fn: in.fn(f.Func), line: f.Line, kind: f.Kind, prov: f.Prov, flags: f.Flags}]
	return at, ok
}

// lasting returns a name without what another process would have otherwise: where it has memory that
// is of no file, and the address that a VM gives a class that is generated as it runs.
func lasting(name string) string {
	if i := strings.LastIndex(name, "+0x"); i >= 0 && len(name)-i-3 >= 11 && isHex(name[i+3:]) {
		return name[:i] // no file is that large
	}
	for from := 0; ; {
		i := strings.Index(name[from:], "/0x")
		if i < 0 {
			return name
		}
		i += from
		end := i + 3
		for end < len(name) && isHex(name[end:end+1]) {
			end++
		}
		if end-i-3 < 8 {
			from = end
			continue
		}
		name, from = name[:i]+name[end:], i
	}
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
