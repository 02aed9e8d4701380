package suspend

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
)

// Stopper copies single threads of one process, to see what each is doing now. It follows the
// engine's rules, so that a thread does not notice that it was stopped. It belongs to one
// goroutine.
type Stopper struct {
	proc    *process
	w       *worker
	threads map[int]*thread
	snap    capture.Snapshot
	cpus    unix.CPUSet
}

// NewStopper opens a process. The errors are the engine's: a *TracedError if a debugger has the
// process, others wrap capture.ErrPermission.
func NewStopper(pid int) (*Stopper, error) {
	p, err := openProcess(pid)
	if err != nil {
		return nil, err
	}
	if err := p.mayTrace(); err != nil {
		p.close()
		return nil, err
	}
	s := &Stopper{proc: p, threads: make(map[int]*thread)}
	if err := unix.SchedGetaffinity(0, &s.cpus); err != nil {
		p.close()
		return nil, fmt.Errorf("find the CPUs that candid may run on: %w", err)
	}
	s.w = &worker{cpuSampler: &cpuSampler{
		e: &Engine{maxStack: largestStack, wary: !mends}, buffer: buffer{samples: make([]sample, 0, 1), arena: make([]byte, largestStack+4096)},
	}}
	prepareSignals()
	return s, nil
}

// Close closes the descriptors.
func (s *Stopper) Close() {
	for _, th := range s.threads {
		th.close()
	}
	s.proc.stacks.close()
	s.proc.close()
	clear(s.threads)
}

// betweenLooks is how long a running thread is left to run between two looks.
const betweenLooks = 2500 * time.Microsecond

// Reasons why a thread was not copied.
var (
	// ErrAsleep: the thread waits in a call, where its stack can be read without a stop.
	ErrAsleep = errors.New("the thread sleeps")
	// ErrElusive: the thread was not seen outside of a call, where it could be stopped without
	// being noticed. It may be next time.
	ErrElusive = errors.New("the thread was not met where it can be stopped unnoticed")
	// ErrStuck: the thread did not stop and was let go. It is in a call that nothing ends, or its
	// container is frozen.
	ErrStuck = errors.New("the thread does not come to its stop")
	// ErrRefused: the kernel does not let the thread be traced.
	ErrRefused = errors.New("the kernel does not let the thread be traced")
)

// Copy tries once to stop each of the threads, and passes f a Snapshot of each that it could stop,
// with how long it was stopped; the Snapshot is valid only until f returns. If calls that a stop
// interrupts cannot be mended, Copy takes some 3 ms for the threads to run. The result maps each
// thread that was not copied to the reason; threads that have ended, and those that were copied,
// are not in it.
func (s *Stopper) Copy(tids []int, f func(snap *capture.Snapshot, stood time.Duration)) map[int]error {
	left := make(map[int]error)
	s.proc.lookAtMemory(clock())
	for rest := tids; len(rest) > 0; {
		// The OS thread ends with the goroutine, and the kernel lets go whatever it still traces:
		// then another one goes on.
		next := make(chan int)
		go func() {
			onOwnThread(func() {
				s.w.thread.Store(int32(unix.Gettid()))
				next <- s.round(rest, left, f)
			})
		}()
		rest = rest[s.await(next):]
	}
	return left
}

// await waits for the result of round, and reminds it if it waits for a stop that does not come.
func (s *Stopper) await(next <-chan int) int {
	ticker := time.NewTicker(roundEvery)
	defer ticker.Stop()
	for {
		select {
		case n := <-next:
			return n
		case <-ticker.C:
			s.w.remind(clock())
		}
	}
}

// round tries the threads, and returns how many were done before its OS thread had to end.
func (s *Stopper) round(tids []int, left map[int]error, f func(*capture.Snapshot, time.Duration)) int {
	if s.w.e.wary {
		for _, tid := range tids {
			if th := s.thread(tid); th != nil && s.displace(th) == nil {
				th.noteSleeps(&s.w.reader)
			}
		}
		sleepUntil(clock() + int64(betweenLooks))
	}
	for i, tid := range tids {
		th := s.thread(tid)
		if th == nil {
			continue
		}
		err, retire := s.one(th, f)
		if err != nil && !errors.Is(err, unix.ESRCH) {
			left[tid] = err
		}
		if retire {
			return i + 1
		}
	}
	return len(tids)
}

// displace takes the CPU from a running thread by moving there: while candid has the CPU that the
// thread ran on, the thread has none. It does nothing about a thread whose whole process is stopped
// (SIGSTOP): that is no longer in any call.
func (s *Stopper) displace(th *thread) error {
	st, ok := th.status(&s.w.reader)
	switch {
	case !ok:
		return unix.ESRCH
	case st.state == 'T':
		return nil
	case st.state != 'R':
		return ErrAsleep
	case st.cpu >= len(s.cpus)*64 || !s.cpus.IsSet(st.cpu):
		return fmt.Errorf("%w: it runs on CPU %d, where candid may not", ErrElusive, st.cpu)
	}
	var only unix.CPUSet
	only.Set(st.cpu)
	if s.w.cpu = st.cpu; unix.SchedSetaffinity(0, &only) != nil {
		return ErrElusive
	}
	return nil
}

// thread returns a thread and starts to follow it; nil if it has ended.
func (s *Stopper) thread(tid int) *thread {
	th := s.threads[tid]
	if th == nil {
		var err error
		if th, err = s.proc.openThread(tid, &s.w.reader); err != nil {
			return nil
		}
		s.threads[tid] = th
	}
	return th
}

// one stops one thread. retire is that of worker.suspend.
func (s *Stopper) one(th *thread, f func(*capture.Snapshot, time.Duration)) (err error, retire bool) {
	if err := s.displace(th); err != nil {
		return err, false
	}
	w := s.w
	// The account is read before the state: if it is the same later, the thread has not run since
	// it was found waiting.
	a, ok := w.reader.account(th.schedFD)
	st, ok2 := th.status(&w.reader)
	switch {
	case !ok || !ok2:
		return unix.ESRCH, false
	case st.state == 'T':
	case st.state != 'R':
		return ErrAsleep, false
	case st.cpu != w.cpu || !w.onCPU() || w.e.wary && !th.wasPreempted(a, &w.reader):
		return ErrElusive, false
	}
	w.samples, w.used = w.samples[:0], 0
	w.stops, w.counts = stopCounts{}, counts{}
	w.pick = pick{th: th, tid: th.tid, account: a, stack: th.stack, first: th.proc.firstStack(), settled: st.state == 'T'}
	retire = w.suspend(&w.pick)
	switch {
	case w.pick.ended:
		return unix.ESRCH, retire
	case w.counts.refused > 0:
		return ErrRefused, retire
	case w.counts.stuck > 0:
		return ErrStuck, retire
	case len(w.samples) == 0:
		return ErrElusive, retire
	}
	s.hand(&w.samples[0], f)
	return nil, retire
}

// hand converts a sample to a Snapshot, as Engine.deliver does.
func (s *Stopper) hand(from *sample, f func(*capture.Snapshot, time.Duration)) {
	th := from.th
	s.snap = capture.Snapshot{
		Time: uint64(from.time), PID: uint32(th.proc.pid), TID: uint32(th.tid), CPU: uint32(s.w.cpu),
		StackAddr: from.at, StackTop: from.top, Flags: from.flags,
	}
	from.regs.decode(&s.snap.Regs)
	s.snap.Stack, s.snap.Regions = s.w.arena[from.off:from.off+from.len], from.regions
	if from.top == 0 && from.len > 0 {
		s.w.e.findTop(th, &s.snap, from.time)
	}
	f(&s.snap, time.Duration(s.w.stops.max))
}
