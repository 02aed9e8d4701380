package suspend

import (
	"cmp"
	"slices"

	"github.com/candid-profiler/candid/internal/capture"
)

const (
	// leastShare is the share of what one thread, or all of them, ran that need not be reported at
	// the end. The same holds for what a thread slept, and waited for a CPU.
	leastShare = 0.01
	// leastRest is the part of a period from which on a rest is always reported.
	leastRest = 0.125
)

// rest is the time of a thread, in ns, that no sample stands for.
type rest struct {
	th                        *thread
	at                        int64 // ns, until when the thread's account is known
	ran, waited, slept, stood uint64
	all                       struct{ ran, waited, slept, stood uint64 } // with what samples stand for
}

// restOf returns the rest of a thread as of its final account, or, if it has ended, as of the last
// one that was read. The sampling threads and the sleep scanner must be done with it.
func (e *Engine) restOf(th *thread) rest {
	f, sl := th.final, th.sleeper
	r := rest{th: th, at: max(f.at, th.active, int64(th.shown&^capture.Ran))}
	if sl != nil && f.at == 0 {
		if sl.looked != 0 {
			f = final{at: sl.looked, account: sl.seen, late: sl.seenLate}
		}
		if th.looked.at > max(f.at, sl.began) {
			f = th.looked
		}
		r.at = max(r.at, f.at)
	}
	run := max(f.run, th.seen.run)
	r.all.ran, r.ran = run-min(th.from, run), run-min(th.sampled, run)
	if sl == nil || f.at == 0 {
		return r
	}
	r.all.waited, r.waited = f.late-min(sl.late, f.late), f.late-min(th.waited.Load(), f.late)
	r.all.stood, r.stood = uint64(th.stood.Load()-sl.stood), uint64(max(0, th.stood.Load()-th.told))
	sl.gave -= sl.back.Swap(0)
	slept := sl.slept(f.at, f.account, f.late)
	r.all.slept, r.slept = uint64(max(0, slept)), uint64(max(0, slept-sl.gave))
	if f.wants {
		// It has waited since it last ran or slept, which the kernel counts when it runs again.
		// Sleep that an earlier look saw is not part of it.
		most := f.idle
		if most == 0 && (sl.looked == 0 || sl.seen.turns == f.turns) {
			most = f.at
		}
		if sl.looked != 0 {
			most = min(most, slept-sl.slept(sl.looked, sl.seen, sl.seenLate))
		}
		more := min(uint64(max(0, most)), r.slept)
		r.slept, r.all.slept = r.slept-more, r.all.slept-min(more, r.all.slept)
		r.waited, r.all.waited = r.waited+more, r.all.waited+more
	}
	return r
}

// spare drops what is too little to be reported: less than least ns, or than a hundredth of what
// samples stand for already. What threads without samples ran is left to the caller.
func (r *rest) spare(least float64) {
	for _, c := range []struct {
		ns  *uint64
		all uint64
	}{{&r.ran, r.all.ran}, {&r.waited, r.all.waited}, {&r.slept, r.all.slept}, {&r.stood, r.all.stood}} {
		if ns := float64(*c.ns); ns < leastShare*float64(c.all) || c.ns != &r.ran && ns < least {
			*c.ns = 0
		}
	}
}

// tellRest hands over the time of threads that no sample stands for, when recording has ended, as
// more time of their last samples: if threads are many and rarely get a CPU, or candid rarely gets
// one, that is much of their time. A thread that has no sample is reported to have run, or to have
// slept, at an unknown place.
func (e *Engine) tellRest(sink capture.Sink) {
	for _, r := range e.rests() {
		e.tell(sink, &r)
	}
	for _, p := range e.procs {
		if p.ended {
			for _, th := range p.threads {
				p.lost = append(p.lost, th)
			}
			e.closing = append(e.closing, p)
		}
	}
	e.tellGone(sink, true)
	sink.BatchEnd()
}

// rests returns what is to be reported: except for a hundredth, the rest of each thread that has
// samples, and of the others together.
func (e *Engine) rests() (list []rest) {
	var bare []rest // what threads without samples ran
	var all uint64
	least := leastRest * float64(e.opts.Period)
	for _, p := range e.procs {
		for _, th := range p.threads {
			r := e.restOf(th)
			all += r.all.ran
			if th.shown == 0 && r.ran > 0 {
				bare = append(bare, rest{th: th, at: r.at, ran: r.ran})
				r.ran = 0
			}
			if r.spare(least); r.ran|r.waited|r.slept|r.stood != 0 {
				list = append(list, r)
			}
		}
	}
	slices.SortFunc(bare, func(a, b rest) int { return cmp.Compare(a.ran, b.ran) })
	spare := leastShare * float64(all)
	for i, r := range bare {
		if spare -= float64(r.ran); spare < 0 || float64(r.ran) >= least {
			return append(list, bare[i:]...)
		}
	}
	return list
}

// tell hands over the rest of a thread.
func (e *Engine) tell(sink capture.Sink, r *rest) {
	th, sleep := r.th, uint64(0)
	if th.sleeper != nil {
		sleep = th.sleeper.sleep
	}
	if _, ok := sink.(capture.SleepSink); !ok && th.shown|sleep != 0 {
		return // it takes no more time for samples
	}
	if r.ran > 0 {
		if e.tellRan(sink, r, th.shown) {
			e.given.ns += r.ran
		} else {
			e.given.nowhere += r.ran
			e.given.threads++
		}
	}
	if r.waited > 0 {
		e.tellMore(sink, r, capture.Runnable, r.waited, th.shown, sleep)
		th.waited.Add(r.waited)
	}
	if r.slept > 0 {
		e.tellMore(sink, r, capture.Sleeping, r.slept, sleep)
		th.sleeper.gave += int64(r.slept)
	}
	if r.stood > 0 {
		e.tellMore(sink, r, capture.Sleeping, r.stood, th.shown)
		th.told += int64(r.stood)
	}
}

// tellRan hands over what a thread ran as more time of one of its samples, in which case it returns
// true, or without a stack.
func (e *Engine) tellRan(sink capture.Sink, r *rest, id uint64) (placed bool) {
	for _, i := range e.ticks {
		placed = e.tellOne(sink, r, i, capture.Running, r.ran, id)
	}
	r.th.sampled += r.ran
	e.mu.Lock()
	r.th.proc.given += r.ran
	e.mu.Unlock()
	return placed
}

// tellMore hands over wall time of a thread in the same way; the first of the samples that the sink
// still knows gets it.
func (e *Engine) tellMore(sink capture.Sink, r *rest, state capture.State, ns uint64, ids ...uint64) {
	if !e.tellOne(sink, r, uint16(e.wall), state, ns, ids...) {
		e.given.unplaced += ns
	}
}

func (e *Engine) tellOne(sink capture.Sink, r *rest, event uint16, state capture.State, ns uint64, ids ...uint64) (placed bool) {
	out := &e.snap
	*out = capture.Snapshot{
		Time: uint64(r.at), PID: uint32(r.th.proc.pid), TID: uint32(r.th.tid), CPU: uint32(r.th.cpu),
		Weight: ns, Event: event, State: state,
	}
	for _, id := range ids {
		if id == 0 {
			continue
		}
		out.Sleep = id
		if taken, _ := sink.(capture.SleepSink).Again(out); taken {
			e.samples.Add(1)
			return true
		}
	}
	out.Sleep, out.Flags = 0, capture.NoUser|capture.StackUnread
	e.give(sink)
	return false
}
