package locations

import (
	"cmp"
	"iter"
	"slices"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Group is what the samples that become one Sample of a file have in common: everything except
// their times and weights.
type Group struct {
	Node, Thread uint32
	Event        uint16
	Syscall      uint16
	State        profile.State
	End          walk.End
	Flags        profile.SampleFlags
}

// GroupOf returns the group of a sample.
func GroupOf(s *profile.Sample) Group {
	return Group{s.Node, s.Thread, s.Event, s.Syscall, s.State, s.End, s.Flags}
}

// Compare compares groups for sorting.
func (g Group) Compare(o Group) int {
	if g.Node != o.Node { // nearly always, and there may be millions
		return cmp.Compare(g.Node, o.Node)
	}
	return cmp.Or(cmp.Compare(g.Thread, o.Thread), cmp.Compare(g.Event, o.Event),
		cmp.Compare(g.State, o.State), cmp.Compare(g.Syscall, o.Syscall), cmp.Compare(g.End, o.End), cmp.Compare(g.Flags, o.Flags))
}

// Sums returns the sums of the samples of each group.
func Sums(p *profile.Profile) iter.Seq2[Group, profile.Count] {
	type sum struct {
		Group
		profile.Count
	}
	return func(yield func(Group, profile.Count) bool) {
		// Groups come in the order of nodes and threads.
		var same []sum
		more := true
		flush := func() {
			slices.SortFunc(same, func(a, b sum) int { return a.Compare(b.Group) })
			for i := range same {
				more = more && yield(same[i].Group, same[i].Count)
			}
			same = same[:0]
		}
		profile.Summed(p).Each(func(s *profile.Sample, n uint64) {
			if len(same) > 0 && (same[0].Node != s.Node || same[0].Thread != s.Thread) {
				flush()
			}
			same = append(same, sum{GroupOf(s), profile.Count{Samples: n, Weight: s.Weight}})
		})
		flush()
	}
}
