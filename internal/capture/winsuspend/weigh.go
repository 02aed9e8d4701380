package winsuspend

import "github.com/candid-profiler/candid/internal/capture"

// sample is a copied thread, or more time for the copy before it.
type sample struct {
	snap  capture.Snapshot
	again bool // no stack: the thread still sleeps where the last sample found it
	th    *thread
}

// mostWaiting bounds the samples of a thread that wait for its time to be counted.
const mostWaiting = 64

// account divides what a thread has run among its samples. The kernel may count that only at each
// tick of its clock: then the samples taken since the last tick share what the next one counts.
type account struct {
	waiting []*sample
	owed    uint64 // ns that were counted while there was no sample
}

// take adds a sample that was taken while the thread ran. It returns a sample that has waited for
// too long, or nil: the thread did not run meanwhile.
func (a *account) take(s *sample) (dropped *sample) {
	if len(a.waiting) == mostWaiting {
		dropped = a.waiting[0]
		a.waiting = append(a.waiting[:0], a.waiting[1:]...)
	}
	a.waiting = append(a.waiting, s)
	return dropped
}

// count adds time that the thread has run, in ns, and appends the samples that now have a weight to
// out.
func (a *account) count(ns uint64, out []*sample) []*sample {
	a.owed += ns
	n := uint64(len(a.waiting))
	if n == 0 || a.owed == 0 {
		return out
	}
	// The sum is exact: what a division leaves goes to the last ones.
	for i, s := range a.waiting {
		s.snap.Weight = a.owed / (n - uint64(i))
		a.owed -= s.snap.Weight
		out = append(out, s)
	}
	clear(a.waiting)
	a.waiting = a.waiting[:0]
	return out
}
