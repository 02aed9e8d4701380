package profile

import (
	"slices"
	"time"
)

// Cut returns the recording of a range of time, with times counted from its beginning. A filter
// with these times has already chosen the samples of p. end is how long the whole is. Data that p
// shares with another profile is not changed.
func Cut(p *Profile, f Filter, end time.Duration) *Profile {
	if f.From <= 0 && f.To <= 0 {
		return p
	}
	out := *p
	from := max(f.From, 0)
	if f.To > 0 {
		end = min(end, f.To)
	}
	if !out.Meta.Start.IsZero() {
		out.Meta.Start = out.Meta.Start.Add(from)
	}
	out.Meta.Duration = max(end-from, 0)
	earlier := func(t uint64) uint64 { return t - min(t, uint64(from)) }
	if out.Samples = slices.Clone(p.Samples); from > 0 {
		for i := range out.Samples {
			out.Samples[i].Time = earlier(out.Samples[i].Time)
		}
	}
	if from > 0 {
		out.keep(p, func(s *Sample) bool {
			s.Time = earlier(s.Time)
			return true
		}, nil)
	}
	out.Observations = nil
	for _, o := range p.Observations {
		if changes(o.Kind) && (o.Time < uint64(from) || o.Time > uint64(end)) {
			continue
		}
		o.Time = earlier(min(o.Time, uint64(end)))
		out.Observations = append(out.Observations, o)
	}
	// The kernel's figures are of the whole recording.
	out.Threads = slices.Clone(p.Threads)
	for i := range out.Threads {
		out.Threads[i].KernelCPU = 0
	}
	return &out
}

// changes reports whether observations of a kind belong to a time, rather than to the whole
// recording.
func changes(kind uint16) bool {
	switch kind {
	case CPULoad, ThreadCPULoad, ResidentSetSize, GarbageCollection, YoungGarbageCollection, OldGarbageCollection, GCPhasePause, GCHeapSummary,
		CollectorStatistics, HeapStatistics, SafepointStatistics, ClassLoadingStatistics, JavaThreadStatistics, CompilerStatistics, NetworkUtilization:
		return true
	}
	return false
}
