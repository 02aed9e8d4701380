package view

import (
	"context"
	"fmt"

	"github.com/candid-profiler/candid/internal/profile"
)

// What the page may ask of a timeline at most, in one request.
const (
	maxBins  = 8192
	maxLanes = 256
	maxCells = 1 << 21 // of a heatmap
)

// Window is a stretch of time cut into equal bins.
type Window struct {
	From, To uint64 // ns since the beginning
	Bins     int
}

func (w Window) check() error {
	if w.To <= w.From || w.Bins < 1 || w.Bins > maxBins {
		return fmt.Errorf("%w: a window from %d to %d in %d bins", ErrQuery, w.From, w.To, w.Bins)
	}
	return nil
}

// bin is where a time falls. The window is at most 2^63 ns long and has at most
// 2^13 bins, so the product is taken in floating point.
func (w Window) bin(t uint64) int {
	return min(w.Bins-1, int(float64(t-w.From)/float64(w.To-w.From)*float64(w.Bins)))
}

// Overview adds up what q chooses over time, whatever q says of the time: by
// bin, and in each by state.
func (r *Recording) Overview(ctx context.Context, q *Query, w Window) ([]float64, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	c := r.choose(q)
	out := make([]float64, w.Bins*profile.NumStates)
	lo, hi := r.span(w.From, w.To)
	for at := lo; at < hi; at += step {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i := at; i < min(at+step, hi); i++ {
			if s := &r.p.Samples[i]; c.takes(r, i) {
				out[w.bin(s.Time)*profile.NumStates+int(s.State)] += float64(s.Weight)
			}
		}
	}
	return out, nil
}

// Lanes are threads over time.
type Lanes struct {
	Weight []float32 // by lane, and for each by bin
	State  []uint8   // that most of a bin's weight is in
}

// Lanes adds up what q chooses over time, thread by thread, whatever q says of
// time and threads.
func (r *Recording) Lanes(ctx context.Context, q *Query, w Window, threads []uint32) (*Lanes, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	if len(threads) > maxLanes {
		return nil, fmt.Errorf("%w: %d lanes", ErrQuery, len(threads))
	}
	any := *q
	any.Threads = nil
	c := r.choose(&any)
	out := &Lanes{Weight: make([]float32, len(threads)*w.Bins), State: make([]uint8, len(threads)*w.Bins)}
	sums := make([]float64, w.Bins*profile.NumStates)
	for lane, t := range threads {
		if int(t) >= len(r.p.Threads) {
			return nil, fmt.Errorf("%w: there are %d threads", ErrQuery, len(r.p.Threads))
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		clear(sums)
		for _, i := range r.of(t, w.From, w.To) {
			if s := &r.p.Samples[i]; c.takes(r, int(i)) {
				sums[w.bin(s.Time)*profile.NumStates+int(s.State)] += float64(s.Weight)
			}
		}
		for bin := range w.Bins {
			var sum, most float64
			for state, v := range sums[bin*profile.NumStates : (bin+1)*profile.NumStates] {
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

// Heatmap adds up what q chooses, whatever q says of the time, in cells: a
// column is rows cells of cell ns, the next one goes on after it. The result is
// column by column.
func (r *Recording) Heatmap(ctx context.Context, q *Query, from, to, cell uint64, rows int) ([]float32, error) {
	if to <= from || cell == 0 || rows < 1 || rows > maxBins || cell > 1<<62/uint64(rows) || (to-from)/cell >= maxCells {
		return nil, fmt.Errorf("%w: a heatmap from %d to %d in cells of %d", ErrQuery, from, to, cell)
	}
	columns := int((to - from + cell*uint64(rows) - 1) / (cell * uint64(rows)))
	if columns*rows > maxCells+maxBins {
		return nil, fmt.Errorf("%w: a heatmap of %d cells", ErrQuery, columns*rows)
	}
	c := r.choose(q)
	out := make([]float32, columns*rows)
	lo, hi := r.span(from, to)
	for at := lo; at < hi; at += step {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i := at; i < min(at+step, hi); i++ {
			if s := &r.p.Samples[i]; c.takes(r, i) {
				out[(s.Time-from)/cell] += float32(s.Weight)
			}
		}
	}
	return out, nil
}
