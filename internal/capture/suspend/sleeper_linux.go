package suspend

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// sleeper is what a sleep scanner knows of a thread. It belongs to the sleep scanner, except for
// the atomic fields.
type sleeper struct {
	th    *thread
	group *group // nil until the sleep scanner has taken it

	// The accounted time begins at began, with these accounts, ns.
	began int64
	from  account
	late  uint64
	stood int64

	gave int64   // ns of sleep that samples account for
	seen account // at the last look
	// looked is when that was, in ns, 0 if there was none; seenLate is how long it had waited for a
	// CPU then, in ns.
	looked   int64
	seenLate uint64
	asleep   bool   // it slept then and since seen, and a sample was made of this sleep
	sleep    uint64 // the number of the sleep
	same     int64  // ns, when the sleep was last seen to go on
	due      int64  // ns of sleep until then that no sample accounts for
	told     int64  // ns, when the last sample was made
	tell     int64  // ns from then to the next one
	lively   int64  // ns, until when it is looked at in every round
	quiet    bool   // it is in its group's list
	crowd    bool   // it was one of many when recording began
	gone     bool
	stack    stackSpan
	placeFD  int // syscall, unopened unless it is lively
	statFD   int

	back   atomic.Int64 // ns of sleep in samples that were not accepted
	wanted atomic.Bool  // the stack has to be copied again
}

// never is an account that no thread has.
var never = account{turns: 1<<64 - 1}

// slept returns for how many ns the thread has slept by itself since counting began.
func (sl *sleeper) slept(now int64, a account, late uint64) int64 {
	return now - sl.began - int64(a.run-sl.from.run) - int64(late-sl.late) - (sl.th.stood.Load() - sl.stood)
}

// count starts counting at a time.
func (sl *sleeper) count(now int64, a account, late uint64) {
	sl.began, sl.from, sl.late, sl.stood = now, a, late, sl.th.stood.Load()
	sl.gave, sl.seen, sl.asleep, sl.lively = 0, never, false, now
	sl.looked, sl.seenLate, sl.th.told = 0, 0, sl.stood
	if !sl.crowd {
		sl.lively += freshFor
	}
	sl.quiet = false
	sl.th.waited.Store(late)
}

// threadClock returns the CPU time of the calling OS thread, in ns.
func threadClock() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return ts.Nano()
}

// birth returns when a thread that is new in a list began, in ns: after the list before.
func birth(ticks uint64, before, now int64) int64 {
	var boot unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
		return now
	}
	const tick = int64(time.Second / 100) // USER_HZ
	// The start time is rounded down to a tick.
	t := int64(min(ticks, 1<<40))*tick + tick/2 - (boot.Nano() - clock())
	return max(before, min(t, now))
}

// takeWaited returns for how many ns a thread has waited for a CPU that no sample accounts for yet,
// if that is at least least; then the caller's sample must account for it.
func (th *thread) takeWaited(late, least uint64) uint64 {
	for {
		told := th.waited.Load()
		if late <= told || late-told < least {
			return 0
		}
		if th.waited.CompareAndSwap(told, late) {
			return late - told
		}
	}
}

// giveWaited takes back what takeWaited returned: no sample accounts for it after all.
func (th *thread) giveWaited(ns uint64) { th.waited.Add(-ns) }
