package suspend

import (
	"fmt"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
)

var _ capture.Noter = (*Engine)(nil)

// given is what the delivered samples stand for.
type given struct {
	samples, ns uint64 // where threads ran
	nowhere     uint64 // ns that threads without any other sample ran
	threads     int    // how many such threads there are
	shared      uint64 // ns that threads ran after the last looks at them, by their processes' accounts
	unplaced    uint64 // ns that threads slept, or waited for a CPU, at an unknown place
}

const (
	// fewTold is the number of requested samples from which on a shortage is reported, and
	// toldShare the share of them that must be missing.
	fewTold, toldShare = 20, 0.1
	// leastUnplaced is from how many ns on it is reported that wall time is at unknown places.
	leastUnplaced = 100e6
)

// Notes implements capture.Noter.
func (e *Engine) Notes() []string {
	var notes []string
	if n := e.heldBack(e.Stats().Throttled); n != "" {
		notes = append(notes, n)
	}
	if ns := e.given.shared; ns > 0 {
		notes = append(notes, fmt.Sprintf("processes ran %v between the last look at their threads and their end; it is shown without a stack, shared among the threads in proportion to what each had run before, which is a guess",
			time.Duration(ns).Round(100*time.Microsecond)))
	}
	if ns := e.given.unplaced; ns >= leastUnplaced {
		notes = append(notes, fmt.Sprintf("threads slept or waited for a CPU for %v without being looked at, which is shown without a stack", time.Duration(ns).Round(100*time.Microsecond)))
	}
	if n := e.unfollowed.Load(); n > 0 {
		need := 2 * spareFiles
		for _, p := range e.procs {
			need += len(p.threads) + p.without
		}
		notes = append(notes, fmt.Sprintf("%d threads were not sampled: candid may open %d files and needs one for each thread; before starting it, allow it %d (ulimit -n %d)",
			n, allowedFiles(), need, need))
	}
	return notes
}

// heldBack describes how many samples fewer than requested were taken, "" if they are nearly all
// there.
func (e *Engine) heldBack(late uint64) string {
	asked := float64(e.given.ns+e.given.nowhere+e.given.shared) / float64(e.opts.Period)
	if asked < fewTold || float64(e.given.samples) > (1-toldShare)*asked {
		return ""
	}
	s := fmt.Sprintf("throttled: candid got no CPU in %d sampling periods, or got one too late; of %.0f samples that the CPU time of the targets asks for %d were taken, which stand for the rest of their threads' time too",
		late, asked, e.given.samples)
	if e.given.threads > 0 {
		s += fmt.Sprintf("; %d threads were never met while they ran, and their %v is shown without a stack",
			e.given.threads, time.Duration(e.given.nowhere).Round(100*time.Microsecond))
	}
	return s
}
