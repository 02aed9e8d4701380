package suspend

import (
	"cmp"
	"slices"

	"github.com/candid-profiler/candid/internal/capture"
)

const (
	// leastShare is the share of what one thread, or all of them, ran that need not be reported at
	// the end.
	leastShare = 0.01
	// leastRest is the part of a period from which on a rest is always reported.
	leastRest = 0.125
)

// rest is how long a thread has run that no sample stands for.
type rest struct {
	th *thread
	ns uint64
}

// tellRest hands over what threads have run since their last samples, when the sampling threads
// have ended, as more time of those samples: if threads are many and rarely get a CPU, that is much
// of what they ran. A thread that has no sample is reported to have run at an unknown place.
func (e *Engine) tellRest(sink capture.Sink) {
	repeater, _ := sink.(capture.SleepSink)
	now := uint64(clock())
	for _, r := range e.rests() {
		if r.th.shown != 0 && repeater == nil {
			continue
		}
		e.snap = capture.Snapshot{
			Time: now, Weight: r.ns, PID: uint32(r.th.proc.pid), TID: uint32(r.th.tid), CPU: uint32(r.th.cpu), Sleep: r.th.shown,
		}
		if r.th.shown == 0 {
			e.given.nowhere += r.ns
			e.given.threads++
			e.snap.Flags = capture.NoUser | capture.StackUnread
		} else {
			e.given.ns += r.ns
		}
		for _, i := range e.ticks {
			e.snap.Event = i
			if r.th.shown == 0 {
				e.give(sink)
			} else if taken, _ := repeater.Again(&e.snap); taken {
				e.samples.Add(1)
			}
		}
		r.th.sampled += r.ns
	}
	sink.BatchEnd()
}

// rests reads the accounts of all threads for the last time, and returns what is to be reported:
// except for a hundredth, the rest of each thread that has samples, and of the others together.
func (e *Engine) rests() (list []rest) {
	var bare []rest // threads without samples
	var all uint64
	for _, p := range e.procs {
		for _, th := range p.threads {
			a, ok := e.reader.account(th.schedFD)
			if th.last = a.run; !ok || a.run < th.sampled {
				continue
			}
			ran, left := a.run-th.from, a.run-th.sampled
			all += ran
			switch {
			case left == 0:
			case th.shown == 0:
				bare = append(bare, rest{th, left})
			case float64(left) >= leastShare*float64(ran):
				list = append(list, rest{th, left})
			}
		}
	}
	slices.SortFunc(bare, func(a, b rest) int { return cmp.Compare(a.ns, b.ns) })
	spare := leastShare * float64(all)
	for i, r := range bare {
		if spare -= float64(r.ns); spare < 0 || float64(r.ns) >= leastRest*float64(e.opts.Period) {
			return append(list, bare[i:]...)
		}
	}
	return list
}
