package view

import (
	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// treeHead describes a recording: what the one-file page knows, and what only
// this one needs.
type treeHead struct {
	*flame.Header
	Name   string      `json:"name"`
	Timed  bool        `json:"timed"`
	End    uint64      `json:"end"` // ns
	States []string    `json:"states"`
	Kinds  []string    `json:"threadKinds"` // by thread, "" if not known
	Kernel []float64   `json:"kernelCPU"`   // by thread, ns; 0 if not known
	Sums   []countJSON `json:"sums"`        // by event
	Pair   bool        `json:"pair"`        // two that are compared
}

type countJSON struct {
	Samples uint64 `json:"samples"`
	Weight  uint64 `json:"weight"`
}

// treeMessage is what no filter changes: names, and the tree by place.
func (r *Recording) treeMessage() ([]byte, error) {
	p, t := r.p, r.tree
	header, funcs := flame.NewHeader(p, t, r.title(), "none")
	head := treeHead{Header: header, Name: flame.Visible(r.name), Timed: r.timed, End: r.end, States: profile.StateNames(), Pair: r.pair}
	for i := range p.Threads {
		head.Kinds = append(head.Kinds, flame.Visible(p.Threads[i].Kind))
		head.Kernel = append(head.Kernel, float64(p.Threads[i].KernelCPU))
	}
	for _, c := range r.all {
		head.Sums = append(head.Sums, countJSON(c))
	}
	methods := r.methods()
	n := len(t.Order)
	m := &message{}
	m.u32("func", len(t.Symbols), func(i int) uint32 { return funcs[i] })
	m.u8("kind", len(t.Symbols), func(i int) uint8 {
		if t.Symbols[i].Func == flame.NoFunc {
			return uint8(walk.NumKinds)
		}
		return uint8(min(t.Symbols[i].Kind, walk.NumKinds-1))
	})
	m.i32("method", len(t.Symbols), func(i int) int32 { return methods[i] })
	m.u32("depth", n, func(i int) uint32 { return t.Depth[i] })
	m.i32("sym", n, func(i int) int32 {
		if i == 0 {
			return -1
		}
		return int32(r.sym[i])
	})
	m.i32("line", n, func(i int) int32 { return t.Line[t.Order[i]] })
	m.u32("lines", n, func(i int) uint32 { return t.Lines[t.Order[i]] })
	for tally, name := range [flame.NumTallies]string{"derived", "heuristic", "stitched", "coarse", "virtual"} {
		m.u8(name, n, func(i int) uint8 {
			at := t.Order[i]
			return uint8(flame.Share(t.Tally(tally, at), uint64(t.Samples[at])))
		})
	}
	return m.finish(head)
}

func (r *Recording) title() string {
	switch {
	case r.p.Meta.Command != "":
		return r.p.Meta.Command
	case len(r.p.Processes) == 1:
		return r.p.Processes[0].Command
	}
	return r.name
}

// methods gives for each symbol the method it is of: functions of one name and
// module are one, as in reports. What stands for missing frames is none, -1.
func (r *Recording) methods() []int32 {
	type key struct{ name, module string }
	known := make(map[key]int32)
	out := make([]int32, len(r.tree.Symbols))
	for i, s := range r.tree.Symbols {
		if s.Func == flame.NoFunc {
			out[i] = -1
			continue
		}
		f := &r.p.Funcs[s.Func]
		k := key{f.Name, f.Module}
		m, ok := known[k]
		if !ok {
			m = int32(len(known))
			known[k] = m
		}
		out[i] = m
	}
	return out
}
