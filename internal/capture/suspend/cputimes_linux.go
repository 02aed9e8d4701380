package suspend

import (
	"time"

	"golang.org/x/sys/unix"
)

// CPUTimes returns what the accounts that are kept open say, and after Run what they said when
// recording ended.
func (e *Engine) CPUTimes(pid int) map[int]uint64 {
	now := clock()
	for _, p := range e.adopt() {
		e.list1(p, now)
	}
	p := e.procs[pid]
	if p == nil || p.gone || e.unfollowed.Load() > 0 {
		return nil
	}
	out := make(map[int]uint64, len(p.threads))
	for tid, th := range p.threads {
		if e.ended.Load() != 0 && th.last != 0 {
			out[tid] = th.last
		} else if p.ranFirst != 0 {
			out[tid] = th.seen.run // they were listed just now
		} else if sl := th.sleeper; sl != nil && sl.quiet && sl.group.sure && sl.same == e.scanner.end {
			out[tid] = sl.seen.run
		} else if a, ok := e.reader.account(th.schedFD); ok {
			out[tid] = a.run
		}
	}
	return out
}

var (
	epoch     = time.Now()
	epochMono = monotonic() - int64(time.Since(epoch))
)

func monotonic() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0
	}
	return ts.Nano()
}

// clock returns CLOCK_MONOTONIC in ns, without a system call.
func clock() int64 { return epochMono + int64(time.Since(epoch)) }
