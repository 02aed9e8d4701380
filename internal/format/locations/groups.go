package locations

import (
	"cmp"
	"iter"
	"slices"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Group is what the samples that become one Sample of a file have in common: all
// but their times and weights.
type Group struct {
	Node, Thread uint32
	Event        uint16
	Syscall      uint16
	State        profile.State
	End          walk.End
	Flags        profile.SampleFlags
}

func groupOf(s *profile.Sample) Group {
	return Group{s.Node, s.Thread, s.Event, s.Syscall, s.State, s.End, s.Flags}
}

func (g Group) compare(o Group) int {
	return cmp.Or(cmp.Compare(g.Node, o.Node), cmp.Compare(g.Thread, o.Thread), cmp.Compare(g.Event, o.Event),
		cmp.Compare(g.State, o.State), cmp.Compare(g.Syscall, o.Syscall), cmp.Compare(g.End, o.End), cmp.Compare(g.Flags, o.Flags))
}

// Sums gives what the samples of each group come to.
func Sums(p *profile.Profile) iter.Seq2[Group, profile.Count] {
	type sum struct {
		Group
		profile.Count
	}
	return func(yield func(Group, profile.Count) bool) {
		// They come in the order of nodes and threads.
		var same []sum
		more := true
		flush := func() {
			slices.SortFunc(same, func(a, b sum) int { return a.compare(b.Group) })
			for i := range same {
				more = more && yield(same[i].Group, same[i].Count)
			}
			same = same[:0]
		}
		profile.Summed(p).Each(func(s *profile.Sample, n uint64) {
			if len(same) > 0 && (same[0].Node != s.Node || same[0].Thread != s.Thread) {
				flush()
			}
			same = append(same, sum{groupOf(s), profile.Count{Samples: n, Weight: s.Weight}})
		})
		flush()
	}
}

// Groups gives the groups of some samples of p, each with its samples in the order
// of time. It sorts the indices of, and what it gives is part of them.
func Groups(p *profile.Profile, of []uint32) iter.Seq2[Group, []uint32] {
	return func(yield func(Group, []uint32) bool) {
		slices.SortFunc(of, func(a, b uint32) int {
			x, y := &p.Samples[a], &p.Samples[b]
			if x.Node != y.Node { // nearly always, and there are millions
				return cmp.Compare(x.Node, y.Node)
			}
			return cmp.Or(groupOf(x).compare(groupOf(y)), cmp.Compare(x.Time, y.Time), cmp.Compare(a, b))
		})
		for len(of) > 0 {
			g := groupOf(&p.Samples[of[0]])
			n := 1
			for n < len(of) && groupOf(&p.Samples[of[n]]) == g {
				n++
			}
			if !yield(g, of[:n]) {
				return
			}
			of = of[n:]
		}
	}
}
