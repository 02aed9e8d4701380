// Package guard is the process that lets go of a thread which candid has suspended: when candid has
// ended, and when candid got no CPU for so long that the thread stands for longer than a copy takes.
// The program becomes the guard during package initialization, if its first argument says so: then
// it does nothing else. It has hardly any imports, so that little of candid is initialized for it.
//
// # Who resumes
//
// The state of a stop is one word that candid and its guard change by compare-and-swap. It holds the
// number of the stop, so neither can take one stop for another.
//
//	Free → Suspending → Suspended → Resuming → Free    candid's way, while it makes its calls
//	any of the three → Looking → LetGo                 the guard has resumed the thread
//	any of the three → Looking → back                  the guard found that it does not stand
//
// A swap of candid's that fails says that the guard came between. Then the copy is void, and candid
// does what Contested says. Each stop is undone exactly once, because suspend counts are sums: a
// suspension that candid makes late is the one that the guard has undone already.
package guard

import (
	"sync/atomic"
	"time"
)

// Name is the first argument by which a copy of candid knows that it is the guard. The handles of
// the shared page and of candid follow, as numbers.
const Name = "candid: guard"

// Page is the memory that candid shares with its guard.
type Page struct {
	// State is the number of the stop, shifted by PhaseBits, and its phase.
	State uint64
	// Ready is set by the guard when it waits.
	Ready   uint32
	tid     uint32
	pid     uint32
	before  uint32 // how often it was suspended by others
	created int64  // FILETIME, of the thread
	freed   uint64 // the performance counter when the guard resumed the thread
	took    uint32 // that changed its suspend count
}

// PhaseBits is how many bits of a state hold its phase.
const PhaseBits = 8

// Phases of a stop.
const (
	Free       = 0 // nothing is suspended
	Suspending = 1 // it may be
	Suspended  = 2 // it is
	Resuming   = 3 // it may still be
	Looking    = 4 // the guard decides whether to resume it
	LetGo      = 5 // the guard has resumed it
)

func phase(state uint64) uint64 { return state & (1<<PhaseBits - 1) }

// Name says which thread is suspended next: its id, its process and the time of its creation, and
// how often it is suspended already. The phase must be Free. It returns the state of a new stop in
// the phase Free.
func (p *Page) Name(tid, pid uint32, created int64, before uint32) (state uint64) {
	p.tid, p.pid, p.created, p.before = tid, pid, created, before
	state = (atomic.LoadUint64(&p.State)>>PhaseBits + 1) << PhaseBits
	atomic.StoreUint64(&p.State, state)
	return state
}

// Stop is a stop with which the guard has interfered, as candid left it.
type Stop struct {
	State     uint64 // of Name
	Suspended bool   // candid's call suspended the thread
	Resumed   bool   // candid has resumed it already
	Was       uint32 // how often it was suspended when candid did; 0: that call changed nothing

	// Suspend and Resume suspend and resume the thread once more. Resume returns how often it was
	// suspended before.
	Suspend func()
	Resume  func() (was uint32)
	// Count returns how often the thread is suspended.
	Count func() uint32
	// Gone reports whether the guard has ended.
	Gone func() bool
}

// Contested ends a stop with which the guard has interfered, and leaves the phase Free. It returns
// the performance counter when the guard resumed the thread, 0 if it did not.
func (p *Page) Contested(s Stop) (freed uint64) {
	for {
		now := atomic.LoadUint64(&p.State)
		switch phase(now) {
		case LetGo:
			if s.Resumed && s.Was > 0 && p.took != 0 {
				s.Suspend() // both have resumed it: one of them what the program had suspended
			}
			freed = p.freed
			atomic.StoreUint64(&p.State, s.State)
			return freed
		case Looking:
			if !s.Gone() {
				time.Sleep(time.Millisecond)
				continue
			}
			// Nothing tells whether a guard that was ended had resumed the thread.
			if s.Suspended && !s.Resumed && s.Count() > p.before {
				s.Resume()
			}
			atomic.StoreUint64(&p.State, s.State)
			return 0
		default: // the guard found nothing to do, and may look again
			if s.Suspended && !s.Resumed {
				if !atomic.CompareAndSwapUint64(&p.State, now, s.State|Resuming) {
					continue
				}
				now, s.Resumed, s.Was = s.State|Resuming, true, s.Resume()
			}
			if atomic.CompareAndSwapUint64(&p.State, now, s.State) {
				return 0
			}
		}
	}
}

// LongStop is how long a thread stands at least until the guard lets go of it while candid lives,
// and how long the guard waits between two looks. The system's clock may make it longer.
const LongStop = 10 * time.Millisecond

// doubtfulLooks is how often the guard sees the thread of a stop suspended, in a phase in which it
// may be the program that did that, until it takes it for candid's stop.
const doubtfulLooks = 2

// patrol is what the guard has seen of a stop that lasts.
type patrol struct {
	stop  uint64 // its number
	looks int    // at which its thread was suspended
}

// victim is a thread as the guard sees it.
type victim interface {
	count() (n uint32, ok bool)
	resume() (was uint32, ok bool)
	close()
}

// look looks at the page, which it did a while ago too, and lets go of a thread that has stood since.
// open opens the thread that the page names, nil if it has ended.
func (w *patrol) look(p *Page, open func() victim, counter func() uint64) {
	state := atomic.LoadUint64(&p.State)
	was := phase(state)
	if was == Free || was == LetGo || state>>PhaseBits != w.stop {
		*w = patrol{stop: state >> PhaseBits}
		return
	}
	stop := state &^ (1<<PhaseBits - 1)
	if was != Suspended && p.before > 0 {
		return // it stands by the program's own will
	}
	if !atomic.CompareAndSwapUint64(&p.State, state, stop|Looking) {
		return
	}
	back := func() { atomic.StoreUint64(&p.State, state) }
	th := open()
	if th == nil {
		back()
		return
	}
	defer th.close()
	if was != Suspended {
		n, ok := th.count()
		if !ok || n != p.before+1 {
			w.looks = 0
			back()
			return
		}
		if w.looks++; w.looks < doubtfulLooks {
			back()
			return
		}
	}
	n, ok := th.resume()
	if !ok || n == 0 && was != Suspended {
		back()
		return
	}
	p.took, p.freed = min(n, 1), counter()
	atomic.StoreUint64(&p.State, stop|LetGo)
}
