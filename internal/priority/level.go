package priority

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"
)

// levels are the nice levels for crowds, by the number of runnable threads for each CPU. A thread
// at one of these levels weighs as much as about a third of that many threads at level 0
// (sched_prio_to_weight in kernel/sched/core.c: 3121, 9548, 29154, 88761 against 1024).
var levels = []struct{ crowd, nice int }{{250, -20}, {85, -15}, {25, -10}, {8, -5}}

// Crowded is the number of runnable threads for each CPU from which on the machine counts as
// crowded.
const Crowded = 8

// levelFor returns the nice level for a crowd, 0 if there is none.
func levelFor(runnable, cpus int) int {
	for _, l := range levels {
		if runnable/max(cpus, 1) >= l.crowd {
			return l.nice
		}
	}
	return 0
}

// next returns the level that follows the current one. A level is given up only when the crowd is
// half of what the level was chosen for, because the number of runnable threads at one moment
// varies by chance.
func next(now, runnable, cpus int) int {
	if l := levelFor(runnable, cpus); l <= now {
		return l
	}
	return max(now, levelFor(2*runnable, cpus))
}

// parseRunnable reads the number of runnable threads from /proc/loadavg (proc(5)).
func parseRunnable(b []byte) (int, bool) {
	f := bytes.Fields(b)
	if len(f) < 4 {
		return 0, false
	}
	n, _, ok := bytes.Cut(f[3], []byte{'/'})
	if !ok || len(n) > 9 {
		return 0, false
	}
	v, err := strconv.Atoi(string(n))
	return v, err == nil && v >= 0
}

// Report reports what was done about a crowd.
type Report struct {
	Runnable, CPUs int
	Wanted, Got    int // nice levels; the same if candid may have the one that it wants
}

// Refused reports whether candid did not get the level that it wants.
func (t Report) Refused() bool { return t.Got > t.Wanted }

// String returns one line for people.
func (t Report) String() string {
	s := fmt.Sprintf("%d threads want %d CPUs: ", t.Runnable, t.CPUs)
	if t.CPUs == 1 {
		s = fmt.Sprintf("%d threads want the one CPU: ", t.Runnable)
	}
	if !t.Refused() {
		return s + fmt.Sprintf("candid runs at nice level %d while they do, so that it keeps its time", t.Got)
	}
	return s + fmt.Sprintf("candid gets one late, so it misses samples and ends late; with nice level %d it would not: run it as root, with CAP_SYS_NICE, or after 'sudo prlimit --pid $$ --nice=40:40'", t.Wanted)
}

// Held returns a function for Keep that holds back its reports until open is called, and from then
// on passes them to tell: a user whose recording is refused for another reason should read that and
// nothing else. open may be called once.
func Held(tell func(Report)) (held func(Report), open func()) {
	var mu sync.Mutex
	opened := false
	var kept []Report
	held = func(t Report) {
		mu.Lock()
		defer mu.Unlock()
		if opened {
			tell(t)
		} else {
			kept = append(kept, t)
		}
	}
	open = func() {
		mu.Lock()
		defer mu.Unlock()
		for _, t := range kept {
			tell(t)
		}
		opened, kept = true, nil
	}
	return held, open
}
