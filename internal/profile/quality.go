package profile

import "github.com/candid-profiler/candid/internal/walk"

// Quality counts how certain the stacks of a profile are. Every sample is in
// exactly one of Complete, Stitched, Heuristic, Truncated and Broken.
type Quality struct {
	Samples   uint64
	Complete  uint64 // reach the thread's first frame, nothing guessed, all from the copy
	Stitched  uint64 // complete, but part was read after the sample was taken
	Heuristic uint64 // complete, but at least one frame is a guess
	Truncated uint64
	Broken    uint64
	Reasons   [walk.NumEnds]uint64 // of the truncated and broken ones
}

// Quality counts over all samples.
func (p *Profile) Quality() Quality {
	var q Quality
	p.Each(func(s *Sample, n uint64) { q.AddTimes(s.End, s.Flags, n) })
	return q
}

// Add counts one more sample.
func (q *Quality) Add(s *Sample) { q.AddTimes(s.End, s.Flags, 1) }

// AddTimes counts n more samples whose stacks end in that way and have those flags.
func (q *Quality) AddTimes(end walk.End, flags SampleFlags, n uint64) {
	q.Samples += n
	switch {
	case end == walk.EndTruncated:
		q.Truncated += n
		q.Reasons[end] += n
	case end != walk.EndComplete && end < walk.NumEnds:
		q.Broken += n
		q.Reasons[end] += n
	case flags&Guessed != 0:
		q.Heuristic += n
	case flags&Stitched != 0:
		q.Stitched += n
	default:
		q.Complete += n
	}
}

// MostFrequentEnd is why most of the broken stacks are broken, EndComplete if
// none is.
func (q Quality) MostFrequentEnd() walk.End {
	best := walk.EndComplete
	for e := walk.EndTruncated + 1; e < walk.NumEnds; e++ {
		if q.Reasons[e] > 0 && (best == walk.EndComplete || q.Reasons[e] > q.Reasons[best]) {
			best = e
		}
	}
	return best
}

// Merge adds what o counted.
func (q *Quality) Merge(o Quality) {
	q.Samples += o.Samples
	q.Complete += o.Complete
	q.Stitched += o.Stitched
	q.Heuristic += o.Heuristic
	q.Truncated += o.Truncated
	q.Broken += o.Broken
	for i, n := range o.Reasons {
		q.Reasons[i] += n
	}
}
