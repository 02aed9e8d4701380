package suspend

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// cpuSampler samples one CPU.
//
// A thread that is to stop does so when it next gets a CPU, and if many threads want one that takes
// a while. So another sampling thread takes over while one waits: each waits for one thread only,
// because a tracer that waits for several and seizes another would wait for exec, and exec for it.
type cpuSampler struct {
	e   *Engine
	cpu int

	buffer // its mu is held while a thread is stopped
	// Guarded by mu.
	stops  stopCounts
	counts counts

	idle  atomic.Bool   // no thread of the targets has run on this CPU lately
	news  chan struct{} // there are threads to look at again, or recording has ended
	rests atomic.Bool   // the worker that has the turn waits for that

	turn   sync.Mutex // guards what follows
	ticks  *worker    // the worker whose turn it is to sample
	rested []*worker  // workers that do not wait for a stop
	all    []*worker

	// Used by the worker that has the turn.
	due   int64   // ns, when to sample
	last  *thread // the thread that was found last
	quiet int
	ran   []*thread // scratch
}

const (
	// mostWorkers is the limit of sampling threads for a CPU, allWorkers the limit for all CPUs
	// together; each CPU may have fewWorkers in any case.
	mostWorkers, allWorkers, fewWorkers = 64, 1024, 4
)

// open starts the first sampling thread.
func (l *cpuSampler) open() {
	period := int64(l.e.opts.Period)
	l.turn.Lock()
	defer l.turn.Unlock()
	l.due, l.rested, l.all = clock()+rand.Int64N(period), nil, nil
	l.ticks = l.start()
}

// start starts a sampling thread. The caller holds l.turn.
func (l *cpuSampler) start() *worker {
	w := &worker{cpuSampler: l, turns: futexEvent{parks: make(chan struct{}, 1)}}
	l.all = append(l.all, w)
	l.e.workers.Add(1)
	go w.run()
	return w
}

// advance sets when to sample next. The intervals vary, so that they do not run in lockstep with
// anything.
func (l *cpuSampler) advance(now int64) {
	period := int64(l.e.opts.Period)
	if missed := (now - l.due) / period; missed > 0 {
		l.mu.Lock()
		l.counts.late += uint64(missed)
		l.mu.Unlock()
		l.due += missed * period
	}
	step := period - period/4 + rand.Int64N(period/2+1)
	if l.quiet > quietTicks {
		step = max(step, min(4*step, int64(longestSleep)))
	}
	l.due += step
}

// hasTurn waits until the sampling thread has the turn; false if recording has ended.
func (l *cpuSampler) hasTurn(w *worker) bool {
	l.turn.Lock()
	mine := l.ticks == w
	if !mine {
		l.rested = append(l.rested, w)
	}
	l.turn.Unlock()
	if !mine {
		w.turns.wait(&l.e.stopping, &l.e.patience)
	}
	return !l.e.stopping.Load()
}

// poke ends the current rest, or the next one.
func (l *cpuSampler) poke() {
	select {
	case l.news <- struct{}{}:
	default:
	}
}

// rest waits for as long as there is no thread that the sampling thread could find. Only the one
// that has the turn does so.
func (l *cpuSampler) rest() {
	l.e.mu.Lock()
	nobody := l.e.nobody()
	l.e.mu.Unlock()
	if !nobody {
		return
	}
	l.rests.Store(true)
	<-l.news
	l.rests.Store(false)
	l.quiet, l.due = 0, clock()+rand.Int64N(int64(l.e.opts.Period))
}

// nobody reports whether none of the targets' threads has run lately. The caller holds e.mu.
func (e *Engine) nobody() bool { return len(e.hot) == 0 && len(e.churning) == 0 }

// poke ends the rests of all sampling threads.
func (e *Engine) poke() {
	for _, l := range e.list {
		l.poke()
	}
}

// rouse wakes the workers that wait for their turn, when recording has ended.
func (l *cpuSampler) rouse() {
	l.poke()
	l.turn.Lock()
	defer l.turn.Unlock()
	for _, w := range l.rested {
		w.turns.tell()
	}
}

// leave ends a sampling thread.
func (l *cpuSampler) leave(w *worker) {
	l.turn.Lock()
	defer l.turn.Unlock()
	l.all = slices.DeleteFunc(l.all, func(o *worker) bool { return o == w })
}

// waitsLonger lets another sampling thread look for another thread that may have a CPU, if there is
// one. It is called when a sampling thread has waited for a stop for a while.
func (l *cpuSampler) waitsLonger(w *worker) {
	l.turn.Lock()
	defer l.turn.Unlock()
	if l.ticks == w && !l.e.stopping.Load() && l.e.anyUnattended() {
		l.passOn(w)
	}
}

// anyUnattended reports whether a thread has run lately for which no sampling thread waits.
func (e *Engine) anyUnattended() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, th := range e.hot {
		if !th.busy && !th.gone {
			return true
		}
	}
	return len(e.churning) > 0
}

// passOn gives the turn of a sampling thread to another one, if there is one or one can be started.
// The caller holds l.turn.
func (l *cpuSampler) passOn(from *worker) {
	if l.ticks != from {
		return
	}
	if n := len(l.rested); n > 0 {
		l.ticks = l.rested[n-1]
		l.rested = l.rested[:n-1]
		l.ticks.turns.tell()
		return
	}
	// Each has two files of its own: an eighth of all descriptors is for them.
	most := min(allWorkers, mostFiles()/16) / len(l.e.cpus)
	if len(l.all) < min(max(most, fewWorkers), mostWorkers) {
		l.ticks = l.start()
	}
}

// remind wakes sampling threads that have waited long for a stop, and lets another one sample.
func (l *cpuSampler) remind(now int64) {
	l.turn.Lock()
	defer l.turn.Unlock()
	for _, w := range l.all {
		if w.remind(now) && !l.e.stopping.Load() {
			l.passOn(w)
		}
	}
}

// remind wakes sampling threads that have waited long for a stop.
func (e *Engine) remind(now int64) {
	for _, l := range e.list {
		l.remind(now)
	}
}

// futexEvent is what a sampling thread waits for. While the thread may keep Go's P (see doze), only
// that thread has to be woken.
type futexEvent struct {
	state atomic.Uint32
	parks chan struct{} // wakes one that waits without a P
}

// Values of a futexEvent, besides 0.
const (
	wasTold = 1
	parked  = 2
)

// shortRests is for how many times laterWait a sampling thread keeps Go's P.
const shortRests = 4

// Operations of futex(2).
const (
	futexWait = 0 | 128 // FUTEX_WAIT | FUTEX_PRIVATE_FLAG
	futexWake = 1 | 128
)

// wait waits until tell is called or stopping is set. It keeps Go's P for a while, if there is
// patience left.
func (b *futexEvent) wait(stopping *atomic.Bool, patience *atomic.Int32) {
	kept := patience.Add(-1) >= 0
	ts := unix.NsecToTimespec(laterWait)
	for range shortRests {
		if !kept || stopping.Load() || b.state.Load() == wasTold {
			break
		}
		_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&b.state)), futexWait, 0, uintptr(unsafe.Pointer(&ts)), 0, 0)
	}
	patience.Add(1)
	for !stopping.Load() && !b.state.CompareAndSwap(wasTold, 0) {
		if b.state.CompareAndSwap(0, parked) {
			<-b.parks
		}
	}
}

// tell ends the current wait, or the next one.
func (b *futexEvent) tell() {
	if b.state.Swap(wasTold) == parked {
		b.parks <- struct{}{}
		return
	}
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&b.state)), futexWake, 1, 0, 0, 0)
}
