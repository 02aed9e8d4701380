package view

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
)

// OpenGrowing returns a recording that is still being made: it has what Grow added to it, until
// Finish.
func OpenGrowing(name string) *Recording {
	p := &profile.Profile{Nodes: make([]profile.Node, 1)}
	r := newRecording(name, p)
	r.grower, r.growing, r.timed = flame.NewGrower(), true, true
	r.parent, r.sym = make([]uint32, 1), make([]uint32, 1)
	tree, place := r.grower.Tree()
	r.raw, r.base = rawAndBase(p, tree, place)
	r.index()
	return r
}

// Source provides the tables of a growing recording: those of a profile.Builder, which only grow.
type Source interface {
	At(node uint32) profile.Node
	Nodes() int
	Meta() *profile.Meta
	Frames() []profile.Frame
	Funcs() []profile.Func
	Threads() []profile.Thread
	Processes() []profile.Process
}

// Grown is the current state of a growing recording.
type Grown struct {
	Source   Source
	Events   []profile.Event
	Syscalls []string
	Losses   profile.Losses
	Samples  []profile.Sample // the new ones; they refer to the source
}

// Grow adds samples. It copies what it takes from the source, unless the source does not change
// that any more. If it panics, the recording stays what it was, and can still be queried.
func (r *Recording) Grow(g Grown) {
	r.lock.Lock()
	defer r.lock.Unlock()
	p, src := *r.p, g.Source
	p.Meta = *src.Meta()
	p.Meta.Notes = slices.Clone(p.Meta.Notes)
	p.Events, p.Syscalls, p.Losses = slices.Clone(g.Events), slices.Clone(g.Syscalls), g.Losses
	p.Processes, p.Threads = slices.Clone(src.Processes()), slices.Clone(src.Threads())
	p.Funcs, p.Frames = slices.Clip(src.Funcs()), slices.Clip(src.Frames())
	for i := len(p.Nodes); i < src.Nodes(); i++ {
		p.Nodes = append(p.Nodes, src.At(uint32(i)))
	}
	at := r.grower.Add(&p, g.Samples)
	fresh := slices.Clone(g.Samples)
	gone := r.join(fresh)
	parent, sym := r.parent, r.sym
	for i := len(parent); i < r.grower.Len(); i++ {
		n := r.grower.Node(uint32(i))
		parent, sym = append(parent, n.Parent), append(sym, n.Frame)
	}
	tree, place := r.grower.Tree()
	raw, base := rawAndBase(&p, tree, place)
	r.p, r.raw, r.base, r.parent, r.sym = &p, raw, base, parent, sym
	for _, i := range gone {
		r.p.Samples[i].Flags = taken
	}
	r.insert(fresh, at)
	r.sweep()
	r.end = uint64(max(p.Meta.Duration, 0))
	if n := len(p.Samples); n > 0 {
		r.end = max(r.end, p.Samples[n-1].Time+1)
	}
	r.changed()
}

// insert merges new samples into the others, by time: those of a batch belong near the end.
func (r *Recording) insert(samples []profile.Sample, at []uint32) {
	if len(samples) == 0 {
		return
	}
	first := samples[0].Time
	for i := range samples {
		first = min(first, samples[i].Time)
	}
	from, _ := slices.BinarySearchFunc(r.p.Samples, first, func(s profile.Sample, t uint64) int { return cmp.Compare(s.Time, t) })
	r.p.Samples, r.at = append(r.p.Samples, samples...), append(r.at, at...)
	tail, places := r.p.Samples[from:], r.at[from:]
	order := make([]int, len(tail))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(tail[a].Time, tail[b].Time) })
	sorted, sortedPlaces := make([]profile.Sample, len(tail)), make([]uint32, len(tail))
	for i, k := range order {
		sorted[i], sortedPlaces[i] = tail[k], places[k]
	}
	copy(tail, sorted)
	copy(places, sortedPlaces)
}

// changed rebuilds what is derived from the recording as it is now, and wakes the pages that wait.
func (r *Recording) changed() {
	r.index()
	r.mu.Lock()
	r.spare, r.last, r.matches, r.tried = nil, nil, make(map[string][]bool), nil
	clear(r.shapes)
	r.mu.Unlock()
	r.version++
	r.wake()
}

// wake wakes the pages that wait.
func (r *Recording) wake() {
	close(r.grew)
	r.grew = make(chan struct{})
}

// Finish marks a recording as not growing any more. whole is the final recording, which may have
// been read better than piece by piece; nil: the recording as it is.
func (r *Recording) Finish(whole *profile.Profile) error {
	if whole != nil {
		return r.replace(whole, false)
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.growing, r.stopped = false, ""
	r.changed()
	return nil
}

// replace replaces the contents of the recording; growing means that this is not its end.
func (r *Recording) replace(whole *profile.Profile, growing bool) error {
	next, err := Open(r.name, whole)
	if err != nil {
		return err
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.p, r.raw, r.base, r.parent, r.sym, r.at = next.p, next.raw, next.base, next.parent, next.sym, next.at
	r.timed, r.end, r.grower, r.growing, r.stopped = next.timed, next.end, nil, growing, ""
	r.changed()
	return nil
}

// stop records that a recording does not grow any more although it has not ended, and why. The part
// that was read stays, until somebody has more of it.
func (r *Recording) stop(why error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.growing, r.stopped = false, why.Error()
	r.version++
	r.wake()
}

// patience is how long a page waits for a recording to grow before it is answered that it did not.
const patience = 20 * time.Second

// waitMessage answers when the recording is no longer the version that the page has.
func waitMessage(ctx context.Context, r *Recording, v url.Values) ([]byte, error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		r.lock.RLock()
		version, growing, ended, grew := r.version, r.growing, !r.growing && r.stopped == "", r.grew
		r.lock.RUnlock()
		have, err := number(v, "version", 0)
		if err != nil {
			return nil, err
		}
		if uint64(version) != have || ended {
			return (&message{}).finish(map[string]any{"version": version, "growing": growing})
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-grew:
		case <-late.C:
			return (&message{}).finish(map[string]any{"version": version, "growing": growing})
		}
	}
}
