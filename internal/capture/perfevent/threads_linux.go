package perfevent

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/target"
)

// rounds is how often the threads are listed to catch those that started while the others' events
// were opened. Threads that are started later inherit the events.
const rounds = 5

// addThreads opens events for all threads of a process. The caller holds e.mu.
func (e *Engine) addThreads(pid int) error {
	p, err := target.Open(pid)
	if err != nil {
		return fmt.Errorf("sample process %d: %w", pid, err)
	}
	defer p.Close()
	done := map[int]bool{}
	for range rounds {
		threads, err := p.Threads()
		if err != nil {
			return fmt.Errorf("sample process %d: %w", pid, err)
		}
		fresh := 0
		for _, th := range threads {
			if done[th.TID] {
				continue
			}
			done[th.TID] = true
			fresh++
			if err := e.addThread(th.TID, len(threads) == 1); err != nil {
				if errors.Is(err, unix.ESRCH) {
					continue // the thread has ended meanwhile
				}
				return err
			}
		}
		if fresh == 0 {
			break
		}
	}
	return nil
}

// addThread opens an event per CPU for a thread; the events of one CPU share a ring. If alone, the
// thread gets another event that listens from now on.
func (e *Engine) addThread(tid int, alone bool) error {
	a := e.attr
	a.Inherit, a.NoKernel, a.Task = true, e.noKernel, !alone
	for _, c := range e.cpus {
		fd, err := Open(a, tid, c)
		if errors.Is(err, capture.ErrPermission) && !a.NoKernel && len(e.fds) == 0 {
			// With kernel.perf_event_paranoid=2 users may still sample their own programs, though
			// not in the kernel.
			e.noKernel, a.NoKernel = true, true
			a.Layout.Callchain = false
			e.attr.Layout.Callchain = false
			fd, err = Open(a, tid, c)
		}
		if err != nil {
			return err
		}
		e.fds = append(e.fds, fd)
		if owner, ok := e.ringOf[c]; ok {
			if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_OUTPUT, owner); err != nil {
				return fmt.Errorf("lead thread %d's samples into the ring of cpu %d: %w", tid, c, err)
			}
		} else if err := e.addRing(c, fd, ringSize(e.opts.Period, int(a.StackSize))); err != nil {
			return err
		}
		if alone {
			if err := e.listen(Attr{Inherit: true, NoKernel: a.NoKernel}, tid, c); err != nil {
				return err
			}
		}
		if e.running.Load() {
			if err := Enable(fd); err != nil {
				return fmt.Errorf("start the perf event of thread %d: %w", tid, err)
			}
		}
	}
	return nil
}
