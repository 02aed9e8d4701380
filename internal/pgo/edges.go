package pgo

import (
	"cmp"
	"slices"
	"sort"

	"github.com/candid-profiler/candid/internal/profile"
)

// Edge is a branch that was taken and the run of instructions that followed it up to the next one.
// Addresses are those of the module's file.
type Edge struct {
	From, To, End    uint64
	FromHere, ToHere bool // the branch, its target and run are in the module's code
	Last             bool // what came after the run is not known
}

// addEdge adds what an observation of the kind NativeBranch says, its counts multiplied by scale.
func (s *Samples) addEdge(values []profile.Value, scale float64) {
	if len(values) < 8 {
		return
	}
	from, to := values[0].Text, values[2].Text
	e := Edge{From: values[1].Number, To: values[3].Number, End: values[4].Number}
	if e.End < e.To || e.End-e.To > maxRun {
		return
	}
	n, last := float64(min(values[5].Number, 1<<40)), float64(min(values[7].Number, values[5].Number, 1<<40))
	names := []string{from, to}
	if from == to {
		names = names[:1]
	}
	for _, name := range names {
		if name == "" {
			continue
		}
		m := s.module(name)
		e.FromHere, e.ToHere = from == name, to == name
		for _, part := range []struct {
			last  bool
			count float64
		}{{false, n - last}, {true, last}} {
			if part.count > 0 {
				e.Last = part.last
				m.Edges[e] += part.count * scale
			}
		}
		if e.FromHere {
			m.Taken += n * scale
		}
	}
}

// maxRun bounds a run of instructions, in bytes.
const maxRun = 1 << 20

// run is a run of instructions with its count.
type run struct {
	from, to uint64 // addresses of the first and the last instruction
	count    float64
}

// edgeSums is what a module's edges say of its functions.
type edgeSums struct {
	runs    map[uint64][]run              // by the start of their function
	entries map[uint64]float64            // calls of functions, by their start
	callees map[uint64]map[uint64]float64 // by the address of a call or jump: functions' starts
	total   float64
}

// edgesOf sorts a module's edges by functions; nil if there are too few to say more than samples do.
func edgesOf(b *Binary, m *Module) *edgeSums {
	const fewest = 1000
	if m.Taken < fewest {
		return nil
	}
	out := &edgeSums{runs: map[uint64][]run{}, entries: map[uint64]float64{}, callees: map[uint64]map[uint64]float64{}}
	for _, e := range sortedEdges(m) {
		if !e.ToHere {
			continue
		}
		f := b.function(e.To)
		if f == nil {
			continue
		}
		n := m.Edges[e]
		out.runs[f.Start] = append(out.runs[f.Start], run{e.To, min(e.End, f.End-1), n})
		out.total += n
		if e.To != f.Start {
			continue
		}
		if caller := b.function(e.From); e.FromHere && caller != nil && caller.Start == f.Start && e.From >= f.Start {
			// A jump back to the start of the function is a loop; a call is not.
			if in := b.instAt(e.From); in.kind != call && in.kind != callsAny {
				continue
			}
		}
		out.entries[f.Start] += n
		if e.FromHere {
			if out.callees[e.From] == nil {
				out.callees[e.From] = map[uint64]float64{}
			}
			out.callees[e.From][f.Start] += n
		}
	}
	return out
}

// sortedEdges returns a module's edges by address.
func sortedEdges(m *Module) []Edge {
	out := make([]Edge, 0, len(m.Edges))
	for e := range m.Edges {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Edge) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.End, b.End), cmp.Compare(rank(a), rank(b)))
	})
	return out
}

// rank orders edges that differ in nothing else.
func rank(e Edge) int {
	n := 0
	for _, b := range []bool{e.FromHere, e.ToHere, e.Last} {
		if n *= 2; b {
			n++
		}
	}
	return n
}

// instAt decodes the instruction at an address.
func (b *Binary) instAt(addr uint64) inst {
	var buf [16]byte
	for n := len(buf); n > 0; n-- {
		if b.file.ReadCode(addr, buf[:n]) {
			if list := decode(b.Machine, buf[:n], addr, nil); len(list) > 0 {
				return list[0]
			}
			break
		}
	}
	return inst{}
}

// weigh sets how often blocks ran by the runs of instructions that edges led to.
func (e *edgeSums) weigh(runs []run, code []inst, blocks []block) (some bool) {
	counts := make([]float64, len(code)+1)
	for _, r := range runs {
		first := sort.Search(len(code), func(i int) bool { return code[i].addr >= r.from })
		last := sort.Search(len(code), func(i int) bool { return code[i].addr > r.to })
		if first < last && code[first].addr == r.from {
			counts[first] += r.count
			counts[last] -= r.count
		}
	}
	for i := 1; i < len(counts); i++ {
		counts[i] += counts[i-1]
	}
	for i := range blocks {
		bl := &blocks[i]
		for j := bl.first; j < bl.last; j++ {
			if counts[j] > bl.weight+1e-6 {
				bl.weight, some = counts[j], true
			}
		}
	}
	return some
}

// bytesOfInst is about how long an instruction is.
const bytesOfInst = 4

// fromEdges replaces the weights of blocks by what edges say. Where they say nothing, but samples
// were, the block ran at least a little.
func (t *treeBuilder) fromEdges(start uint64, code []inst, blocks []block) {
	byTime := make([]float64, len(blocks))
	for i := range blocks {
		byTime[i], blocks[i].weight = blocks[i].weight*t.perTime, 0
	}
	some := t.edges.weigh(t.edges.runs[start], code, blocks)
	for i := range blocks {
		if bl := &blocks[i]; bl.weight == 0 {
			if bl.weight = byTime[i]; some {
				bl.weight = min(bl.weight, 1)
			}
		}
	}
}

// calleesAt returns what an instruction calls.
func (t *treeBuilder) calleesAt(in *inst) []callSum {
	if t.edges == nil || len(t.edges.callees[in.addr]) == 0 {
		return t.callees[in.addr+uint64(in.size)]
	}
	var out []callSum
	for start, n := range t.edges.callees[in.addr] {
		name := t.nameAt(start, t.b.function(start).Name)
		if i := slices.IndexFunc(out, func(s callSum) bool { return s.name == name }); i >= 0 {
			out[i].weight += n
		} else {
			out = append(out, callSum{name, n})
		}
	}
	slices.SortFunc(out, func(a, b callSum) int { return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.name, b.name)) })
	return out
}

// heads sets how often each function was called: as often as its callers called it, or if no stack
// shows that, as often as its first block ran.
func (t *treeBuilder) heads() {
	if t.edges != nil {
		for start, n := range t.edges.entries {
			t.entered[t.nameAt(start, t.b.function(start).Name)] += n
		}
	}
	for name, f := range t.tree.functions {
		if n := t.entered[name]; n > 0 {
			f.head = n * t.scale
			continue
		}
		if f.head = t.head[name] * t.scale; f.head == 0 {
			f.head = t.entries[name] * t.scale
		}
	}
}
