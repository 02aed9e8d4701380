package view

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/candid-profiler/candid/internal/attribution"
	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// treeHead describes a recording: what the one-file page gets, and what only this one needs.
type treeHead struct {
	*flame.Header
	Name   string      `json:"name"`
	Timed  bool        `json:"timed"`
	End    uint64      `json:"end"` // ns
	States []string    `json:"states"`
	Kernel []float64   `json:"kernelCPU"` // by thread, ns; 0 if not known
	Sums   []countJSON `json:"sums"`      // by event
	Pair   bool        `json:"pair"`      // two recordings that are compared
	Second uint32      `json:"second"`    // of a pair: the first thread of the second
	Parts  []part      `json:"parts"`     // of a pair: what is known of each
	Cost   costJSON    `json:"cost"`
	// For a recording that grows: how often it has, whether it still does, and how many symbols the
	// page has already.
	Version uint32 `json:"version"`
	Growing bool   `json:"growing"`
	Stopped string `json:"stopped"` // why it does not grow, though it has not ended; "" otherwise
	Skipped int    `json:"skipped"`
	Elapsed int64  `json:"elapsed"` // ns since it began
	Starts  bool   `json:"starts"`  // there are frames by which threads start, folded or not
	Skid    bool   `json:"skid"`    // there are frames in which samples came late, shown or not
	Whole   bool   `json:"whole"`   // frames by which threads start are shown by default
}

// costJSON is profile.Cost in ns and bytes, 0 if not known.
type costJSON struct {
	Copying     int64  `json:"copying"`
	TargetCPU   int64  `json:"targetCPU"`
	OwnCPU      int64  `json:"ownCPU"`
	Memory      uint64 `json:"memory"`
	FirstWalked int64  `json:"firstWalked"`
	Samples     uint64 `json:"samples"` // of the recording that the cost is of; 0: this one
	Recorded    int64  `json:"recorded"`
}

func newCost(c profile.Cost) costJSON {
	return costJSON{int64(c.Copying), int64(c.TargetCPU), int64(c.OwnCPU), c.Memory, int64(c.FirstWalked), c.Samples, int64(c.Recorded)}
}

type countJSON struct {
	Samples uint64 `json:"samples"`
	Weight  uint64 `json:"weight"`
}

// treeMessage answers with what no filter changes: names, and the tree by place. Only those symbols
// are sent that the page does not already have.
func treeMessage(_ context.Context, r *Recording, v url.Values) ([]byte, error) {
	m := &message{}
	head, err := r.treeColumns(m, v)
	if err != nil {
		return nil, err
	}
	return m.finish(head)
}

// sendTree sends that message without holding all of it in memory: for millions of places it is as
// large as everything else that is known of them. The recording may not grow.
func (r *Recording) sendTree(w http.ResponseWriter, v url.Values) error {
	m := &message{later: true}
	head, err := r.treeColumns(m, v)
	if err != nil {
		return err
	}
	return m.send(w, head)
}

func (r *Recording) treeColumns(m *message, v url.Values) (*treeHead, error) {
	if v.Get("starts") == "usual" {
		v = r.usualStarts(v)
	}
	w, err := rewriteOf(v)
	if err != nil {
		return nil, err
	}
	has, err := number(v, "symbols", 0)
	if err != nil {
		return nil, err
	}
	s, err := r.shapeFor(w)
	if err != nil {
		return nil, err
	}
	p, t := *r.p, s.tree
	p.Funcs = s.funcs
	if w.others() || r.grower == nil {
		has = 0
	}
	skip := int(min(has, uint64(len(t.Symbols))))
	fresh := *t
	fresh.Symbols = t.Symbols[skip:]
	header, funcs := flame.NewHeader(&p, &fresh, r.title(), "none")
	head := treeHead{Header: header, Name: flame.Visible(r.name), Timed: r.timed, End: r.end, States: profile.StateNames(), Pair: r.pair,
		Version: r.version, Growing: r.growing, Stopped: flame.Visible(r.stopped), Skipped: skip,
		Kernel: []float64{}, Sums: []countJSON{}}
	head.Skid = r.raw != r.base
	head.Starts, head.Whole = r.base.tree.HasStarts(r.base.funcs), r.startsWhole()
	header.Coarse = r.rough
	head.Cost = newCost(p.Meta.Cost)
	if r.pair {
		header.SidesApart()
		head.Second, head.Parts = r.second, r.parts[:]
	}
	if r.growing && !p.Meta.Start.IsZero() {
		head.Elapsed = int64(max(time.Since(p.Meta.Start), 0))
	}
	for i := range p.Threads {
		head.Kernel = append(head.Kernel, float64(p.Threads[i].KernelCPU))
	}
	for _, c := range r.all {
		head.Sums = append(head.Sums, countJSON(c))
	}
	methods := methods(&p, t)
	n := len(t.Order)
	m.u32("func", len(fresh.Symbols), func(i int) uint32 { return funcs[i] })
	m.u8("kind", len(fresh.Symbols), func(i int) uint8 {
		if fresh.Symbols[i].Func == flame.NoFunc {
			return uint8(walk.NumKinds)
		}
		return uint8(min(fresh.Symbols[i].Kind, walk.NumKinds-1))
	})
	m.i32("method", len(fresh.Symbols), func(i int) int32 { return methods[skip+i] })
	m.u32("depth", n, func(i int) uint32 { return t.Depth[i] })
	m.i32("sym", n, func(i int) int32 {
		if i == 0 {
			return -1
		}
		return int32(s.sym[i])
	})
	m.i32("line", n, func(i int) int32 { return t.Line[t.Order[i]] })
	m.u32("lines", n, func(i int) uint32 { return t.Lines[t.Order[i]] })
	m.u32("samples", n, func(i int) uint32 { return t.Samples[t.Order[i]] })
	m.u8("start", len(fresh.Symbols), func(i int) uint8 {
		if s := fresh.Symbols[i]; s.Func != flame.NoFunc {
			f := &p.Funcs[s.Func]
			if yes, _ := attribution.Starts(s.Kind, f.Name, f.Module); yes {
				return 1
			}
		}
		return 0
	})
	for tally, name := range [flame.NumTallies]string{"derived", "heuristic", "stitched", "coarse", "virtual"} {
		m.u8(name, n, func(i int) uint8 {
			at := t.Order[i]
			return uint8(flame.Share(t.Tally(tally, at), uint64(t.Samples[at])))
		})
	}
	return &head, nil
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

// methods returns the method of each symbol: functions of one name and module are one, as in
// reports. Symbols for missing frames have none, -1.
func methods(p *profile.Profile, t *flame.Tree) []int32 {
	type key struct{ name, module string }
	known := make(map[key]int32)
	out := make([]int32, len(t.Symbols))
	for i, s := range t.Symbols {
		if s.Func == flame.NoFunc {
			out[i] = -1
			continue
		}
		f := &p.Funcs[s.Func]
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
