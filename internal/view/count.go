package view

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/candid-profiler/candid/internal/profile"
)

// Cell holds the sum of the samples that ended in one place of the tree.
type Cell struct {
	Place  uint32
	Thread uint32 // 0 unless threads are kept apart
	profile.Count
}

// Counts are the sums of what a Query chose.
type Counts struct {
	All     profile.Count // of the event, before filtering
	Chosen  profile.Count
	Squares float64 // of the weights of the samples chosen: samples of different weight carry less information
	Quality profile.Quality
	Threads []profile.Count // by index into Threads
	States  []profile.StateCount
	Cells   []Cell // by place, then thread
}

// step is how many samples are added up between two checks whether anybody still waits for the
// result.
const step = 1 << 15

// partial holds the sums of one worker.
type partial struct {
	ends    []profile.Count // by index into ends
	threads []profile.Count
	sorts   []profile.Count
	squares float64 // of weights
}

// Count adds up what q chooses. The error is the context's.
func (r *Recording) Count(ctx context.Context, q *Query) (*Counts, error) {
	s, err := r.shapeFor(q.rewrite)
	if err != nil {
		return nil, err
	}
	var out *Counts
	err = r.counted(ctx, q, func(p *partial) {
		out = r.finish(p, q)
		if !q.ByThread {
			out.Cells = r.cells(p.ends, s)
		}
	})
	if err != nil || !q.ByThread {
		return out, err
	}
	c := r.choose(q)
	return out, r.split(ctx, out, &c, s)
}

// sum adds up what q chooses, on all CPUs. The error is the context's.
func (r *Recording) sum(ctx context.Context, q *Query) (*partial, error) {
	c := r.choose(q)
	lo, hi := 0, len(r.p.Samples)
	if q.From > 0 || q.To > 0 {
		lo, hi = r.span(q.From, q.To)
	}
	workers := max(1, min(runtime.GOMAXPROCS(0), (hi-lo)/(4*step)))
	parts := make([]*partial, workers)
	var wg sync.WaitGroup
	for w := range workers {
		from, to := lo+(hi-lo)*w/workers, lo+(hi-lo)*(w+1)/workers
		parts[w] = r.newPartial()
		wg.Add(1)
		go func() {
			defer wg.Done()
			for at := from; at < to && ctx.Err() == nil; at += step {
				r.add(parts[w], &c, at, min(at+step, to))
			}
		}()
	}
	wg.Wait()
	if q.To > 0 {
		r.after(r.reach, itself, hi, len(r.p.Samples), q.To, func(i int) { r.add(parts[0], &c, i, i+1) })
	}
	if err := ctx.Err(); err != nil {
		r.keep(parts)
		return nil, err
	}
	sum := parts[0]
	for _, p := range parts[1:] {
		sum.merge(p)
	}
	r.keep(parts[1:])
	return sum, nil
}

// cells returns the counts that are not zero, by place.
func (r *Recording) cells(ends []profile.Count, s *shownTree) []Cell {
	some := 0
	for i := range ends {
		if ends[i].Samples > 0 {
			some++
		}
	}
	out := make([]Cell, 0, some)
	for i, n := range ends {
		if n.Samples > 0 {
			out = append(out, Cell{Place: s.placeOf(r.cols.ends[i]), Count: n})
		}
	}
	if s.place == nil {
		return out // ends are in the order of their places
	}
	slices.SortFunc(out, func(a, b Cell) int { return cmp.Compare(a.Place, b.Place) })
	return mergeCells(out)
}

// mergeCells merges the cells of one place into one, in a list that is in the order of places.
func mergeCells(out []Cell) []Cell {
	merged := out[:0]
	for _, c := range out {
		if k := len(merged) - 1; k >= 0 && merged[k].Place == c.Place {
			merged[k].Add(c.Count)
		} else {
			merged = append(merged, c)
		}
	}
	return merged
}

// newPartial returns an empty partial, usually one that was used before: while a range of time is
// dragged, the memory of new ones costs more than the summing.
func (r *Recording) newPartial() *partial {
	r.mu.Lock()
	var p *partial
	if n := len(r.spare); n > 0 {
		p, r.spare = r.spare[n-1], r.spare[:n-1]
	}
	r.mu.Unlock()
	if p != nil {
		clear(p.ends)
		clear(p.sorts)
		p.squares = 0
		p.threads = make([]profile.Count, len(r.p.Threads)) // the last ones were handed out
		return p
	}
	return &partial{
		ends: make([]profile.Count, len(r.cols.ends)), threads: make([]profile.Count, len(r.p.Threads)), sorts: make([]profile.Count, len(r.cols.sorts)),
	}
}

// keep takes back partials that are not needed any more.
func (r *Recording) keep(parts []*partial) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range parts {
		if len(r.spare) < 2*runtime.GOMAXPROCS(0) {
			r.spare = append(r.spare, p)
		}
	}
}

// add adds up the samples from index from up to index to.
func (r *Recording) add(p *partial, c *chosen, from, to int) {
	cut := c.q.From > 0 || c.q.To > 0
	sorts, lasts, threads := r.cols.sort[from:to], r.cols.last[from:to], r.cols.thread[from:to]
	for i, k := range sorts {
		if !c.sorts[k] {
			continue
		}
		last, t := lasts[i], threads[i]
		if !c.passes(last, t) {
			continue
		}
		n := profile.Count{Samples: 1, Weight: r.weightOf(from + i)}
		if cut && r.cols.sorts[k].spans {
			var ok bool
			if n.Weight, ok = r.partOf(from+i, c.q.From, c.q.To); !ok {
				continue
			}
		}
		p.ends[last].Add(n)
		p.threads[t].Add(n)
		p.sorts[k].Add(n)
		p.squares += float64(n.Weight) * float64(n.Weight)
	}
}

func (p *partial) merge(o *partial) {
	sum := func(a, b []profile.Count) {
		for i := range b {
			a[i].Add(b[i])
		}
	}
	sum(p.ends, o.ends)
	sum(p.threads, o.threads)
	sum(p.sorts, o.sorts)
	p.squares += o.squares
}

// finish assembles everything except the cells.
func (r *Recording) finish(p *partial, q *Query) *Counts {
	out := &Counts{Threads: p.threads, Squares: p.squares}
	all := r.all
	if q.Side != Both {
		all = r.sides[q.Side-Before]
	}
	if q.Event < len(all) {
		out.All = all[q.Event]
	}
	for _, t := range p.threads {
		out.Chosen.Add(t)
	}
	for k, n := range p.sorts {
		s := &r.cols.sorts[k]
		if n.Samples > 0 {
			out.Quality.AddTimes(s.end, s.flags, n.Samples)
			row := profile.StateCount{State: s.state, Count: n}
			if s.syscall > 0 {
				row.Syscall = r.p.Syscalls[s.syscall]
			}
			out.States = append(out.States, row)
		}
	}
	out.States = profile.SortStates(out.States)
	return out
}

// split makes separate cells for each thread.
func (r *Recording) split(ctx context.Context, out *Counts, c *chosen, to *shownTree) error {
	places := make([]profile.Count, len(to.tree.Order))
	var touched []uint32
	for t := range r.p.Threads {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if out.Threads[t].Samples == 0 {
			continue
		}
		r.of(uint32(t), c.q.From, c.q.To, func(i int) {
			weight, ok := r.partOf(i, c.q.From, c.q.To)
			if !ok || !c.takes(r, i) {
				return
			}
			at := to.placeOf(r.at[i])
			if places[at].Samples == 0 {
				touched = append(touched, at)
			}
			places[at].Add(profile.Count{Samples: 1, Weight: weight})
		})
		for _, at := range touched {
			out.Cells = append(out.Cells, Cell{at, uint32(t), places[at]})
			places[at] = profile.Count{}
		}
		touched = touched[:0]
	}
	slices.SortFunc(out.Cells, func(a, b Cell) int { return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.Thread, b.Thread)) })
	return nil
}
