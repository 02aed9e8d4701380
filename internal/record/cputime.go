package record

import (
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/target"
)

// used is the CPU time that a process has used, in ns, by the kernel's account.
type used struct {
	first, last uint64
	read        time.Time // when last was read
}

// usedBefore is the CPU time of a process that does not count, in ns: of its first thread, and of
// all threads.
type usedBefore struct{ thread, all uint64 }

// sum returns what was used during the recording; 0 if the process ended before it could be read.
func (u used) sum() uint64 {
	if u.last < u.first {
		return 0
	}
	return u.last - u.first
}

// count records a value that was read now.
func (u *used) count(ns uint64) {
	u.last, u.read = max(u.last, ns), time.Now()
}

// cpuAccount is the kernel's account of the CPU time that the targets use.
type cpuAccount struct {
	// before is what a process that is yet to be opened had used when sampling began, or when the
	// process did.
	before    map[uint32]usedBefore
	counted   time.Time // when the targets' CPU time was last read
	uncounted bool      // there are too many targets
	ended     uint64    // ns, of targets that have ended
}

const (
	// countEvery is how often CPU time is read: what a process used after the last reading is lost
	// when it ends.
	countEvery = time.Second
	// maxCounted is for how many processes CPU time is read: each costs about 10 µs.
	maxCounted = 100
)

// markCPU records how much CPU time the threads have used before now. A thread that starts later
// has used nothing.
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

// cpuTimes returns how long each thread of a process has run, nil if that cannot be known or is not
// wanted. The engine may have that at hand while it is not running; otherwise engine is nil.
func (s *session) cpuTimes(p *process, engine capture.Engine) map[int]uint64 {
	if s.o.Unobserved {
		return nil
	}
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

// beginCPU determines from when on the CPU time of a process that was just opened counts: from now
// on, or from its beginning.
func (s *session) beginCPU(p *process) {
	before, known := s.account.before[uint32(p.pid)]
	if !known && s.start == 0 {
		return // it is marked when recording begins
	}
	if !known {
		p.markCPU(s.cpuTimes(p, nil))
		return
	}
	delete(s.account.before, uint32(p.pid))
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

// countAll does so for all processes, if it is time.
func (s *session) countAll() {
	if len(s.procs) > maxCounted {
		s.account.uncounted = true
	}
	if s.account.uncounted || time.Since(s.account.counted) < countEvery {
		return
	}
	s.account.counted = time.Now()
	for _, p := range s.procs {
		// It may just have been read with the process's load.
		if s.account.counted.Sub(p.used.read) > countEvery/2 {
			p.countCPU()
		}
	}
}

// targetCPU returns what all targets used during the recording, for those that have ended up to a
// second before their end; 0 if that was not read, or if more than a hundredth of the samples
// belong to processes that had ended before it could be.
func (s *session) targetCPU() time.Duration {
	for _, p := range s.procs {
		if !s.account.uncounted {
			p.countCPU()
		}
	}
	return s.targetSoFar()
}

// targetSoFar returns targetCPU as of the last reading.
func (s *session) targetSoFar() time.Duration {
	if s.account.uncounted || s.unseen*100 > s.samples {
		return 0
	}
	sum := s.account.ended
	for _, p := range s.procs {
		sum += p.used.sum()
	}
	return time.Duration(sum)
}
