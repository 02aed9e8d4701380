package dotnet

import (
	"cmp"
	"slices"
	"time"

	"github.com/candid-profiler/candid/internal/clrgc"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/runtimes"
)

// clockSlack is how much earlier than it was first missing a collection may have ended: the record of a
// background collection is valid some time after the end that it names.
const clockSlack = 200 * time.Millisecond

// counterNames are the names of the counts of collections: of each generation, as GC.CollectionCount
// counts them.
var counterNames = [clrgc.Generations]string{"Gen0", "Gen1", "Gen2"}

// tellCounts reports how often each generation was collected, and how long the program stood still for
// that in all: every collection counts for generation 0 too.
func tellCounts(s *clrgc.State, to runtimes.Observations) {
	unknown := profile.Number(profile.UnknownNumber)
	for g, name := range counterNames {
		paused := unknown
		if g == 0 {
			paused = profile.Number(uint64(s.Paused))
		}
		to.Seen(profile.CollectorStatistics, profile.Text(name), profile.Number(s.Collections[g]), paused)
	}
	to.Seen(profile.CollectorStatistics, profile.Text("Gen2 background"), profile.Number(s.Background), unknown)
}

// tellCollections reports the collections that have ended since the last state. Of several of one kind
// only the last is known; the counts have all.
func (o *observer) tellCollections(s *clrgc.State, to runtimes.Observations) {
	var ended []*clrgc.Collection
	for k := range s.Last {
		if g := &s.Last[k]; g.Index != o.state.Last[k].Index {
			ended = append(ended, g)
		}
	}
	if len(ended) > 0 {
		to.Hurry()
	}
	slices.SortFunc(ended, func(a, b *clrgc.Collection) int { return cmp.Compare(a.Index, b.Index) })
	for _, g := range ended {
		if g.Start == 0 {
			continue // another one has begun since
		}
		end := g.Start + uint64(g.Elapsed)
		begin := end - uint64(g.Pauses[0])
		if g.Kind == clrgc.Background {
			begin = g.Start
		}
		if begin > end || end > to.Clock() || end+uint64(clockSlack) < o.looked {
			if !o.strange {
				o.strange = true
				to.Note("the times of collections are not known: the runtime's clock is another one")
			}
			continue
		}
		if begin >= to.Start() {
			tellCollection(g, begin-to.Start(), end-to.Start(), to)
		}
	}
}

// tellCollection reports a collection with its times since sampling began. A blocking one lasts as long
// as the program stood still for it. When the pauses of a background collection began is not recorded.
func tellCollection(g *clrgc.Collection, begin, end uint64, to runtimes.Observations) {
	name := counterNames[g.Generation]
	if g.Kind == clrgc.Background {
		name += " background"
	}
	id, ns := profile.Number(g.Index), end-begin
	see := func(kind uint16, time, duration uint64, values ...profile.Value) {
		to.Observe(profile.Observation{Kind: kind, Time: time, Duration: duration, Values: values})
	}
	see(profile.GarbageCollection, begin, ns, id, profile.Text(name), profile.Text(""), profile.Number(uint64(g.Pause())), profile.Number(uint64(max(g.Pauses[0], g.Pauses[1]))))
	if g.Kind != clrgc.Background {
		see(profile.GCPhasePause, begin, ns, id, profile.Text("GC Pause"))
	}
	kind := uint16(profile.YoungGarbageCollection)
	if g.Generation == clrgc.Generations-1 {
		kind = profile.OldGarbageCollection
	}
	see(kind, begin, ns, id)
	if used, ok := usedBefore(g); ok {
		see(profile.GCHeapSummary, begin, 0, id, profile.Text("Before GC"), profile.Number(used))
	}
	if g.HeapSize >= g.Fragmentation {
		see(profile.GCHeapSummary, end, 0, id, profile.Text("After GC"), profile.Number(g.HeapSize-g.Fragmentation))
	}
	for i, h := range g.Heaps {
		see(profile.GenerationSummary, end, 0, id, profile.Text(clrgc.HeapNames[i]),
			profile.Number(h.Before), profile.Number(h.FreeBefore), profile.Number(h.After), profile.Number(h.FreeAfter))
	}
}

// usedBefore returns how many bytes of the heap objects had before a collection; false if its record
// cannot be true.
func usedBefore(g *clrgc.Collection) (used uint64, ok bool) {
	for _, h := range g.Heaps {
		if h.Before < h.FreeBefore || h.Before >= 1<<48 {
			return 0, false
		}
		used += h.Before - h.FreeBefore
	}
	return used, true
}
