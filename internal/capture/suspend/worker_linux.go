package suspend

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// longestSleep is how late a sampling thread may notice that it shall end.
	longestSleep = 50 * time.Millisecond
	// sliceNS is the time slice that sampling threads ask for. Since Linux 6.12
	// a thread with a shorter slice takes the CPU from others as soon as it
	// wakes; it is still longer than a tick's work.
	sliceNS = 500_000
	// quietTicks without a thread on its CPU make a sampling thread look less often.
	quietTicks = 16
)

// worker is one of the sampling threads of a CPU.
type worker struct {
	*cpuSampler
	reader reader
	selfFD int // its own account of scheduling, -1: the kernel keeps none
	ownFD  int // its own schedstat
	// waitedBefore is for how long it had waited for a CPU before it slept last, ns.
	waitedBefore uint64
	pick         pick
	tids         [newestThreads]int

	aside      bool  // it has left its CPU
	asideAfter int64 // ns, when it may do so again

	thread  atomic.Int32 // its number
	waiting atomic.Int64 // ns, since when it waits for a stop; 0: it does not
	alarm   alarm
	roused  int64      // ns, when it was reminded last; of whoever reminds
	turns   futexEvent // told when it has the sampler's turn
}

// counts are what else came of a worker's ticks.
type counts struct {
	lost    uint64 // no room
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
	at      int64  // ns, since when it does not run
	first   uint64 // end of the stack that exec made
	stack   stackSpan
	backlog uint64 // ns of others that the sample stands for too
	asleep  bool   // it went to sleep just before the sampling thread got the CPU
	unsure  bool   // if it is in a call, it may have been elsewhere when it was to be sampled
	stopped bool
	took    bool // a sample was made
	inCall  bool // of a place in a call
	settled bool // its process is stopped (SIGSTOP), so it is in no call that a stop could break off
	broken  bool
	ended   bool
}

// count adds one to one of w.counts.
func (l *cpuSampler) count(n *uint64) {
	l.mu.Lock()
	*n++
	l.mu.Unlock()
}

// run samples until the engine stops. It never unlocks its OS thread, which so
// ends with it: whatever it was still tracing then is let go by the kernel.
func (w *worker) run() {
	onOwnThread(w.sample)
}

// onOwnThread runs f in a goroutine whose OS thread ends with it. The process's
// first thread never ends, so it is not used.
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
	// What is due at once is not put together with other threads' timers.
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
				// Nobody is there to be precise for, and Go's runtime can rest.
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

// askForSlice asks for time slices of so many ns, at the nice level that the thread
// has. Refused by kernels before 6.12, which let waking threads run soon anyway.
func askForSlice(ns uint64) {
	a, err := unix.SchedGetAttr(0, 0)
	if err != nil || a.Policy != unix.SCHED_NORMAL {
		return // somebody chose another policy for candid
	}
	a.Flags, a.Runtime = 0, ns
	_ = unix.SchedSetAttr(0, a, 0)
}

// slowAside is how long a stop may take that a sampling thread waits for on
// another CPU, ns. If it takes longer, others have work there.
const slowAside = 300e3

// stepAside leaves the CPU to the thread that is about to stop there, if another
// CPU is idle. The kernel wakes a thread on the CPU where it was if that is idle
// then, but on any idle one if the sampling thread is in its place: each sample would
// move the thread, away from the caches that hold its data.
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

// doze is sleepUntil, but keeps Go's processor. To take that away, and to give another one,
// costs more than what a sampling thread does when it wakes, and makes a thread of the
// runtime look every 20 µs for more to take away. Where the processor is wanted meanwhile,
// the runtime sends a signal, which ends the sleep.
func doze(t int64) {
	ts := unix.NsecToTimespec(t)
	_, _, _ = unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
}

func sleepUntil(t int64) {
	ts := unix.NsecToTimespec(t)
	_, _, _ = unix.Syscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
}

// onCPU says whether the calling thread runs where it was bound to.
func (w *worker) onCPU() bool {
	var cpu uint32
	_, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0)
	return errno == 0 && int(cpu) == w.cpu
}

// tick samples the thread that this CPU was taken from. It says whether the
// sampling thread must end, to let go of one that it could not stop.
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

// suspend stops the thread, copies and releases it. It says what tick says.
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
		// It runs, on another CPU: it may be entering a call right now.
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
	// Nothing may stay traced by this OS thread that it does not know of: exec
	// would wait for it for ever, and it for exec.
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

// stood accounts for the time that a thread stands still, which is about to end. The kernel
// counts it as sleep, and where candid waits for a CPU it is long: it is where the thread was
// stopped, and none of the next sleep. The caller holds w.mu.
func (w *worker) stood(p *pick) {
	a, late, ok := w.reader.accountAndDelay(p.th.schedFD)
	if !ok {
		return
	}
	// It was to run on, and has, has waited for a CPU or stood still.
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

const (
	// slowStop is how long a thread may take to come to its stop before the
	// sampling thread that waits for it is reminded, ns.
	slowStop = 100e6
	// longestStop is when that is given up: the thread is in a call that nothing
	// ends, or in a container that stands still.
	longestStop = 5e9
	// lastStop is when it is given up after recording has ended.
	lastStop = 1e9
)

// firstWait is for how long a sampling thread waits for a stop until it looks whether
// another one should take over, ns.
func firstWait(period time.Duration) int64 { return max(min(int64(period)/2, laterWait), 200e3) }

// laterWait is how often it looks after that, ns. Go's runtime may have to wait for so long
// where it wants all processors.
const laterWait = 5e6

// await waits for the stop. It is not ok if that never comes; the sampling thread
// must end then, and the kernel lets the thread go.
//
// At first it keeps Go's processor, as doze does, as long as there are enough of them. Its
// alarm tells it when it has waited for long.
func (w *worker) await(p *pick) (stop, bool) {
	begin := clock()
	w.waiting.Store(begin)
	defer w.waiting.Store(0)
	keeps := w.alarm.set(firstWait(w.e.opts.Period), laterWait)
	held := false // one of e.patience
	defer func() {
		if keeps {
			w.alarm.set(0, 0)
		}
		if held {
			w.e.patience.Add(1)
		}
	}()
	for {
		s, errno := waitStop(p.tid, keeps)
		switch errno {
		case 0:
			now := clock()
			if w.aside && now-begin > slowAside {
				w.asideAfter = now + int64(time.Second)
			}
			return s, true
		case unix.EINTR:
			// Someone else in this process who waits for it may have been told
			// in place of this thread.
			if s, ok := stopOf(p.tid); ok {
				return s, true
			}
			now := clock()
			if end := w.e.ended.Load(); now-begin > longestStop || end != 0 && now-end > lastStop {
				return stop{}, false
			}
			w.waitsLonger(w)
			if keeps && !held {
				held = w.e.patience.Add(-1) >= 0
				if !held {
					w.e.patience.Add(1)
				}
			}
			if keeps && (!held || now-begin > slowStop) {
				keeps = false
				w.alarm.set(0, 0)
			}
		default:
			// It has another number now, its process's, being the thread that exec
			// leaves; or it is gone.
			return stop{ended: true}, true
		}
	}
}

// standsStill says whether a thread has not run since it was picked.
func (w *worker) standsStill(p *pick) bool {
	a, ok := w.reader.account(p.th.schedFD)
	return ok && a == p.account
}

// finish gives the thread back.
func (w *worker) finish(p *pick) {
	e := w.e
	e.mu.Lock()
	defer e.mu.Unlock()
	p.th.busy = false
	if p.took {
		if p.th.newborn {
			p.th.newborn = false
			p.th.proc.backlog -= min(p.backlog, p.th.proc.backlog)
		}
		ran := p.account.run - p.th.sampled
		p.th.proc.given += ran + p.backlog
		if p.inCall {
			p.th.inKernel += ran
		}
		p.th.sampled = p.account.run
	}
	if p.stopped {
		p.th.slept++ // the stop counts as one
	}
	if p.broken {
		p.th.spared = true
	}
	if p.ended {
		p.th.gone = true
	}
}
