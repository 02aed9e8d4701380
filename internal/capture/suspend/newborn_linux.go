package suspend

import (
	"bytes"
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
)

// If threads come and go, most of them are never listed: they live for less than the time between
// two listings. So a sampling thread that finds no thread that it knows also looks among the
// process's newest threads.

const (
	// newestThreads is how many of a process's newest threads are looked at.
	newestThreads = 32
	// churnFor is how long a process counts as churning after its threads were last seen to come or
	// go, in ns.
	churnFor = 500e6
)

// findNewborn looks for the thread among those that are not known yet. The caller holds e.mu.
func (s *search) findNewborn() bool {
	w := s.w
	if w.selfFD < 0 {
		return false
	}
	for _, p := range w.e.churning {
		if p.gone {
			continue
		}
		for _, tid := range w.newest(p) {
			if tid == 0 || p.threads[tid] != nil {
				continue
			}
			th := newThread(p, tid)
			if !s.precedes(th) {
				th.close()
				continue
			}
			if th.follow(&w.reader) != nil {
				return false
			}
			p.threads[tid] = th
			th.seen, th.newborn = account{}, true
			w.e.heatLocked(th, s.woke)
			w.e.born = append(w.e.born, th)
			return s.look(th)
		}
	}
	return false
}

// newest returns the TIDs of the process's newest threads, 0 for unused places.
func (w *worker) newest(p *process) *[newestThreads]int {
	w.tids = [newestThreads]int{}
	var st unix.Stat_t
	if unix.Fstat(p.list, &st) != nil || st.Nlink < 2 {
		return &w.tids
	}
	// The kernel lists threads in the order of their birth, from any position on; the first two
	// positions are . and .. of the directory.
	if _, err := unix.Seek(p.list, max(2, int64(st.Nlink)-newestThreads), unix.SEEK_SET); err != nil {
		return &w.tids
	}
	n, _, errno := unix.RawSyscall(unix.SYS_GETDENTS64, uintptr(p.list), uintptr(unsafe.Pointer(&w.reader.buf[0])), readBytes)
	if errno != 0 || n > readBytes {
		return &w.tids
	}
	parseThreads(w.reader.buf[:n], w.tids[:])
	return &w.tids
}

// parseThreads extracts the names that are numbers from what getdents64 returned.
func parseThreads(b []byte, tids []int) {
	const nameAt = 19 // struct linux_dirent64: inode, offset, length, type, name
	for i := 0; i < len(tids) && len(b) > nameAt; {
		size := int(binary.NativeEndian.Uint16(b[16:]))
		if size <= nameAt || size > len(b) {
			return
		}
		name, _, _ := bytes.Cut(b[nameAt:size], []byte{0})
		if n, rest, ok := number(name); ok && len(rest) == 0 && n <= noSuchThread {
			tids[i] = int(n)
			i++
		}
		b = b[size:]
	}
}

// churn records which processes' threads come and go, and how much they have run that is not in any
// sample: threads that ended unseen, and the unsampled parts of others' lives. The next sample of a
// newborn thread stands for that too.
func (e *Engine) churn(now int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	nobody := e.nobody()
	e.churning = e.churning[:0]
	for _, p := range e.procs {
		if p.churned != 0 && now-p.churned < churnFor && !p.gone {
			e.churning = append(e.churning, p)
		}
	}
	if len(e.churning) == 0 {
		return
	}
	if nobody {
		e.poke()
	}
	for _, p := range e.churning {
		p.backlog = p.unsampled(cpuClock(p.pid))
	}
	late := now - e.churned
	if e.churned = now; late > 3*int64(roundEvery) {
		// Candid rarely gets a CPU: what was last seen of threads that live says little.
		e.countDue()
		return
	}
	for _, th := range e.hot {
		if due := th.seen.run - min(th.sampled, th.seen.run); th.proc.backlog > due {
			th.proc.backlog -= due
		} else {
			th.proc.backlog = 0
		}
	}
}

// countDue reads the accounts of all threads of churning processes. The caller holds e.mu.
func (e *Engine) countDue() {
	for _, p := range e.churning {
		if len(p.threads) > mostLooks {
			p.backlog = 0 // reading that many takes too long
			continue
		}
		for _, th := range p.threads {
			if a, ok := e.reader.account(th.schedFD); ok {
				p.backlog -= min(p.backlog, a.run-min(th.sampled, a.run))
			}
		}
	}
}

// unsampled returns how much of the CPU time of a process, in ns, no sample stands for. The caller
// holds Engine.mu.
func (p *process) unsampled(total uint64) uint64 {
	told := p.clock + p.given + p.pending
	return total - min(told, total)
}

// cpuClock returns the CPU time of a process with all its threads, including those that have ended,
// in ns; 0 if it is gone. The clock's ID is made from the PID (clock_getcpuclockid(3)).
func cpuClock(pid int) uint64 {
	const scheduled = 2 // CPUCLOCK_SCHED
	var ts unix.Timespec
	if unix.ClockGettime(int32(^pid<<3|scheduled), &ts) != nil {
		return 0
	}
	return uint64(ts.Nano())
}

// tellBirths reports the threads that sampling threads have found.
func (e *Engine) tellBirths(now int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, th := range e.born {
		e.notices = append(e.notices, capture.ProcessEvent{Kind: capture.Fork, Time: uint64(now), PID: uint32(th.proc.pid), TID: uint32(th.tid), Parent: uint32(th.proc.pid)})
		e.follow(th, false, th.proc.listed, now)
	}
	clear(e.born)
	e.born = e.born[:0]
}
