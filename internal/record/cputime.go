package record

import (
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/target"
)

// used is the CPU time that a process has used, ns, by the kernel's count.
type used struct {
	first, last uint64
	read        time.Time // when last was
}

// usedBefore is the CPU time of a process that does not count, ns: of its first thread,
// and of all.
type usedBefore struct{ thread, all uint64 }

// sum is what was used while it was recorded; 0 if the process ended before it
// could be counted.
func (u used) sum() uint64 {
	if u.last < u.first {
		return 0
	}
	return u.last - u.first
}

// count takes what was read now.
func (u *used) count(ns uint64) {
	u.last, u.read = max(u.last, ns), time.Now()
}

const (
	// countEvery is how often it is read: a process that ends takes it along.
	countEvery = time.Second
	// maxCounted is of how many processes at most: each costs about 10 µs.
	maxCounted = 100
)

// markCPU notes how much CPU time the threads have used before now. A thread
// that starts later has used nothing.
func (p *process) markCPU(cpu map[int]uint64) {
	p.markThreads(cpu)
	p.countCPU()
	p.used.first = p.used.last
}

func (p *process) markThreads(cpu map[int]uint64) {
	if cpu != nil {
		p.startCPU = cpu
	}
}

// cpuTimes reads how long each thread of a process has run, nil if it cannot be known.
// The engine may have that at hand while it does not run; otherwise it is nil.
func (p *process) cpuTimes(engine capture.Engine) map[int]uint64 {
	if a, ok := engine.(capture.CPUAccounting); ok {
		if cpu := a.CPUTimes(p.pid); cpu != nil {
			return cpu
		}
	}
	cpu, err := target.CPUTimes(p.target)
	if err != nil {
		return nil
	}
	return cpu
}

// beginCPU finds from where on the CPU time of a process that was just opened
// counts: from now on, or from when it began.
func (s *session) beginCPU(p *process) {
	before, known := s.before[uint32(p.pid)]
	if !known && s.start == 0 {
		return // it is marked when recording begins
	}
	if !known {
		p.markCPU(p.cpuTimes(nil))
		return
	}
	delete(s.before, uint32(p.pid))
	if before.thread > 0 {
		p.startCPU[p.pid] = before.thread
	}
	p.used.first = before.all
	p.countCPU()
}

// countCPU reads what a process has used so far.
func (p *process) countCPU() {
	if now, err := target.CPUTime(p.target); err == nil {
		p.used.count(now)
	}
}

// countAll does so for all processes, now and then.
func (s *session) countAll() {
	if len(s.procs) > maxCounted {
		s.uncounted = true
	}
	if s.uncounted || time.Since(s.counted) < countEvery {
		return
	}
	s.counted = time.Now()
	for _, p := range s.procs {
		// It may have been read with the process's load just now.
		if s.counted.Sub(p.used.read) > countEvery/2 {
			p.countCPU()
		}
	}
}

// targetCPU is what all targets have used while they were recorded, those that
// have ended up to a second before; 0 if that was not counted, or more than a
// hundredth of the samples are of processes that had ended before they could be.
func (s *session) targetCPU() time.Duration {
	for _, p := range s.procs {
		if !s.uncounted {
			p.countCPU()
		}
	}
	return s.targetSoFar()
}

// targetSoFar is targetCPU as it was last counted.
func (s *session) targetSoFar() time.Duration {
	if s.uncounted || s.unseen*100 > s.samples {
		return 0
	}
	sum := s.endedCPU
	for _, p := range s.procs {
		sum += p.used.sum()
	}
	return time.Duration(sum)
}
