package suspend

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// sleeper is what a sleep scanner knows of a thread. It is the sleep scanner's, except for what
// is atomic.
type sleeper struct {
	th    *thread
	group *group // nil until the sleep scanner has taken it

	// The time that is accounted for begins then, with these accounts, ns.
	began int64
	from  account
	late  uint64
	stood int64

	gave    int64   // ns of sleep that samples stand for
	seen    account // at the last look
	asleep  bool    // then, and since seen: a sample was made of this sleep
	sleep   uint64  // its number
	same    int64   // ns, when it was last seen to last
	due     int64   // ns of sleep until then that no sample stands for
	told    int64   // ns, when the last sample was made
	tell    int64   // ns from then to the next one
	lively  int64   // ns, until when it is looked at with every round
	quiet   bool    // it is in its group's list
	crowd   bool    // it was there with many others when recording began
	gone    bool
	stack   stackSpan
	placeFD int // syscall, unopened unless it is lively
	statFD  int

	back   atomic.Int64 // ns of sleep in samples that were not taken
	wanted atomic.Bool  // the stack has to be copied again
}

// never is no thread's account.
var never = account{turns: 1<<64 - 1}

// slept is for how long the thread has slept since it began to count, by itself.
func (sl *sleeper) slept(now int64, a account, late uint64) int64 {
	return now - sl.began - int64(a.run-sl.from.run) - int64(late-sl.late) - (sl.th.stood.Load() - sl.stood)
}

// count begins to count at a time.
func (sl *sleeper) count(now int64, a account, late uint64) {
	sl.began, sl.from, sl.late, sl.stood = now, a, late, sl.th.stood.Load()
	sl.gave, sl.seen, sl.asleep, sl.lively = 0, never, false, now
	if !sl.crowd {
		sl.lively += freshFor
	}
	sl.quiet = false
	sl.th.waited.Store(late)
}

// threadClock is the CPU time of the calling OS thread, ns.
func threadClock() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return ts.Nano()
}

// birth is when a thread that is new in a list began, ns: later than the list
// before.
func birth(ticks uint64, before, now int64) int64 {
	var boot unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
		return now
	}
	const tick = int64(time.Second / 100) // USER_HZ
	// It is rounded down to a tick.
	t := int64(min(ticks, 1<<40))*tick + tick/2 - (boot.Nano() - clock())
	return max(before, min(t, now))
}

// takeWaited is how long a thread has waited for a CPU, ns, that no sample stands
// for yet, if it is at least so long; then a sample has to.
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
