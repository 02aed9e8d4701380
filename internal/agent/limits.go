package agent

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/hostinfo"
	"github.com/candid-profiler/candid/internal/record"
)

const (
	// limitsEvery is how often the agent's own use is compared with its limits, limitsOver the time
	// over which CPU is averaged, and calmFor how long its use must have been low before it samples
	// faster again.
	limitsEvery = 5 * time.Second
	limitsOver  = time.Minute
	calmFor     = 5 * time.Minute
	// mostTimes is how many times less often it samples at most.
	mostTimes = 16
	// settle is how long after a change no other one is made.
	settle = 30 * time.Second
)

const (
	// fixed is what the agent takes that is not on the heap: the pages of its own program, the ring, the stacks, and
	// what Go's runtime takes for itself.
	fixed = 56e6
	// leastHeap and mostHeap bound the heap.
	leastHeap, mostHeap = 16 << 20, 96 << 20
)

// heapOf returns how much of the heap may be in use if the agent may take so many bytes of resident memory. Above that
// what was read of programs is given up, long before the limit makes the agent sample less often.
func heapOf(memory int64) int64 {
	if memory <= 0 {
		return mostHeap
	}
	// A quarter is for garbage and for gaps between what is in use.
	return min(max((memory-fixed)/4*3, leastHeap), mostHeap)
}

// goMemory returns the limit for Go's runtime if the agent may take so many bytes: the pages of its program and of the
// ring, which the runtime does not know, are not a part of it.
func goMemory(memory int64) int64 { return memory / 10 * 8 }

// limiter keeps the agent within its limits by sampling less often. It is used from the agent's
// loop; rate may be called from any goroutine.
type limiter struct {
	a       *Agent
	act     actions
	looked  time.Time
	changed time.Time
	calm    time.Time // since when little has been used; zero: more is
	used    []usage   // oldest first
	memory  int       // times in a row that too much memory was used

	mu    sync.Mutex
	times int    // 1: as asked for
	why   string // of times
}

// actions are what a limiter knows of the agent, and does to it.
type actions struct {
	cpu      func() time.Duration           // its own CPU time so far
	resident func() (bytes uint64, ok bool) // its own memory
	throttle func(times int, why string) error
	restart  func() error // begins recording anew
}

// limit gives a limiter its agent.
func (l *limiter) limit(a *Agent) {
	l.a = a
	l.act = actions{
		cpu: hostinfo.OwnCPU,
		resident: func() (uint64, bool) {
			bytes, _, err := hostinfo.Memory(os.Getpid())
			return bytes, err == nil
		},
		throttle: func(times int, why string) error { return a.rec.Throttle(times, why) },
		restart:  a.anew,
	}
}

type usage struct {
	at  time.Time
	cpu time.Duration
}

// begun applies the present rate to a recording that has just begun.
func (l *limiter) begun(r *record.Recording) {
	l.used = nil
	if l.times > 1 {
		_ = r.Throttle(l.times, l.why)
	}
}

// rate returns the factor by which it is sampled less often than asked for, and why.
func (l *limiter) rate() (times int, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.times, 1), l.why
}

// rate returns the factor by which the machine is sampled less often than asked for, because of a limit or because
// the engine cannot keep up, and why.
func (a *Agent) rate() (times int, why string) {
	times, why = a.limiter.rate()
	a.mu.Lock()
	rec := a.rec
	a.mu.Unlock()
	if rec == nil {
		return times, why
	}
	if n, because := rec.Pace(); n > times {
		return n, because
	}
	return times, why
}

// share returns the share of the machine's CPUs that the agent used over the last minute, and of
// how long a time that is.
func (l *limiter) share(now time.Time) (share float64, over time.Duration) {
	if len(l.used) < 2 {
		return 0, 0
	}
	first, last := l.used[0], l.used[len(l.used)-1]
	over = last.at.Sub(first.at)
	if over <= 0 {
		return 0, 0
	}
	return (last.cpu - first.cpu).Seconds() / over.Seconds() / float64(cpus()), over
}

// cpus returns how many CPUs the machine has, whichever of them candid may use.
var cpus = sync.OnceValue(func() int {
	if info, err := hostinfo.Look(); err == nil && info.Threads > 0 {
		return info.Threads
	}
	return runtime.NumCPU()
})

// look compares what the agent uses with its limits.
func (l *limiter) look(now time.Time) {
	if now.Sub(l.looked) < limitsEvery {
		return
	}
	l.looked = now
	l.used = append(l.used, usage{now, l.act.cpu()})
	for len(l.used) > 2 && now.Sub(l.used[1].at) >= limitsOver {
		l.used = l.used[1:]
	}
	conf := l.a.config()
	cpu, over := l.share(now)
	if over < limitsOver/2 {
		return // attaching costs more than what follows
	}
	resident, ok := l.act.resident()
	if limit := conf.Limits.Memory; ok && limit > 0 && resident > uint64(limit) {
		l.tooMuchMemory(now, resident, limit)
		return
	}
	l.memory = 0
	limit := conf.Limits.CPU
	times, _ := l.rate()
	switch {
	case limit > 0 && cpu > limit && now.Sub(l.changed) >= settle:
		l.calm = time.Time{}
		l.set(now, min(2*times, mostTimes), fmt.Sprintf("candid uses %.1f %% of the CPUs, its limit is %.1f %%", cpu*100, limit*100))
	case times > 1 && (limit == 0 || cpu < limit/3):
		if l.calm.IsZero() {
			l.calm = now
		}
		if now.Sub(l.calm) >= calmFor {
			l.calm = time.Time{}
			l.set(now, times/2, "candid is well within its limits again")
		}
	default:
		l.calm = time.Time{}
	}
}

// tooMuchMemory gives memory back, then samples less often, then begins a new recording, which
// forgets what was read of programs.
func (l *limiter) tooMuchMemory(now time.Time, resident uint64, limit int64) {
	l.calm = time.Time{}
	l.memory++
	debug.FreeOSMemory()
	times, _ := l.rate()
	why := fmt.Sprintf("candid uses %d MB of memory, its limit is %d MB", resident/1e6, limit/1e6)
	switch {
	case l.memory < 2 || now.Sub(l.changed) < settle:
	case l.memory > 3:
		l.changed, l.memory = now, 0
		l.a.o.Log(why + ": recording begins anew")
		l.a.metrics.restarts.Add(1)
		if err := l.act.restart(); err != nil {
			l.a.o.Log(err.Error())
		}
		debug.FreeOSMemory()
	default:
		l.set(now, min(2*times, mostTimes), why)
	}
}

// set changes the rate. A recording whose engine cannot do that stays as it is.
func (l *limiter) set(now time.Time, times int, why string) {
	l.changed = now
	before, whyBefore := l.rate()
	if times == before {
		return
	}
	l.is(times, why) // before the log says it: who reads the log and asks for the status sees the same
	if err := l.act.throttle(times, why); err != nil {
		l.is(before, whyBefore)
		if errors.Is(err, capture.ErrUnsupported) && times > before {
			l.a.o.Log(fmt.Sprintf("%s; %v", why, err))
		}
		return
	}
	l.used = nil
}

// is sets what rate returns.
func (l *limiter) is(times int, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.times, l.why = times, why
	if times == 1 {
		l.why = ""
	}
}
