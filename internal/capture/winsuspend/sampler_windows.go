package winsuspend

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/windows"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/winsys"
)

// sampler is the goroutine that stops threads, and what belongs to it.
type sampler struct {
	e       *Engine
	procs   map[int]*process
	refused map[int]int64 // processes of the whole machine that cannot be opened, and their creation
	snap    winsys.Snapshot
	taken   uint64 // ns: when snap was
	round   uint64
	listed  uint64 // ns: when threads were last listed
	cost    uint64 // ns that it took
	exact   bool   // threads' cycles are counted
	states  bool   // the state of a single thread is told
	stopper *stopper
	timer   windows.Handle
	wake    windows.Handle // an event that ends a wait for the timer
	stopped atomic.Uint64  // ns: when stop was called, 0: it was not
	sleeps  uint64
	ready   []*sample // with a weight, not yet in the queue
	queue   queue

	slow    slowdown
	elapsed uint64 // ns: time of the last tick
}

// tooLong is why samples are taken less often.
const tooLong = "copying threads takes more than a twentieth of their time"

const (
	// listEvery is how often threads are listed where their times are read one by one, ns.
	listEvery = 50e6
	// cooling is how long a thread counts as running after it was last seen to, ns. Times that are
	// counted in ticks tell it late.
	cooling = 60e6
	// unowned is how long time may wait for a sample that was taken while the thread ran, ns. Then
	// the next one is taken wherever it is.
	unowned = 500e6
	// coldLooks is how many periods pass between two looks at a thread that seems to sleep, for wall
	// time, where nothing tells whether it has run.
	coldLooks = 10
)

func (s *sampler) init(e *Engine) {
	s.e, s.procs, s.refused = e, map[int]*process{}, map[int]int64{}
	_, s.exact = winsys.Cycles(windows.CurrentThread())
	_, s.states = winsys.ThreadNow(windows.CurrentThread())
	s.slow.factor = 1
}

func (s *sampler) close() {
	for _, p := range s.procs {
		p.close()
	}
	clear(s.procs)
	if s.stopper != nil {
		s.stopper.close()
		s.stopper = nil
	}
	if s.wake != 0 {
		windows.CloseHandle(s.wake)
		s.wake = 0
	}
}

// prepare makes what run needs.
func (s *sampler) prepare() (err error) {
	if s.wake, err = windows.CreateEvent(nil, 1, 0, nil); err != nil {
		return fmt.Errorf("make an event to stop sampling by: %w", err)
	}
	return nil
}

// stop makes run end: it begins no other copy of a thread. It may be called from any goroutine and
// any number of times, between prepare and close.
func (s *sampler) stop() {
	if s.stopped.CompareAndSwap(0, winsys.Clock()) {
		_ = windows.SetEvent(s.wake)
	}
}

// adopt takes over processes that were added.
func (s *sampler) adopt() {
	s.e.adding.Lock()
	defer s.e.adding.Unlock()
	for _, p := range s.e.added {
		if s.procs[p.pid] != nil {
			p.close()
			continue
		}
		s.procs[p.pid] = p
		s.e.loads.add(p)
	}
	s.e.added = nil
}

// run samples until stop is called or no target is left.
func (s *sampler) run() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	raise()
	cyclesNS(0) // measures the counter
	s.stopper = newStopper(s.e.maxStack, s.e.objects)
	s.timer = newTimer()
	defer windows.CloseHandle(s.timer)
	defer s.finish()
	s.elapsed = winsys.Clock()
	due := s.elapsed + rand.Uint64N(uint64(s.e.opts.Period))
	for {
		s.wait(due)
		if s.stopped.Load() != 0 {
			return nil
		}
		if err := s.guarded(); err != nil {
			return err
		}
		if err := s.tick(); err != nil {
			return err
		}
		if len(s.procs) == 0 && !s.e.opts.All {
			return nil
		}
		s.queue.put(s)
		now := winsys.Clock()
		period := uint64(float64(s.e.opts.Period) * s.slow.factor)
		if late := now - min(now, due); late > period {
			s.e.slowed.Add(late / period)
			due = now
		}
		due += period - period/4 + rand.Uint64N(period/2+1)
	}
}

// guarded makes sure that the guard is there. A guard that was ended is replaced.
func (s *sampler) guarded() error {
	w := s.e.watch
	if !w.gone() {
		return nil
	}
	s.e.guards.Add(1)
	if err := w.start(); err != nil {
		return err
	}
	if err := w.await(); err != nil {
		return err
	}
	return nil
}

// tick looks at every thread that may have run.
func (s *sampler) tick() error {
	now := winsys.Clock()
	if !s.exact || now-s.listed > max(listEvery, 20*s.cost) {
		if err := s.list(false); err != nil {
			return err
		}
	}
	var stood, looked uint64
	for _, p := range s.procs {
		for _, th := range p.threads {
			if s.e.wall < 0 && !s.mayRun(th, now) {
				continue
			}
			if s.stopped.Load() != 0 {
				return nil
			}
			n := s.look(th)
			if stood += n; n > 0 {
				looked++
			}
		}
	}
	if s.slow.count(stood, looked, now-s.elapsed) {
		s.queue.slow(capture.Slowed{Time: now, Times: int(s.slow.factor + 0.5), Why: tooLong})
	}
	s.elapsed = now
	return nil
}

// mayRun reads what a thread has run, where it is told for one thread, and reports whether it may be
// running.
func (s *sampler) mayRun(th *thread, now uint64) bool {
	if s.exact {
		// One that has not run for long is asked less often.
		if now > th.hot && now-th.looked < 4*uint64(s.e.opts.Period) {
			return false
		}
		th.looked = now
		s.countCycles(th, now)
	}
	return now <= th.hot || th.owed > 0
}

// countCycles reads what a thread has run.
func (s *sampler) countCycles(th *thread, now uint64) {
	c, ok := winsys.Cycles(th.handle)
	if !ok || c <= th.cycles {
		return
	}
	ns := cyclesNS(c - th.cycles)
	th.cycles = c
	s.counted(th, ns, now)
}

// counted adds time that a thread has run.
func (s *sampler) counted(th *thread, ns, now uint64) {
	th.hot, th.ran = now+cooling, now
	s.ready = th.count(ns, s.ready)
}

// look stops a thread, if it does anything that is to be sampled, and returns for how long it stood.
func (s *sampler) look(th *thread) (stood uint64) {
	now := winsys.Clock()
	state := capture.Running
	if s.states {
		t, ok := winsys.ThreadNow(th.handle)
		if ok {
			state = stateOf(&t)
		}
		if s.e.wall < 0 && state != capture.Running && state != capture.Runnable && !s.overdue(th, now) {
			return 0
		}
	}
	if s.e.wall >= 0 && s.sleepsOn(th, now, state) {
		return 0
	}
	var t taken
	v := s.stopper.copyThread(th, s.e.watch, &t, func(ns uint64) {
		s.e.stops.add(ns)
		stood += ns
	})
	if v != copied {
		switch v {
		case elsewhere:
			s.e.lost.Add(1)
		case void:
			s.e.freed.Add(1)
		}
		return stood
	}
	waits := state == capture.Sleeping
	if !s.states {
		if waits = th.proc.waits.holds(th.proc, t.regs.PC); waits {
			state = capture.Sleeping
		}
	}
	if s.e.wall >= 0 {
		s.wallSample(th, &t, now, state)
	}
	if s.e.ticks < 0 {
		return stood
	}
	if waits && !s.overdue(th, now) {
		return stood
	}
	sm := th.snapshot(&t, uint16(s.e.ticks), capture.Running, s.queue.buffer(t.bytes()))
	if dropped := th.take(sm); dropped != nil {
		s.queue.free(dropped)
	}
	if s.exact || th.owed > 0 {
		s.ready = th.count(0, s.ready)
	}
	return stood
}

// overdue reports whether a thread has run for which no sample was taken while it did: then one is
// taken where it waits.
func (s *sampler) overdue(th *thread, now uint64) bool {
	return th.owed >= uint64(s.e.opts.Period) && now-th.ran > unowned/4 || th.owed > 0 && now-th.ran > unowned
}

// stateOf converts a KTHREAD_STATE.
func stateOf(t *winsys.ThreadInfo) capture.State {
	switch t.State {
	case winsys.StateRunning:
		return capture.Running
	case winsys.StateReady, winsys.StateStandby, winsys.StateDeferred:
		return capture.Runnable
	}
	return capture.Sleeping
}

// finish gives what was counted last to the samples that wait for it.
func (s *sampler) finish() {
	_ = s.list(false)
	for _, p := range s.procs {
		s.settle(p)
	}
	s.queue.put(s)
}

// settle ends a process's account.
func (s *sampler) settle(p *process) {
	now := winsys.Clock()
	for _, th := range p.threads {
		if s.exact && th.handle != 0 {
			s.countCycles(th, now)
		}
		s.drop(th)
	}
}

// drop frees the samples of a thread that stay without weight.
func (s *sampler) drop(th *thread) {
	for _, w := range th.waiting {
		s.queue.free(w)
	}
	th.waiting = nil
}
