package view

import (
	"context"
	"fmt"

	"github.com/candid-profiler/candid/internal/profile"
)

// Limits of a request for a timeline.
const (
	maxBins  = 8192
	maxLanes = 256
	maxCells = 1 << 21 // of a heatmap
)

// Window is a range of time cut into equal bins.
type Window struct {
	From, To uint64 // ns since the beginning
	Bins     int
	Until    uint64 // what comes later is left out, though there are bins for it; 0: nothing is
}

// until returns where summing ends.
func (w Window) until() uint64 {
	if w.Until == 0 {
		return w.To
	}
	return max(w.From, min(w.To, w.Until))
}

func (w Window) check() error {
	if w.To <= w.From || w.Bins < 1 || w.Bins > maxBins {
		return fmt.Errorf("%w: a window from %d to %d in %d bins", ErrQuery, w.From, w.To, w.Bins)
	}
	return nil
}

// bins returns empty bins for the window.
func (w Window) bins() *bins {
	return newBins(w.From, w.until(), float64(w.To-w.From)/float64(w.Bins), w.Bins)
}

// Overview adds up what q chooses over time, by bin, and in each bin by state. It ignores q's own
// range of time.
func (r *Recording) Overview(ctx context.Context, q *Query, w Window) ([]float64, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	c := r.choose(q)
	sums := byState(w)
	err := r.within(ctx, w.From, w.until(), func(i int) {
		if c.takes(r, i) {
			sums[r.p.Samples[i].State].put(r, i)
		}
	})
	if err != nil {
		return nil, err
	}
	out := make([]float64, w.Bins*profile.NumStates)
	for state, b := range sums {
		for bin, v := range b.finish() {
			out[bin*profile.NumStates+state] = v
		}
	}
	return out, nil
}

// byState makes bins for each state.
func byState(w Window) (all [profile.NumStates]*bins) {
	for i := range all {
		all[i] = w.bins()
	}
	return all
}

// Lanes are the sums of threads over time.
type Lanes struct {
	Weight []float32 // by lane, and in each by bin
	State  []uint8   // the state with most of a bin's weight
}

// Lanes adds up what q chooses over time, thread by thread. It ignores q's own range of time and
// threads.
func (r *Recording) Lanes(ctx context.Context, q *Query, w Window, threads []uint32) (*Lanes, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	if len(threads) > maxLanes {
		return nil, fmt.Errorf("%w: %d lanes", ErrQuery, len(threads))
	}
	all := *q
	all.Threads = nil
	c := r.choose(&all)
	out := &Lanes{Weight: make([]float32, len(threads)*w.Bins), State: make([]uint8, len(threads)*w.Bins)}
	sums := byState(w)
	for lane, t := range threads {
		if int(t) >= len(r.p.Threads) {
			return nil, fmt.Errorf("%w: there are %d threads", ErrQuery, len(r.p.Threads))
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var any [profile.NumStates]bool
		r.of(t, w.From, w.until(), func(i int) {
			if c.takes(r, i) {
				state := r.p.Samples[i].State
				if !any[state] {
					any[state] = true
					sums[state].reset()
				}
				sums[state].put(r, i)
			}
		})
		for state, b := range sums {
			if any[state] {
				b.finish()
			}
		}
		for bin := range w.Bins {
			var sum, most float64
			for state := range sums {
				if !any[state] {
					continue
				}
				v := sums[state].sums[bin]
				sum += v
				if v > most {
					most, out.State[lane*w.Bins+bin] = v, uint8(state)
				}
			}
			out.Weight[lane*w.Bins+bin] = float32(sum)
		}
	}
	return out, nil
}

// Heatmap adds up what q chooses, in cells, ignoring q's own range of time. A column has so many
// rows of cells of cell ns, and the next column continues it. The result is column by column.
func (r *Recording) Heatmap(ctx context.Context, q *Query, from, to, cell uint64, rows int) ([]float32, error) {
	if to <= from || cell == 0 || rows < 1 || rows > maxBins || cell > 1<<62/uint64(rows) || (to-from)/cell >= maxCells {
		return nil, fmt.Errorf("%w: a heatmap from %d to %d in cells of %d", ErrQuery, from, to, cell)
	}
	columns := int((to-from-1)/(cell*uint64(rows))) + 1
	if columns*rows > maxCells+maxBins {
		return nil, fmt.Errorf("%w: a heatmap of %d cells", ErrQuery, columns*rows)
	}
	c := r.choose(q)
	b := newBins(from, to, float64(cell), columns*rows)
	err := r.within(ctx, from, to, func(i int) {
		if c.takes(r, i) {
			b.put(r, i)
		}
	})
	if err != nil {
		return nil, err
	}
	out := make([]float32, columns*rows)
	for i, v := range b.finish() {
		out[i] = float32(v)
	}
	return out, nil
}
