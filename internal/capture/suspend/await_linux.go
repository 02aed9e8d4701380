package suspend

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// slowStop is how long a thread may take to stop, in ns, before the sampling thread that waits
	// for it is reminded.
	slowStop = 100e6
	// longestStop is when the wait is given up, in ns: the thread is in a call that nothing ends,
	// or in a frozen container.
	longestStop = 5e9
	// lastStop is when the wait is given up after recording has ended, in ns.
	lastStop = 1e9
)

// firstWait returns how long a sampling thread waits for a stop, in ns, before it checks whether
// another one should take over.
func firstWait(period time.Duration) int64 { return max(min(int64(period)/2, laterWait), 200e3) }

// laterWait is how often it checks after that, in ns. Go's runtime may have to wait for that long
// when it stops the world.
const laterWait = 5e6

// await waits for the stop. ok is false if the stop never comes; the sampling thread must end then,
// and the kernel lets the thread go.
//
// At first await keeps Go's P, as doze does, as long as enough of them are left. The alarm
// interrupts the wait when it has lasted long.
func (w *worker) await(p *pick) (stop, bool) {
	begin := clock()
	w.waiting.Store(begin)
	defer w.waiting.Store(0)
	keeps := w.alarm.set(firstWait(w.e.opts.Period), laterWait)
	held := false // it holds one of e.patience
	defer func() {
		if keeps {
			w.alarm.set(0, 0)
		}
		if held {
			w.e.patience.Add(1)
		}
	}()
	for {
		s, errno := waitStop(p.tid, keeps)
		switch errno {
		case 0:
			now := clock()
			if w.aside && now-begin > slowAside {
				w.asideAfter = now + int64(time.Second)
			}
			return s, true
		case unix.EINTR:
			// Another waiter for the thread in this process may have been woken instead of this
			// one.
			if s, ok := stopOf(p.tid); ok {
				return s, true
			}
			now := clock()
			if end := w.e.ended.Load(); now-begin > longestStop || end != 0 && now-end > lastStop {
				return stop{}, false
			}
			w.waitsLonger(w)
			if keeps && !held {
				held = w.e.patience.Add(-1) >= 0
				if !held {
					w.e.patience.Add(1)
				}
			}
			if keeps && (!held || now-begin > slowStop) {
				keeps = false
				w.alarm.set(0, 0)
			}
		default:
			// It now has its process's TID, because another thread's exec leaves only that one; or
			// it is gone.
			return stop{ended: true}, true
		}
	}
}

// standsStill reports whether a thread has not run since it was picked.
func (w *worker) standsStill(p *pick) bool {
	a, ok := w.reader.account(p.th.schedFD)
	return ok && a == p.account
}

// finish returns the thread to the others.
func (w *worker) finish(p *pick) {
	e := w.e
	e.mu.Lock()
	defer e.mu.Unlock()
	p.th.busy = false
	if p.took {
		if p.th.newborn {
			p.th.newborn = false
			p.th.proc.backlog -= min(p.backlog, p.th.proc.backlog)
		}
		ran := p.account.run - p.th.sampled
		p.th.proc.given += ran + p.backlog
		if p.inCall {
			p.th.inKernel += ran
		}
		p.th.sampled = p.account.run
	}
	if p.stopped {
		p.th.slept++ // the stop counts as a sleep
	}
	if p.broken {
		p.th.spared = true
	}
	if p.ended {
		p.th.gone = true
	}
}
