package pgo

import (
	"bufio"
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ErrNoBranches means that recordings have no branches of a program, or too few.
var ErrNoBranches = errors.New("no branches were recorded")

// WritePreaggregated writes the branches and the runs between them for perf2bolt -pa: lines with B and
// F, addresses and counts (bolt/docs/profiles.md, "Pre-aggregated").
func WritePreaggregated(w io.Writer, m *Module) (branches float64, err error) {
	if m.Taken == 0 {
		return 0, ErrNoBranches
	}
	type pair struct{ a, b uint64 }
	taken, through := map[pair]float64{}, map[pair]float64{}
	for e, n := range m.Edges {
		from, to := e.From, e.To
		if !e.FromHere {
			from = 0
		}
		if !e.ToHere {
			to = 0
		}
		taken[pair{from, to}] += n
		if e.ToHere && !e.Last {
			through[pair{e.To, e.End}] += n
		}
	}
	out := bufio.NewWriter(w)
	for _, l := range []struct {
		kind string
		of   map[pair]float64
		more string
	}{{"B", taken, " 0"}, {"F", through, ""}} {
		keys := make([]pair, 0, len(l.of))
		for k := range l.of {
			keys = append(keys, k)
		}
		slices.SortFunc(keys, func(x, y pair) int { return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)) })
		for _, k := range keys {
			fmt.Fprintf(out, "%s %x %x %d%s\n", l.kind, k.a, k.b, count(l.of[k]), l.more)
			if l.kind == "B" {
				branches += l.of[k]
			}
		}
	}
	return branches, out.Flush()
}

// Bounds of what WriteBrStack writes.
const (
	brStackDepth = 32
	maxBrStacks  = 1 << 21
)

// WriteBrStack writes the branches as perf script prints branch stacks (-F ip,brstack), for
// llvm-profgen --perfscript. Recordings have counts of branches with the run behind each, not the
// order of all: the stacks are put together so that each branch and each run is there as often as it
// was counted.
func WriteBrStack(w io.Writer, m *Module, b *Binary) (branches float64, err error) {
	if m.Taken == 0 {
		return 0, ErrNoBranches
	}
	var list []Edge
	left := map[Edge]uint64{}
	after := map[uint64][]Edge{} // by the address of the branch
	for _, e := range sortedEdges(m) {
		if n := count(m.Edges[e]); e.FromHere && e.ToHere && n > 0 {
			list = append(list, e)
			left[e] = n
			after[e.From] = append(after[e.From], e)
		}
	}
	out := bufio.NewWriter(w)
	const page = 4096
	for _, p := range b.file.Segments() {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 { // as if it were loaded where its file says
			lead := p.Vaddr % page
			fmt.Fprintf(out, "PERF_RECORD_MMAP2 1/1: [%#x(%#x) @ %#x 00:00 0 0]: r-xp %s\n", p.Vaddr-lead, (p.Memsz+lead+page-1)&^(page-1), p.Off-min(p.Off, lead), b.Path)
		}
	}
	for stacks, i := 0, 0; i < len(list) && stacks < maxBrStacks; {
		e := list[i]
		if left[e] == 0 {
			i++
			continue
		}
		stacks++
		chain := []Edge{e}
		left[e]--
		for len(chain) < brStackDepth && !e.Last {
			next := -1
			for k, c := range after[e.End] {
				if left[c] > 0 && (next < 0 || left[c] > left[after[e.End][next]]) {
					next = k
				}
			}
			if next < 0 {
				break
			}
			e = after[e.End][next]
			left[e]--
			chain = append(chain, e)
		}
		fmt.Fprintf(out, " %x", e.End)
		for _, c := range slices.Backward(chain) { // the latest first
			fmt.Fprintf(out, " 0x%x/0x%x/P/-/-/0", c.From, c.To)
			branches++
		}
		out.WriteByte('\n')
	}
	return branches, out.Flush()
}
