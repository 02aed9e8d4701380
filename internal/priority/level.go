package priority

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"
)

// levels are the nice levels for crowds, by how many runnable threads there are for
// each CPU. A level weighs as much against so many threads of level 0 as a third
// of them (sched_prio_to_weight in kernel/sched/core.c: 3121, 9548, 29154, 88761
// against 1024).
var levels = []struct{ crowd, nice int }{{250, -20}, {85, -15}, {25, -10}, {8, -5}}

// Crowded is how many runnable threads for each CPU are a crowd.
const Crowded = 8

// levelFor is the nice level for a crowd, 0 where there is none.
func levelFor(runnable, cpus int) int {
	for _, l := range levels {
		if runnable/max(cpus, 1) >= l.crowd {
			return l.nice
		}
	}
	return 0
}

// next is the level that follows another. It is given up only when the crowd is
// half of what it was chosen for: how many threads are runnable at one moment is
// chance.
func next(now, runnable, cpus int) int {
	if l := levelFor(runnable, cpus); l <= now {
		return l
	}
	return max(now, levelFor(2*runnable, cpus))
}

// parseRunnable reads how many threads are runnable from /proc/loadavg (proc(5)).
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

// Told says what was done about a crowd.
type Told struct {
	Runnable, CPUs int
	Wanted, Got    int // nice levels; the same if candid may have the one that it wants
}

// Refused says that candid has not got the level that it wants.
func (t Told) Refused() bool { return t.Got > t.Wanted }

// String is one line for people.
func (t Told) String() string {
	s := fmt.Sprintf("%d threads want %d CPUs: ", t.Runnable, t.CPUs)
	if t.CPUs == 1 {
		s = fmt.Sprintf("%d threads want the one CPU: ", t.Runnable)
	}
	if !t.Refused() {
		return s + fmt.Sprintf("candid runs at nice level %d while they do, so that it keeps its time", t.Got)
	}
	return s + fmt.Sprintf("candid gets one late, so it misses samples and ends late; with nice level %d it would not: run it as root, with CAP_SYS_NICE, or after 'sudo prlimit --pid $$ --nice=40:40'", t.Wanted)
}

// Held gives a function for Keep that keeps what it is told until open is called,
// and from then on passes it on to tell: whoever is refused for another reason shall
// read that and nothing else. open may be called once.
func Held(tell func(Told)) (held func(Told), open func()) {
	var mu sync.Mutex
	opened := false
	var kept []Told
	held = func(t Told) {
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
