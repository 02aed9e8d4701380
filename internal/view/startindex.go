package view

import "context"

// Samples lie in the order of time, and a wait is recorded when it ends, so a wait that overlaps a
// range of time may be recorded long after that range. reach finds those samples without visiting
// all that follow.

// reachBlock is how many samples a block has.
const reachBlock = 256

// startIndex holds for a list of samples when the earliest of each block began.
type startIndex []uint64

// newStartIndex returns the index of n samples; at returns their index into p.Samples.
func (r *Recording) newStartIndex(n int, at func(i int) int) startIndex {
	if !r.cols.spans() {
		return nil
	}
	out := make(startIndex, (n+reachBlock-1)/reachBlock)
	for b := range out {
		least := ^uint64(0)
		for i := b * reachBlock; i < min(n, (b+1)*reachBlock); i++ {
			least = min(least, r.begin(at(i)))
		}
		out[b] = least
	}
	return out
}

// after calls f for those of a list's samples from from up to n that began before to.
func (r *Recording) after(list startIndex, index func(i int) int, from, n int, to uint64, f func(i int)) {
	for at := from; at < n && list != nil; {
		block := at / reachBlock
		end := min(n, (block+1)*reachBlock)
		if list[block] < to {
			for k := at; k < end; k++ {
				if i := index(k); r.begin(i) < to {
					f(i)
				}
			}
		}
		at = end
	}
}

func itself(i int) int { return i }

// waits reports whether a sample stands for the time before it: see profile.Event.Spans.
func (r *Recording) waits(i int) bool { return r.cols.sorts[r.cols.sort[i]].spans }

// begin returns when the time that a sample stands for began.
func (r *Recording) begin(i int) uint64 {
	t := r.p.Samples[i].Time
	if r.waits(i) {
		t -= min(t, r.weightOf(i))
	}
	return t
}

// partOf returns how much of a sample's weight lies in a range of time, and whether it belongs
// there.
func (r *Recording) partOf(i int, from, to uint64) (weight uint64, ok bool) {
	s := &r.p.Samples[i]
	if from == 0 && to == 0 {
		return s.Weight, true
	}
	return s.Part(r.waits(i), from, to)
}

// within calls f for all samples that may lie, at least in part, between two times, ns since the
// beginning; to 0 is the end. The error is the context's.
func (r *Recording) within(ctx context.Context, from, to uint64, f func(i int)) error {
	lo, hi := r.span(from, to)
	for at := lo; at < hi; at += step {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := at; i < min(at+step, hi); i++ {
			f(i)
		}
	}
	if to > 0 {
		r.after(r.reach, itself, hi, len(r.p.Samples), to, f)
	}
	return ctx.Err()
}

// bins adds up weights in equal ranges of time.
type bins struct {
	from, width float64
	to          float64
	n           int
	sums        []float64
	// A weight that covers many consecutive bins is added here, in ns per bin: how much more a bin
	// has than the one before.
	rise []float64
}

func newBins(from, to uint64, width float64, n int) *bins {
	return &bins{from: float64(from), to: float64(to), width: width, n: n, sums: make([]float64, n), rise: make([]float64, n+1)}
}

func (b *bins) reset() {
	clear(b.sums)
	clear(b.rise)
}

func (b *bins) at(t float64) int { return max(0, min(b.n-1, int((t-b.from)/b.width))) }

// moment adds a weight at a time.
func (b *bins) moment(t uint64, weight uint64) { b.sums[b.at(float64(t))] += float64(weight) }

// wait adds a weight that lies before a time and is as long as the weight.
func (b *bins) wait(t uint64, weight uint64) {
	end, begin := float64(t), float64(t)-float64(weight)
	if b.from == 0 && begin < 0 {
		b.sums[0] -= begin // see profile.Within
	}
	end, begin = min(end, b.to), max(begin, b.from)
	if end <= begin {
		return
	}
	first, last := b.at(begin), b.at(end)
	if first == last {
		b.sums[first] += end - begin
		return
	}
	b.sums[first] += b.from + float64(first+1)*b.width - begin
	b.sums[last] += end - (b.from + float64(last)*b.width)
	b.rise[first+1]++
	b.rise[last]--
}

// finish returns the sums.
func (b *bins) finish() []float64 {
	var high float64
	for i := range b.sums {
		high += b.rise[i]
		if b.sums[i] += high * b.width; b.sums[i] < 1e-3 {
			b.sums[i] = 0 // left over from rounding
		}
	}
	return b.sums
}

// put adds a sample.
func (b *bins) put(r *Recording, i int) {
	s := &r.p.Samples[i]
	if r.waits(i) && s.Weight > 0 {
		b.wait(s.Time, s.Weight)
	} else {
		b.moment(s.Time, s.Weight)
	}
}

// spans reports whether any of the samples stands for the time before it.
func (c *columns) spans() bool {
	for _, s := range c.sorts {
		if s.spans {
			return true
		}
	}
	return false
}
