package record

import (
	"maps"
	"slices"
	"time"

	"github.com/candid-profiler/candid/internal/hostinfo"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/target"
)

const (
	// threadLoadEvery is how often the threads' load is read, as by the Flight Recorder, and
	// lastThreadLoad the shortest time that is reported at the end.
	threadLoadEvery = 10 * time.Second
	lastThreadLoad  = time.Second
	// maxThreadLoads bounds for how many threads of a process that is done: each costs about 5 µs.
	maxThreadLoads = 250
)

// threadLoads is what the threads of a process had used when they were last read.
type threadLoads struct {
	looked time.Time
	load   hostinfo.Load        // of the machine then
	used   map[uint32][2]uint64 // by TID: ticks in user mode and in the kernel
	some   bool                 // there were more threads
}

// begin records what the threads that existed when recording began had used.
func (l *threadLoads) begin(p *process) {
	l.used = map[uint32][2]uint64{}
	for tid := range p.startCPU {
		if len(l.used) == maxThreadLoads {
			break
		}
		if user, system, err := target.CPUTicks(p.target, tid); err == nil {
			l.used[uint32(tid)] = [2]uint64{user, system}
		}
	}
}

// threadLoads reports the load of a process's threads that have samples.
func (s *session) threadLoads(p *process, l *threadLoads, now time.Time, last bool) {
	load := s.observer.load
	switch since := now.Sub(l.looked); {
	case l.used == nil:
		l.begin(p)
		l.looked, l.load = now, load
		return
	case since < threadLoadEvery && !(last && since >= lastThreadLoad) || load.All <= l.load.All:
		return
	}
	tids := slices.Sorted(maps.Keys(p.threads))
	some := len(tids) > maxThreadLoads
	all, used := float64(load.All-l.load.All), make(map[uint32][2]uint64, min(len(tids), maxThreadLoads))
	for _, tid := range tids[:min(len(tids), maxThreadLoads)] {
		user, system, err := target.CPUTicks(p.target, int(tid))
		if err != nil {
			continue
		}
		used[tid] = [2]uint64{user, system}
		before, known := l.used[tid]
		if _, old := p.startCPU[int(tid)]; !known && (old || l.some) {
			continue // it is not known since when
		}
		if user < before[0] || system < before[1] || user+system == before[0]+before[1] {
			continue
		}
		share := func(ticks uint64) profile.Value { return profile.Share(min(float64(ticks)/all, 1)) }
		s.seen(profile.ThreadCPULoad, p.index, profile.Number(uint64(p.threads[tid])), share(user-before[0]), share(system-before[1]))
	}
	l.looked, l.load, l.used, l.some = now, load, used, some
}
