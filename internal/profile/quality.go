package profile

import "github.com/candid-profiler/candid/internal/walk"

// Certainty is how far a whole stack can be trusted.
type Certainty uint8

// The certainties. CertaintyOf is the one place that decides between them.
const (
	// CertaintyComplete: the stack ends at the thread's first frame, each caller was proved (exact
	// or derived, see walk.Provenance), the method of each frame of managed code is known, and all
	// of it is of the moment of the sample. Code that no file holds and no runtime claims proves
	// nothing about its callers: they are guesses (walk.KindUnknown).
	CertaintyComplete  Certainty = iota
	CertaintyStitched            // complete, but part was read after the sample was taken
	CertaintyUnnamed             // complete, but the method of a managed frame is not known
	CertaintyHeuristic           // ends at the first frame, but at least one frame is a guess
	CertaintyTruncated           // the copy of the stack ended before the first frame
	CertaintyBroken              // the walk ended before the first frame
	NumCertainties
)

var certaintyNames = [NumCertainties]string{"complete", "stitched", "unnamed", "heuristic", "truncated", "broken"}

// String returns the name used in reports and files.
func (c Certainty) String() string {
	if c < NumCertainties {
		return certaintyNames[c]
	}
	return "of unknown certainty"
}

// CertaintyOf returns how far a stack that ends in this way and has these flags can be trusted.
func CertaintyOf(end walk.End, flags SampleFlags) Certainty {
	switch {
	case end == walk.EndTruncated:
		return CertaintyTruncated
	case end != walk.EndComplete && end < walk.NumEnds:
		return CertaintyBroken
	case flags&Guessed != 0:
		return CertaintyHeuristic
	case flags&Unnamed != 0:
		return CertaintyUnnamed
	case flags&Stitched != 0:
		return CertaintyStitched
	}
	return CertaintyComplete
}

// FlagsOf returns the flags of a sample with a walked stack. unnamed means that the method of a
// frame of managed code is not known (ManagedFrame).
func FlagsOf(st *walk.Stack, unnamed bool) SampleFlags {
	var f SampleFlags
	if st.Stitched {
		f |= Stitched
	}
	if st.Worst == walk.Heuristic {
		f |= Guessed
	}
	if unnamed {
		f |= Unnamed
	}
	return f
}

// ManagedFrame reports whether frames of a kind run a method of a runtime, so that one without a
// name means that the profile lacks something.
func ManagedFrame(k walk.Kind) bool {
	switch k {
	case walk.KindInterpreted, walk.KindCompiled, walk.KindC1, walk.KindC2, walk.KindInlined, walk.KindNativeMethod,
		walk.KindTier0, walk.KindInstrumented, walk.KindOSR, walk.KindTier1, walk.KindReadyToRun, walk.KindAOT:
		return true
	}
	return false
}

// Quality counts how certain the stacks of a profile are. Every sample is in exactly one of
// Complete, Stitched, Unnamed, Heuristic, Truncated and Broken; see CertaintyOf for their meaning.
type Quality struct {
	Samples   uint64
	Complete  uint64
	Stitched  uint64
	Unnamed   uint64
	Heuristic uint64
	Truncated uint64
	Broken    uint64
	Reasons   [walk.NumEnds]uint64 // of the truncated and broken ones
}

// Quality counts all samples.
func (p *Profile) Quality() Quality {
	var q Quality
	p.Each(func(s *Sample, n uint64) { q.AddTimes(s.End, s.Flags, n) })
	return q
}

// Add counts one more sample.
func (q *Quality) Add(s *Sample) { q.AddTimes(s.End, s.Flags, 1) }

// AddTimes counts n more samples whose stacks end in this way and have these flags.
func (q *Quality) AddTimes(end walk.End, flags SampleFlags, n uint64) {
	q.Samples += n
	switch CertaintyOf(end, flags) {
	case CertaintyTruncated:
		q.Truncated += n
		q.Reasons[end] += n
	case CertaintyBroken:
		q.Broken += n
		q.Reasons[end] += n
	case CertaintyHeuristic:
		q.Heuristic += n
	case CertaintyUnnamed:
		q.Unnamed += n
	case CertaintyStitched:
		q.Stitched += n
	default:
		q.Complete += n
	}
}

// MostFrequentEnd returns why most of the broken stacks are broken, EndComplete if none is.
func (q Quality) MostFrequentEnd() walk.End {
	best := walk.EndComplete
	for e := walk.EndTruncated + 1; e < walk.NumEnds; e++ {
		if q.Reasons[e] > 0 && (best == walk.EndComplete || q.Reasons[e] > q.Reasons[best]) {
			best = e
		}
	}
	return best
}

// Merge adds the counts of o.
func (q *Quality) Merge(o Quality) {
	q.Samples += o.Samples
	q.Complete += o.Complete
	q.Stitched += o.Stitched
	q.Unnamed += o.Unnamed
	q.Heuristic += o.Heuristic
	q.Truncated += o.Truncated
	q.Broken += o.Broken
	for i, n := range o.Reasons {
		q.Reasons[i] += n
	}
}
