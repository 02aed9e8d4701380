package view

import (
	"context"
	"net/url"
	"slices"

	"github.com/candid-profiler/candid/internal/attribution"
	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
)

// longestWaits returns what attribution.WaitsOf returns for the samples that a query chooses, in
// stacks as the page shows them.
func (r *Recording) longestWaits(ctx context.Context, q *Query, s *shownTree) ([]attribution.Wait, error) {
	if q.Event >= len(r.p.Events) || r.p.Events[q.Event].Unit != "nanoseconds" {
		return nil, nil
	}
	var states [profile.NumStates]profile.Count
	java := false
	err := r.counted(ctx, q, func(p *partial) {
		for k, n := range p.sorts {
			states[r.cols.sorts[k].state].Add(n)
		}
		for t, n := range p.threads {
			java = java || n.Samples > 0 && r.p.Threads[t].Kind == "java"
		}
	})
	if err != nil || !attribution.Mostly(states[:]) {
		return nil, err
	}
	only := *q
	if java {
		only.Threads = make([]bool, len(r.p.Threads))
		for t := range only.Threads {
			only.Threads[t] = (q.Threads == nil || q.Threads[t]) && !attribution.OfVM(r.p.Threads[t].Kind)
		}
	}
	of := make([]attribution.Part, len(s.tree.Symbols))
	for i, symbol := range s.tree.Symbols {
		if symbol.Func != flame.NoFunc {
			f := &s.funcs[symbol.Func]
			of[i] = attribution.Of(symbol.Kind, f.Name, f.Module)
		}
	}
	up := r.ways(s).parent
	waiters := make([]attribution.Waiter, len(up)) // Frame is a symbol
	for i := 1; i < len(up); i++ {
		waiters[i] = waiters[up[i]].Inner(attribution.Waiter{Frame: s.sym[i], Of: of[s.sym[i]]})
	}
	var sum attribution.Waits
	for state, n := range states {
		if n.Samples == 0 || !attribution.Waiting(profile.State(state)) {
			continue
		}
		only.States = profile.StateSet(0).With(profile.State(state))
		p, err := r.sum(ctx, &only)
		if err != nil {
			return nil, err
		}
		for i, n := range p.ends {
			if w := waiters[s.placeOf(r.cols.ends[i])]; n.Samples > 0 && w.Of != attribution.Nothing {
				symbol := s.tree.Symbols[w.Frame]
				f := &s.funcs[symbol.Func]
				sum.Add(w.Of, attribution.Wait{State: profile.State(state), Name: f.Name, Module: f.Module, Kind: symbol.Kind, Count: n})
			}
		}
		r.keep([]*partial{p})
	}
	return sum.Longest(), nil
}

// sentWaits is how many waits the page is sent.
const sentWaits = 3

// waitJSON is a wait, and the method of the page that waits.
type waitJSON struct {
	State  string `json:"state"`
	Method int32  `json:"method"`
	countJSON
}

// waitsMessage answers who waited longest, with filters as for counts; nobody if most of the time
// is not of waits.
func waitsMessage(ctx context.Context, r *Recording, v url.Values) ([]byte, error) {
	q, s, err := r.asked(v)
	if err != nil {
		return nil, err
	}
	list, err := r.longestWaits(ctx, &q, s)
	if err != nil {
		return nil, err
	}
	rows := []waitJSON{}
	for _, w := range list[:min(sentWaits, len(list))] {
		symbol := slices.IndexFunc(s.tree.Symbols, func(x flame.Symbol) bool {
			return x.Func != flame.NoFunc && s.funcs[x.Func].Name == w.Name && s.funcs[x.Func].Module == w.Module
		})
		rows = append(rows, waitJSON{w.State.String(), r.ways(s).method[symbol], countJSON(w.Count)})
	}
	return (&message{}).finish(map[string]any{"waits": rows})
}
