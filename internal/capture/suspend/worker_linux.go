package suspend

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// longestSleep is how late a sampling thread may notice that it should end.
	longestSleep = 50 * time.Millisecond
	// sliceNS is the time slice that sampling threads request. Since Linux 6.12 a thread with a
	// shorter slice takes the CPU from others as soon as it wakes; it is still longer than a tick's
	// work.
	sliceNS = 500_000
	// quietTicks is after how many ticks without a thread on its CPU a sampling thread looks less
	// often.
	quietTicks = 16
)

// worker is one of the sampling threads of a CPU.
type worker struct {
	*cpuSampler
	reader reader
	selfFD int // its own sched file, -1: the kernel has none
	ownFD  int // its own schedstat
	// waitedBefore is how long it had waited for a CPU before it last slept, in ns.
	waitedBefore uint64
	pick         pick
	tids         [newestThreads]int

	aside      bool  // it has left its CPU
	asideAfter int64 // ns, when it may do so again

	thread  atomic.Int32 // its TID
	waiting atomic.Int64 // ns, since when it waits for a stop; 0: it does not
	alarm   alarm
	roused  int64      // ns, when it was last reminded; used by the reminder's sender
	turns   futexEvent // signals that it has the sampler's turn
}

// counts are other outcomes of a worker's ticks.
type counts struct {
	lost    uint64 // there was no room
	late    uint64 // periods slept through
	raced   uint64
	broken  uint64
	mended  uint64
	refused uint64
	asleep  uint64
	stuck   uint64
	unsure  uint64
}

func (c *counts) add(o *counts) {
	c.lost += o.lost
	c.late += o.late
	c.raced += o.raced
	c.broken += o.broken
	c.mended += o.mended
	c.refused += o.refused
	c.asleep += o.asleep
	c.stuck += o.stuck
	c.unsure += o.unsure
}

// pick is a thread that is being sampled.
type pick struct {
	th      *thread
	tid     int
	account account
	late    uint64 // ns that it had waited for a CPU
	at      int64  // ns, when account and late had just been read
	first   uint64 // end of the stack that exec made
	stack   stackSpan
	backlog uint64 // ns of other threads that the sample stands for too
	asleep  bool   // it went to sleep just before the sampling thread got the CPU
	unsure  bool   // if it is in a call, it may have been elsewhere when the sample was due
	stopped bool
	took    bool // a sample was made
	inCall  bool // the sample is of a place in a call
	settled bool // its process is stopped (SIGSTOP), so it is in no call that a stop could interrupt
	broken  bool
	ended   bool
}

// count increments one of w.counts.
func (l *cpuSampler) count(n *uint64) {
	l.mu.Lock()
	*n++
	l.mu.Unlock()
}

// run samples until the engine stops. It never unlocks its OS thread, which therefore ends with it:
// the kernel lets go whatever it was still tracing.
func (w *worker) run() {
	onOwnThread(w.sample)
}

// onOwnThread runs f in a goroutine whose OS thread ends with it. The process's first thread never
// ends, so it is not used.
func onOwnThread(f func()) {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		f()
		return
	}
	elsewhere := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(elsewhere)
		f()
	}()
	<-elsewhere
	runtime.UnlockOSThread()
}

func (w *worker) sample() {
	defer w.e.workers.Done()
	w.thread.Store(int32(unix.Gettid()))
	if !w.goHome() {
		w.leave(w)
		return // the CPU was taken away
	}
	askForSlice(sliceNS)
	// The timer should not be coalesced with other threads' timers.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	w.alarm.make()
	defer w.alarm.delete()
	w.ownFD, w.selfFD = -1, -1
	if fd, err := unix.Open("/proc/thread-self/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
		w.ownFD = fd
		defer unix.Close(fd)
	}
	if fd, err := unix.Open("/proc/thread-self/sched", unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil && !w.e.blind {
		w.selfFD = fd
		defer unix.Close(fd)
	}
	for w.hasTurn(w) {
		if w.quiet > quietTicks {
			w.rest()
		}
		now := clock()
		if now < w.due {
			if _, waited, ok := w.reader.accountAndDelay(w.ownFD); ok {
				w.waitedBefore = waited
			}
			if left := w.due - now; w.quiet > quietTicks && left > laterWait {
				// No thread needs a precise time, and Go's runtime can rest.
				time.Sleep(min(time.Duration(left), longestSleep))
			} else {
				doze(min(w.due, now+int64(longestSleep)))
			}
			continue
		}
		if w.aside {
			if !w.goHome() {
				w.leave(w)
				return
			}
			now = clock()
		}
		w.advance(now)
		if retire := w.tick(now); retire {
			w.e.workers.Add(1)
			go w.run()
			return
		}
	}
	w.leave(w)
}

// askForSlice requests time slices of ns nanoseconds, at the nice level that the thread has.
// Kernels before 6.12 refuse that; they let waking threads run soon anyway.
func askForSlice(ns uint64) {
	a, err := unix.SchedGetAttr(0, 0)
	if err != nil || a.Policy != unix.SCHED_NORMAL {
		return // somebody chose another policy for candid
	}
	a.Flags, a.Runtime = 0, ns
	_ = unix.SchedSetAttr(0, a, 0)
}

// slowAside is how long a stop may take, in ns, that a sampling thread waits for on another CPU. If
// it takes longer, other threads have work there.
const slowAside = 300e3

// stepAside leaves the CPU to the thread that is about to stop there, if another CPU is idle. The
// kernel wakes a thread on its last CPU if that is idle then, but on any idle one if the sampling
// thread occupies it: each sample would move the thread away from the caches that hold its data.
func (w *worker) stepAside() {
	if clock() < w.asideAfter {
		return
	}
	var others unix.CPUSet
	for _, o := range w.e.list {
		if o != w.cpuSampler && o.idle.Load() {
			others.Set(o.cpu)
		}
	}
	if others.Count() > 0 {
		w.aside = unix.SchedSetaffinity(0, &others) == nil
	}
}

// goHome binds the calling thread to the worker's CPU; false if that is gone.
func (w *worker) goHome() bool {
	var home unix.CPUSet
	home.Set(w.cpu)
	w.aside = false
	return unix.SchedSetaffinity(0, &home) == nil
}

// doze sleeps until t as sleepUntil does, but keeps Go's P. Taking the P away and returning one
// costs more than what a sampling thread does when it wakes, and makes the runtime's monitor thread
// look every 20 µs for more to take away. If the P is wanted meanwhile, the runtime sends a signal,
// which ends the sleep.
func doze(t int64) {
	ts := unix.NsecToTimespec(t)
	_, _, _ = unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
}

func sleepUntil(t int64) {
	ts := unix.NsecToTimespec(t)
	_, _, _ = unix.Syscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
}

// onCPU reports whether the calling thread runs on the CPU that it was bound to.
func (w *worker) onCPU() bool {
	var cpu uint32
	_, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0)
	return errno == 0 && int(cpu) == w.cpu
}

// tick samples the thread that this CPU was taken from. It reports whether the sampling thread must
// end, to let go of a thread that it could not stop.
func (w *worker) tick(woke int64) (retire bool) {
	// Nothing that may sleep comes between finding the thread and stopping it.
	if !w.onCPU() || !w.find(woke) {
		return false
	}
	if w.pick.asleep {
		w.mu.Lock()
		w.copyAsleep(&w.pick)
		w.mu.Unlock()
	} else {
		retire = w.suspend(&w.pick)
	}
	w.finish(&w.pick)
	return retire
}

// suspend stops the thread, copies it and releases it. It returns the same as tick.
func (w *worker) suspend(p *pick) (retire bool) {
	if !w.standsStill(p) {
		w.count(&w.counts.raced)
		return false
	}
	switch seize(p.tid) {
	case 0:
	case unix.ESRCH:
		p.ended = true
		return false
	default:
		w.count(&w.counts.refused)
		return false
	}
	if w.e.wary && !w.standsStill(p) {
		// The thread is running on another CPU: it may be entering a call right now.
		w.count(&w.counts.raced)
		return true
	}
	if w.e.scanner != nil {
		p.th.stops.Store(true)
		defer p.th.stops.Store(false)
	}
	if interrupt(p.tid) != 0 {
		return true
	}
	w.stepAside()
	st, ok := w.await(p)
	if !ok {
		if !w.e.stopping.Load() {
			w.count(&w.counts.stuck)
		}
		return true
	}
	// This OS thread must not go on tracing anything that it does not know of: exec would wait for
	// it for ever, and it for exec.
	if st.ended {
		p.ended = true
		return !bury(p.tid, p.tid == p.th.proc.pid && p.th.proc.own)
	}
	stopped := clock()
	p.stopped = true
	w.mu.Lock()
	defer w.mu.Unlock()
	if !st.exiting {
		w.copy(p, stopped)
	}
	if w.e.scanner != nil {
		w.stood(p)
	}
	retire = release(p.tid, st.signal) != 0 // it was killed
	w.stops.add(clock() - stopped)
	return retire
}

// stood accounts for the time that a thread was stopped, which is about to end. The kernel counts
// it as sleep, and it is long if candid waits for a CPU: it belongs to the place where the thread
// was stopped, not to the next sleep. The caller holds w.mu.
func (w *worker) stood(p *pick) {
	a, late, ok := w.reader.accountAndDelay(p.th.schedFD)
	if !ok {
		return
	}
	// Since p.at it has run, waited for a CPU or been stopped: the remainder is the time that it
	// was stopped. p.at is later than the account, never earlier: what the thread ran while candid
	// waited for a CPU between the two must not count as a stop too.
	ns := clock() - p.at - int64(a.run-p.account.run) - int64(late-p.late)
	if ns <= 0 {
		return
	}
	all := p.th.stood.Add(ns)
	if least := int64(w.e.opts.Period); p.took && all-p.th.told >= least {
		w.samples[len(w.samples)-1].stood = uint64(all - p.th.told)
		p.th.told = all
	}
}
