package suspend

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
)

const (
	// atOnce is how many threads a sampling thread stops in one go at most.
	atOnce = 8
	// longestSleep is how late a sampling thread may notice that it shall end.
	longestSleep = 50 * time.Millisecond
	// sliceNS is the time slice that sampling threads ask for. Since Linux 6.12
	// a thread with a shorter slice takes the CPU from others as soon as it
	// wakes; it is still longer than a tick's work.
	sliceNS = 500_000
	// quietTicks without a thread on its CPU make a sampling thread look less often.
	quietTicks = 16
	// looksAtOnce is how many threads a tick looks at closely, at most.
	looksAtOnce = 12
	// secondLook is about how much later the second look follows, where it takes
	// two and the next tick is far.
	secondLook = 2500 * time.Microsecond
)

// worker is the sampling thread of one CPU.
type worker struct {
	e      *Engine
	cpu    int
	reader reader
	picked [atOnce]pick
	n      int
	quiet  int
	again  bool

	mu      sync.Mutex // of the rest; held while threads stand still
	samples []sample
	arena   []byte // the stacks of samples
	used    int
	spare   []byte   // the other arena, of the reader
	ready   []sample // of the reader
	stops   stopCounts
	lost    uint64 // no room
	late    uint64 // periods slept through
	raced   uint64
	broken  uint64
	refused uint64
}

// pick is a thread that is being sampled.
type pick struct {
	th          *thread
	tid         int
	account     account
	first       uint64 // end of the stack that exec made
	stack       stackSpan
	interrupted bool
	took        bool // a sample was made
	broken      bool
	ended       bool
}

// sample is a Snapshot before it is handed over.
type sample struct {
	th       *thread
	time     int64
	weight   uint64
	cpu      int
	regs     words
	at       uint64 // address of the copy
	off, len int    // of the copy in the arena
	top      uint64
	flags    capture.Flags
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
	var set unix.CPUSet
	set.Set(w.cpu)
	if unix.SchedSetaffinity(0, &set) != nil {
		return // the CPU was taken away
	}
	// Refused by older kernels, which let waking threads run soon anyway.
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Runtime: sliceNS}, 0)
	period := int64(w.e.opts.Period)
	next := clock() + rand.Int64N(period)
	for !w.e.stopping.Load() {
		now := clock()
		if now < next {
			sleepUntil(min(next, now+int64(longestSleep)))
			continue
		}
		if retire := w.tick(now); retire {
			w.e.workers.Add(1)
			go w.run()
			return
		}
		// The intervals differ, so as not to keep step with anything.
		step := period - period/4 + rand.Int64N(period/2+1)
		if w.quiet > quietTicks {
			step = max(step, min(4*step, int64(longestSleep)))
		}
		next += step
		if now = clock(); next < now {
			missed := (now - next) / period
			w.mu.Lock()
			w.late += uint64(missed)
			w.mu.Unlock()
			next += missed * period
		}
	}
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

// tick samples the threads that this CPU was taken from. It says whether the
// sampling thread must end, to let go of one that it could not stop.
func (w *worker) tick(now int64) (retire bool) {
	// Nothing that may sleep comes between choosing threads and stopping them.
	w.mu.Lock()
	if w.n, w.again = 0, false; w.onCPU() {
		w.choose(now, false)
	}
	if w.n == 0 && w.again && w.e.opts.Period > 2*secondLook {
		w.mu.Unlock()
		sleepUntil(now + int64(secondLook/2+rand.N(secondLook)))
		w.mu.Lock()
		if w.onCPU() {
			w.choose(clock(), true)
		}
	}
	if w.n == 0 {
		w.mu.Unlock()
		return false
	}
	retire = w.suspend()
	w.mu.Unlock()
	w.finish()
	return retire
}

// suspend stops the picked threads, copies and releases them. The caller holds
// w.mu. It says what tick says.
func (w *worker) suspend() (retire bool) {
	waiting := 0
	for i := range w.n {
		p := &w.picked[i]
		if !w.standsStill(p) {
			continue
		}
		switch seize(p.tid) {
		case 0:
		case unix.ESRCH:
			p.ended = true
			continue
		default:
			w.refused++
			continue
		}
		if !w.standsStill(p) {
			// It runs, on another CPU: it may be entering a call right now.
			w.raced++
			retire = true
			continue
		}
		if interrupt(p.tid) != 0 {
			retire = true
			continue
		}
		p.interrupted = true
		waiting++
	}
	for waiting > 0 {
		tid, s, errno := waitAny()
		if errno != 0 {
			break // none is left
		}
		p := w.pickOf(tid)
		if p == nil {
			_ = release(tid, s.signal)
			continue
		}
		if s.ended {
			p.ended = true
		} else {
			stopped := clock()
			if !s.exiting && p.interrupted && !p.took {
				w.copy(p, stopped)
			}
			if release(tid, s.signal) != 0 {
				continue // it was killed, which will be told
			}
			w.stops.add(clock() - stopped)
		}
		if p.interrupted {
			waiting--
		}
	}
	return retire
}

// standsStill says whether a thread has not run since it was picked.
func (w *worker) standsStill(p *pick) bool {
	a, ok := w.reader.account(p.th.schedFD)
	return ok && a == p.account
}

func (w *worker) pickOf(tid int) *pick {
	for i := range w.n {
		if w.picked[i].tid == tid {
			return &w.picked[i]
		}
	}
	return nil
}

// choose picks the threads that this CPU was taken from and that have run since
// their last sample. It notes in again whether there are some of which a second
// look would tell.
func (w *worker) choose(now int64, second bool) {
	e := w.e
	w.n, w.again = 0, false
	mine, looks := false, 0
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.hot) == 0 {
		return
	}
	// There are limits to what one tick does, so no thread shall always be first.
	first := rand.IntN(len(e.hot))
	for i := range e.hot {
		th := e.hot[(first+i)%len(e.hot)]
		if th.cpu != w.cpu || th.busy || th.gone {
			continue
		}
		mine = true
		// The account is read before the state: if it is the same later, then
		// the thread has not run since it was found waiting.
		a, ok := w.reader.account(th.schedFD)
		if !ok {
			th.gone = true
			continue
		}
		if a != th.seen {
			th.seen, th.active = a, now
		}
		if a.run-th.sampled < e.due || th.spared {
			continue
		}
		s, ok := w.reader.status(th.statFD)
		if !ok {
			th.gone = true
			continue
		}
		th.cpu = s.cpu
		if s.cpu != w.cpu || looks == looksAtOnce {
			continue
		}
		looks++
		if s.state != 'R' {
			if w.again = true; !second {
				th.noteSleeps(&w.reader)
			}
			continue
		}
		if !th.wasPreempted(a, &w.reader) {
			w.again = true
			continue
		}
		th.busy = true
		p := &w.picked[w.n]
		*p = pick{th: th, tid: th.tid, account: a, stack: th.stack}
		if th.proc.startStack != 0 {
			// The argument count is there, and the first argument above it.
			p.first = th.proc.startStack + 16
		}
		if w.n++; w.n == atOnce {
			break
		}
	}
	if w.quiet++; mine {
		w.quiet = 0
	}
}

// finish gives the threads back.
func (w *worker) finish() {
	e := w.e
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range w.n {
		p := &w.picked[i]
		p.th.busy = false
		if p.took {
			p.th.sampled = p.account.run
			p.th.slept++ // the stop counts as one
		}
		if p.broken {
			p.th.spared = true
		}
		if p.ended {
			p.th.gone = true
		}
	}
}

// copy takes the sample of a stopped thread. The caller holds w.mu.
func (w *worker) copy(p *pick, now int64) {
	if len(w.samples) == cap(w.samples) {
		w.lost++
		w.e.wakeReader()
		return
	}
	w.samples = w.samples[:len(w.samples)+1]
	s := &w.samples[len(w.samples)-1]
	if s.regs.read(p.tid) != 0 {
		w.samples = w.samples[:len(w.samples)-1]
		return
	}
	s.th, s.time, s.cpu, s.weight = p.th, now, w.cpu, p.account.run-p.th.sampled
	s.flags, s.top, s.off, s.len = 0, 0, w.used, 0
	in, broken := s.regs.inCall()
	if in {
		s.flags |= capture.InKernel
	}
	if broken {
		p.broken = true
		w.broken++
	}
	p.took = true
	w.copyStack(p, s)
	w.used += (s.len + 7) &^ 7
	if w.used > len(w.arena)/2 || len(w.samples) > cap(w.samples)/2 {
		w.e.wakeReader()
	}
}

func (w *worker) copyStack(p *pick, s *sample) {
	sp := s.regs.sp()
	s.at = sp - redZone
	if sp < 4096 || sp >= 1<<56 {
		s.flags |= capture.StackUnread
		return
	}
	base := s.regs.threadBase()
	limit, known := uint64(w.e.maxStack), p.stack.top(sp)
	var end, wordAt uint64
	switch {
	case known != 0:
		end = known
	case base > sp && base-sp <= near:
		end, wordAt = base, base
	case p.first > sp && p.first-sp <= near:
		end, known = p.first, p.first
	default:
		limit = min(limit, unknownStack)
		end = sp + limit
	}
	size := min(end-s.at, limit)
	if uint64(len(w.arena)-w.used) < size {
		w.lost++
		p.took = false
		w.samples = w.samples[:len(w.samples)-1]
		w.e.wakeReader()
		return
	}
	to := w.arena[w.used : w.used+int(size)]
	n, word := copyStack(p.tid, to, s.at, wordAt)
	if n == 0 && redZone > 0 {
		// The page below the stack pointer may be a guard.
		s.at = sp
		n, word = copyStack(p.tid, to[:size-redZone], s.at, wordAt)
	}
	if wordAt != 0 {
		if baseIsTop(base, word) {
			known = base
		} else {
			n = min(n, unknownStack)
		}
	}
	s.len, s.top = n, known
	switch {
	case n == 0:
		s.flags |= capture.StackUnread
	case known == 0 || s.at+uint64(n) < known:
		s.flags |= capture.StackCut
	}
}
