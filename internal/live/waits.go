package live

import (
	"github.com/candid-profiler/candid/internal/attribution"
	"github.com/candid-profiler/candid/internal/profile"
)

// waits are the time of some threads by state, and who waited.
type waits struct {
	states [profile.NumStates]profile.Count
	sum    attribution.Waits
}

// longest returns the waits, the longest first; none if most of the time was not spent waiting.
func (w *waits) longest() []attribution.Wait {
	if w == nil || !attribution.Mostly(w.states[:]) {
		return nil
	}
	return w.sum.Longest()
}

// waitsBy adds up waits by the key that by returns, for entries that it accepts. The sampled event
// may be no time, or time on a CPU: then there are none.
func (m *Model) waitsBy(in []*slot, by func(entry) (key uint32, ok bool)) map[uint32]*waits {
	out := make(map[uint32]*waits)
	if !m.spans {
		return out
	}
	for _, s := range in {
		for e, c := range s.stacks {
			key, ok := by(e)
			if !ok {
				continue
			}
			w := out[key]
			if w == nil {
				w = new(waits)
				out[key] = w
			}
			w.states[int(e.state)%profile.NumStates].Add(c)
			if at := m.waiter(e.node); at.Of != attribution.Nothing {
				f := m.faces[at.Frame]
				w.sum.Add(at.Of, attribution.Wait{State: e.state, Name: m.methods[f.method].Name, Module: m.methods[f.method].Module, Kind: f.kind, Count: c})
			}
		}
	}
	return out
}

// waits returns the waits of the entries that takes accepts; those of a VM's own threads do not
// count if there are Java threads.
func (m *Model) waits(in []*slot, takes func(entry) bool) []attribution.Wait {
	java := false
	for i := range m.threads {
		java = java || m.threads[i].kind == "java"
	}
	const shown, others = 0, 1
	sums := m.waitsBy(in, func(e entry) (uint32, bool) {
		if java && attribution.OfVM(m.threads[e.thread].kind) {
			return others, takes(e)
		}
		return shown, takes(e)
	})
	w := sums[shown]
	if w == nil {
		return nil
	}
	if o := sums[others]; o != nil { // they belong to the time that is asked about
		for i, c := range o.states {
			w.states[i].Add(c)
		}
	}
	return w.longest()
}

// waiter returns what waits in a stack; its Frame is a face.
func (n *names) waiter(node uint32) attribution.Waiter {
	for i := len(n.waiters); i <= int(node); i++ { // parents come before their children
		if i == profile.RootNode {
			n.waiters = append(n.waiters, attribution.Waiter{})
			continue
		}
		at := n.trie.At(uint32(i))
		f := n.faces[at.Frame]
		m := &n.methods[f.method]
		n.waiters = append(n.waiters, n.waiters[at.Parent].Inner(attribution.Waiter{Frame: at.Frame, Of: attribution.Of(f.kind, m.Name, m.Module)}))
	}
	return n.waiters[node]
}
