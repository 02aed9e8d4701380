// Package view serves the page that shows a recording: it adds up what a filter chooses, over
// millions of samples and on all CPUs, and sends it to the browser as columns of numbers. The page
// itself is in web/src/view.
package view

import (
	"cmp"
	"slices"
	"sync"

	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Recording is a profile prepared for many queries. Everything that no filter changes is worked out
// once: the merged tree, where in it each sample ends, and which samples are of which thread.
type Recording struct {
	name string
	p    *profile.Profile
	base *shownTree // the tree of all frames, except those in which samples came late (walk.Skid)
	raw  *shownTree // with these; base if there are none
	// By node of the recording. A node's parent comes before it, and the root is 0. Nodes are
	// places in the tree, unless the recording grows.
	parent []uint32
	sym    []uint32 // index into the tree's symbols; meaningless for the root
	// By sample, in the order of time.
	at       []uint32 // node
	byThread []uint32 // samples, thread by thread
	first    []uint32 // by thread: where its samples begin in byThread, and one more entry
	cols     columns
	coarse   []float32  // by index into cols.ends: the share of samples whose innermost frame is walk.Coarse; nil: none
	rough    []bool     // by event: a method is marked as coarse
	reach    startIndex // of the samples
	reaches  startIndex // of byThread
	// By event.
	all []profile.Count
	// pair means that this is two recordings that are compared: second is the first thread of the
	// second one, and sides are the sums of each by event.
	pair   bool
	second uint32
	sides  [2][]profile.Count
	parts  [2]part

	timed bool   // samples have times
	end   uint64 // ns since the beginning: after all samples, and at least the duration

	// For a recording that grows: lock is held while it is read.
	lock    sync.RWMutex
	grower  *flame.Grower
	growing bool
	stopped string        // why it is not followed any more, although it has not ended
	version uint32        // how often it has grown
	grew    chan struct{} // closed when it does

	mu    sync.Mutex
	spare []*partial
	last  []*remembered

	shapes  map[string]*shownTree // rewritten trees
	shaping sync.Mutex            // held while one is made
	matches map[string][]bool     // by expression: places whose stack holds a match
	tried   []string              // its keys, the oldest first
}

// Open makes a recording of a profile that has passed Check or come from a Builder. name is for
// people, usually the name of its file. The profile belongs to the recording from then on: its
// samples are sorted by time.
func Open(name string, p *profile.Profile) (*Recording, error) {
	byTime := func(a, b profile.Sample) int { return cmp.Compare(a.Time, b.Time) }
	if !slices.IsSortedFunc(p.Samples, byTime) {
		slices.SortStableFunc(p.Samples, byTime)
	}
	tree, at, err := flame.MergeSamples(p)
	if err != nil {
		return nil, err
	}
	r := newRecording(name, p)
	r.at, r.timed, r.end = at, p.HasTimes(), uint64(max(p.Meta.Duration, 0))
	r.raw, r.base = rawAndBase(p, tree, nil)
	r.sym = r.raw.sym
	if n := len(p.Samples); n > 0 && r.timed {
		r.end = max(r.end, p.Samples[n-1].Time+1)
	}
	r.parent = parents(tree)
	r.index()
	return r, nil
}

// rawAndBase returns a tree as it was merged, and the tree without the frames in which samples came
// late. place is by node of the recording: its place in the tree; nil if they are the same.
func rawAndBase(p *profile.Profile, tree *flame.Tree, place []uint32) (raw, base *shownTree) {
	raw = newShownTree(tree, p.Funcs, place)
	if folded, to := tree.FoldSkid(p); to != nil {
		return raw, newShownTree(folded, p.Funcs, raw.onward(to))
	}
	return raw, raw
}

func newRecording(name string, p *profile.Profile) *Recording {
	return &Recording{name: name, p: p, matches: make(map[string][]bool), shapes: make(map[string]*shownTree), grew: make(chan struct{})}
}

// parents returns the parent of each place of a tree.
func parents(t *flame.Tree) []uint32 {
	out := make([]uint32, len(t.Order))
	var open []uint32 // the path to the node before, by depth
	for i := range out {
		d := int(t.Depth[i])
		open = append(open[:d], uint32(i))
		if d > 0 {
			out[i] = open[d-1]
		}
	}
	return out
}

// index sorts the samples by thread and adds them up by event.
func (r *Recording) index() {
	samples := r.p.Samples
	r.all = make([]profile.Count, len(r.p.Events))
	r.first = make([]uint32, len(r.p.Threads)+1)
	for i := range samples {
		s := &samples[i]
		r.first[s.Thread+1]++
		r.all[s.Event].Add(profile.Count{Samples: 1, Weight: s.Weight})
	}
	for t := range r.p.Threads {
		r.first[t+1] += r.first[t]
	}
	r.cols = newColumns(r.p.Events, samples, r.at, len(r.parent))
	r.coarse, r.rough = r.coarseEnds(), r.p.CoarseEvents()
	next := slices.Clone(r.first)
	r.byThread = make([]uint32, len(samples))
	for i := range samples {
		t := samples[i].Thread
		r.byThread[next[t]] = uint32(i)
		next[t]++
	}
	r.reach = r.newStartIndex(len(samples), itself)
	r.reaches = r.newStartIndex(len(samples), r.byTurn)
}

// coarseEnds finds the stacks whose innermost frame is only known up to the next safepoint.
func (r *Recording) coarseEnds() []float32 {
	frames, nodes := r.p.Frames, r.p.Nodes
	if !slices.ContainsFunc(frames, func(f profile.Frame) bool { return f.Flags&walk.Coarse != 0 }) {
		return nil
	}
	all, coarse := make([]uint32, len(r.cols.ends)), make([]uint32, len(r.cols.ends))
	for i := range r.p.Samples {
		end := r.cols.last[i]
		all[end]++
		if n := r.p.Samples[i].Node; n != profile.RootNode && frames[nodes[n].Frame].Flags&walk.Coarse != 0 {
			coarse[end]++
		}
	}
	out := make([]float32, len(all))
	for end, n := range all {
		if n > 0 {
			out[end] = float32(coarse[end]) / float32(n)
		}
	}
	return out
}

// span returns the samples that were taken from from up to to, as indices; to 0 is the end.
func (r *Recording) span(from, to uint64) (lo, hi int) {
	samples := r.p.Samples
	at := func(t uint64) int {
		i, _ := slices.BinarySearchFunc(samples, t, func(s profile.Sample, t uint64) int { return cmp.Compare(s.Time, t) })
		return i
	}
	lo, hi = at(from), len(samples)
	if to > 0 {
		hi = at(to)
	}
	return lo, max(lo, hi)
}

// of calls f for all samples of a thread that may lie, at least in part, between two times.
func (r *Recording) of(thread uint32, from, to uint64, f func(i int)) {
	lo, hi := r.turns(thread, from, to)
	for _, i := range r.byThread[lo:hi] {
		f(int(i))
	}
	if to > 0 {
		r.after(r.reaches, r.byTurn, hi, int(r.first[thread+1]), to, f)
	}
}

// turns returns the samples of a thread that were taken from from up to to, as places in byThread;
// to 0 is the end.
func (r *Recording) turns(thread uint32, from, to uint64) (lo, hi int) {
	first, end := int(r.first[thread]), int(r.first[thread+1])
	list := r.byThread[first:end]
	at := func(t uint64) int {
		i, _ := slices.BinarySearchFunc(list, t, func(s uint32, t uint64) int { return cmp.Compare(r.p.Samples[s].Time, t) })
		return first + i
	}
	lo, hi = at(from), end
	if to > 0 {
		hi = max(lo, at(to))
	}
	return lo, hi
}

// byTurn returns the index of a sample by its place in byThread.
func (r *Recording) byTurn(i int) int { return int(r.byThread[i]) }
