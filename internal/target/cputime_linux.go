package target

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// CPUTimes reads how long each thread of the process has run, in ns by thread
// id, as the scheduler accounts it. A thread that is running now may be behind
// by up to one tick of the kernel. Threads that end meanwhile are left out.
func CPUTimes(p *Process) (map[int]uint64, error) {
	tids, err := p.tids()
	if err != nil {
		return nil, err
	}
	out := make(map[int]uint64, len(tids))
	var buf [1024]byte
	for _, tid := range tids {
		if ns, err := p.threadCPU(tid, buf[:]); err == nil {
			out[tid] = ns
		}
	}
	return out, nil
}

// CPUTime reads how long all threads of the process have run, in ns, including those that have
// ended. The kernel counts it in hundredths of a second.
func CPUTime(p *Process) (uint64, error) {
	user, system, err := CPUTicks(p, 0)
	return Nanoseconds(user + system), err
}

// CPUTicks reads how long a thread of the process has run in user mode and in the kernel. For
// thread 0 it is the time of all threads, including those that have ended. The unit is that of
// /proc/stat: hundredths of a second.
func CPUTicks(p *Process, tid int) (user, system uint64, err error) {
	name := "stat"
	if tid != 0 {
		name = tidPath(tid) + name
	}
	var buf [1024]byte
	raw, err := p.readSmall(name, buf[:])
	if err != nil {
		return 0, 0, err
	}
	st, ok := parseStat(raw)
	if !ok {
		return 0, 0, ErrFormat
	}
	return st.User, st.System, nil
}

// threadCPU reads the time that a thread has run, in ns. Kernels without CONFIG_SCHED_INFO have
// only the coarser count in stat.
func (p *Process) threadCPU(tid int, buf []byte) (uint64, error) {
	raw, err := p.readSmall(tidPath(tid)+"schedstat", buf)
	if err == nil {
		if ns, ok := parseSchedstat(raw); ok {
			return ns, nil
		}
	} else if !errors.Is(err, unix.ENOENT) {
		return 0, err
	}
	user, system, err := CPUTicks(p, tid)
	return Nanoseconds(user + system), err
}

// readString reads a small file of the system, "" if that fails.
func readString(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(b)
}
