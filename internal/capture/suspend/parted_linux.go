package suspend

import (
	"cmp"
	"slices"

	"github.com/candid-profiler/candid/internal/capture"
)

// leastPart is the least time, in ns, for which a thread that has ended must have slept or waited
// for a CPU since it was last in a sample for that to be reported.
const leastPart = 20e6

// part keeps a thread that has ended until its rest is handed over. Nothing else may use the thread
// any more.
func (e *Engine) part(th *thread) {
	e.parting.Lock()
	e.parted = append(e.parted, th)
	e.parting.Unlock()
}

// takeParted returns the threads that have been kept. Samples of them that are made are in buffers.
func (e *Engine) takeParted() []*thread {
	e.parting.Lock()
	defer e.parting.Unlock()
	list := e.parted
	e.parted = nil
	return list
}

// owes reports whether what a thread that has ended ran since its last sample is handed over.
// Otherwise others of its process stand for it (churn).
func (e *Engine) owes(th *thread, ran uint64) bool {
	return !th.newborn && ran >= uint64(e.opts.Period)
}

// tellParted hands over the rests of threads that have ended, as far as their accounts were read in
// time.
func (e *Engine) tellParted(sink capture.Sink, list []*thread) {
	period := float64(e.opts.Period)
	for _, th := range list {
		r := e.restOf(th)
		if !e.owes(th, r.ran) {
			r.ran = 0
		}
		r.spare(max(leastPart, period))
		e.tell(sink, &r)
		e.mu.Lock()
		th.proc.pending -= th.owed
		e.mu.Unlock()
		th.proc.parting--
		th.proc.lost = append(th.proc.lost, th)
	}
}

// exit returns the report that a thread has ended. It comes when it is known whether the whole
// process has, because the sink may forget the thread then.
func (th *thread) exit() capture.ProcessEvent {
	return capture.ProcessEvent{Kind: capture.Exit, Time: uint64(th.exited), PID: uint32(th.proc.pid), TID: uint32(th.tid)}
}

// tellGone hands over what processes that have ended have run beyond all of that: after the last
// looks at their threads. It leaves processes whose threads have not all been reported for later,
// unless all is set.
func (e *Engine) tellGone(sink capture.Sink, all bool) {
	later := e.closing[:0]
	for _, p := range e.closing {
		if p.parting > 0 && !all {
			later = append(later, p)
			continue
		}
		e.shareOut(sink, p)
		for _, th := range p.lost {
			if th.exited != 0 {
				sink.Notice(th.exit())
			}
		}
		p.lost = nil
	}
	clear(e.closing[len(later):])
	e.closing = later
}

// shareOut hands over what a process has run that no sample stands for. The kernel only keeps the
// sum for threads that have ended. As it is not known which of them ran, those of the last that had
// run most get it in proportion to that, without a stack.
func (e *Engine) shareOut(sink capture.Sink, p *process) {
	e.mu.Lock()
	left, used := p.unsampled(p.total), p.total-min(p.clock, p.total)
	e.mu.Unlock()
	if float64(left) < max(float64(e.opts.Period), leastShare*float64(used)) || e.unfollowed.Load() > 0 {
		return
	}
	ran := func(th *thread) uint64 {
		run := max(th.seen.run, th.sampled)
		return run - min(th.from, run)
	}
	threads, all := slices.Clone(p.lost), uint64(0)
	slices.SortStableFunc(threads, func(a, b *thread) int { return cmp.Compare(ran(b), ran(a)) })
	// One sample without a stack for each period: more would count for more than their time.
	threads = threads[:min(len(threads), int(min(left/uint64(e.opts.Period), 100)))]
	for _, th := range threads {
		all += ran(th)
	}
	rest := left
	for i, th := range threads {
		share := rest
		if i < len(threads)-1 && all > 0 {
			share = min(rest, uint64(float64(left)*float64(ran(th))/float64(all)))
		}
		if share == 0 {
			continue
		}
		r := e.restOf(th)
		r.ran = share
		e.tellRan(sink, &r, 0)
		e.given.shared += share
		rest -= share
	}
}
