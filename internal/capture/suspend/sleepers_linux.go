package suspend

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// Looking after threads that sleep on (quiet) and after those that run now and then (lively)
	// may take these shares of a CPU: beyond them the threads are looked at less often.
	quietShare, livelyShare = 0.02, 0.10
	// livelyFor is how long after it ran a thread is looked at in every round, in ns.
	livelyFor = 1e9
	// freshFor is how long a thread is looked at in every round after it was first met, in ns.
	freshFor = 250e6
	// fastestRound is the least time between two rounds, in ns.
	fastestRound = 1e6
	// crowdedRound is the time to the next round after one in which there was no room for the first
	// samples of all threads, in ns.
	crowdedRound = 10e6
	// tellFirst is how long a sleep that goes on is held back at first, in ns. Code that was
	// unknown when its stack was walked may be known then.
	tellFirst = 100e6
	// tellAnyway is how long a sleep that goes on is held back at most, in ns, so that a recording
	// shows roughly when threads slept.
	tellAnyway = 10e9
	// lookerArena is how many bytes of sleepers' stacks there is room for.
	lookerArena = 8 << 20
	// firstCopyCost is the initial estimate of the cost of copying a sleeper's stack, in ns.
	firstCopyCost = 50e3
	// mostCopies is how many stacks of quiet threads that are wanted again are copied in one round
	// at most.
	mostCopies = 64
	// mostKept is for how many threads files besides schedstat are kept open.
	mostKept = 512
)

// sleepScanner looks at all threads of the targets, for wall time, and makes samples of those that
// sleep. A thread whose account is the same as at the last look has slept on where it was, so only
// its time is added up; the stack of a thread that has run is read again, from outside. The time
// between two looks at a thread that ran meanwhile goes to the place where it is next found asleep:
// the kernel's account says how much of it was sleep.
type sleepScanner struct {
	e *Engine
	buffer
	reader reader
	groups map[*process]*group

	box struct {
		sync.Mutex
		added []*sleeper
		ended []*thread
	}
	news atomic.Bool // a thread that was idle has run, or one has ended

	lively                []*sleeper
	livelyCost, quietCost float64 // ns of one look; for a quiet thread without the time for copying
	copyCost, copyCredit  float64 // ns of a copy, and how many of quiet threads are allowed
	copies                int     // since the round of quiet threads began
	copying               int64   // ns that the copies took
	kept                  int     // number of open files
	sleeps                uint64
	tellEvery             int64
	crowded               bool  // there was no room for a sample
	unseen                int   // how many threads were not looked at for that reason
	end                   int64 // ns, when recording ended; 0: it goes on
}

func newLooker(e *Engine) *sleepScanner {
	return &sleepScanner{e: e, groups: map[*process]*group{}, livelyCost: 20e3, quietCost: lookCost, copyCost: firstCopyCost}
}

// begin restarts the count of all threads' time from now on.
func (l *sleepScanner) begin() {
	l.open()
	for _, g := range l.groups {
		l.lively = append(l.lively, g.quiet...)
		g.quiet, g.still = nil, 0
	}
	l.end = 0
	l.paceTelling()
	if l.arena == nil {
		l.buffer = makeBuffer(lookerArena)
	}
}

// paceTelling sets how long sleeps that go on are held back.
func (l *sleepScanner) paceTelling() {
	threads := 0
	for _, g := range l.groups {
		threads += g.threads
	}
	if l.tellEvery = int64(l.e.opts.TellEvery(threads)); l.tellEvery == 0 {
		l.tellEvery = tellAnyway
	}
}

// add makes the sleep scanner look at a thread, whose time counts from `from` on. With crowd, for
// many threads that existed already, those that sleep are not looked at more often at first.
func (l *sleepScanner) add(th *thread, from int64, a account, late uint64, crowd bool) {
	th.sleeper = &sleeper{th: th, seen: never, placeFD: unopened, statFD: unopened, crowd: crowd}
	th.sleeper.count(from, a, late)
	l.box.Lock()
	l.box.added = append(l.box.added, th.sleeper)
	l.box.Unlock()
}

// forget makes the sleep scanner drop a thread and close its files.
func (l *sleepScanner) forget(th *thread) {
	l.box.Lock()
	l.box.ended = append(l.box.ended, th)
	l.box.Unlock()
}

// open takes in what add and forget left.
func (l *sleepScanner) open() {
	l.box.Lock()
	defer l.box.Unlock()
	for _, sl := range l.box.added {
		l.lively = append(l.lively, sl)
		if sl.group = l.groups[sl.th.proc]; sl.group == nil {
			sl.group = &group{proc: sl.th.proc}
			l.groups[sl.th.proc] = sl.group
		}
		sl.group.threads++
	}
	for _, th := range l.box.ended {
		if th.sleeper != nil {
			l.over(th.sleeper)
		}
		_ = unix.Close(th.schedFD)
		th.schedFD = -1
		l.e.part(th)
	}
	clear(l.box.added)
	clear(l.box.ended)
	l.box.added, l.box.ended = l.box.added[:0], l.box.ended[:0]
}

// over reports what is left to report of a thread that has ended.
func (l *sleepScanner) over(sl *sleeper) {
	if sl.gone {
		return
	}
	if sl.gone = true; sl.asleep {
		sl.lasted()
		l.again(sl, sl.same, 0)
	}
	l.closeFiles(sl)
	if g := sl.group; g != nil {
		if g.threads--; g.threads == 0 {
			g.maps.close()
			delete(l.groups, g.proc)
		}
	}
	sl.th.over.Store(true)
	l.tellNews()
}

// tellNews signals that there is news.
func (l *sleepScanner) tellNews() {
	if l.news.Store(true); l.e.resting.Load() {
		l.e.wakeReader()
	}
}

// run scans until the engine stops.
func (l *sleepScanner) run() {
	defer l.e.workers.Done()
	last := clock()
	next := last
	for !l.e.stopping.Load() {
		now := clock()
		if now < next {
			time.Sleep(min(time.Duration(next-now), longestSleep)) // there is no hurry: a system call would keep Go's scheduler awake
			continue
		}
		runtime.LockOSThread() // the thread's CPU time is measured
		l.round(now, now-last)
		runtime.UnlockOSThread()
		last = now
		// The intervals vary, so that they do not run in lockstep with anything.
		step := max(int64(l.e.opts.Period), fastestRound, int64(float64(len(l.lively))*l.livelyCost/livelyShare))
		if len(l.lively) == 0 {
			step = max(step, l.untilAsked(now))
		}
		step += rand.Int64N(step/2+1) - step/4
		if l.unseen > 0 { // the reader has been woken
			again := float64(len(l.lively)-l.unseen) * l.livelyCost / livelyShare
			step = min(step, max(crowdedRound, int64(again)))
		}
		if next += step; next < clock() {
			next = clock() + step
		}
	}
}

// untilAsked returns for how many ns nothing is to be looked at: all threads are known to be asleep
// until the CPU time is read again.
func (l *sleepScanner) untilAsked(now int64) int64 {
	wait := int64(0)
	if len(l.groups) > 0 {
		wait = int64(4 * longestSleep)
	}
	for _, g := range l.groups {
		if !g.sure {
			return 0
		}
		wait = min(wait, g.asked+g.pause()-now)
	}
	return wait
}

// round looks at the threads that are due; since is the time since the last round in ns.
func (l *sleepScanner) round(now, since int64) {
	l.open()
	l.paceTelling()
	l.crowded, l.unseen = false, 0
	for _, g := range l.groups {
		g.beginRound(now)
	}
	begin, n := threadClock(), len(l.lively)
	lively := l.lively[:0]
	for _, sl := range l.lively {
		if sl.gone {
			continue
		}
		if l.crowded && sl.seen == never {
			l.unseen++
			sl.group.met(sl)
			lively = append(lively, sl)
			continue
		}
		if l.look(sl) {
			sl.lively = now + livelyFor
		}
		if sl.gone {
			sl.group.rest += sl.seen.run // it still counts in the process's CPU time
			continue
		}
		sl.group.met(sl)
		lively = append(lively, sl)
	}
	clear(l.lively[len(lively):])
	l.lively = lively
	if n > 0 {
		l.livelyCost += (float64(threadClock()-begin)/float64(n) - l.livelyCost) / 8
	}
	l.roundQuiet(now, since)
	l.calm(now)
}

// roundQuiet looks at quiet threads. Copying stacks that are wanted again has a budget of its own,
// so that threads that have run are found no later for it.
func (l *sleepScanner) roundQuiet(now, since int64) {
	all := 0
	for _, g := range l.groups {
		all += len(g.quiet)
	}
	interval := max(float64(l.e.opts.Period), fastestRound, float64(all)*l.quietCost/quietShare)
	l.copyCredit = min(l.copyCredit+float64(since)*quietShare/l.copyCost, mostCopies)
	l.copies, l.copying = 0, 0
	begin, looks := threadClock(), 0
	for _, g := range l.groups {
		looks += l.lookQuiet(g, now, since, interval)
	}
	if looks > 0 {
		took := max(threadClock()-begin-l.copying, 0)
		l.quietCost += (float64(took)/float64(looks) - l.quietCost) / 8
	}
	if l.copies > 0 {
		l.copyCredit = max(l.copyCredit-float64(l.copies), 0)
		l.copyCost += (float64(l.copying)/float64(l.copies) - l.copyCost) / 8
	}
}

// calm makes those threads quiet that have not run for a while.
func (l *sleepScanner) calm(now int64) {
	lively := l.lively[:0]
	for _, sl := range l.lively {
		if sl.asleep && now >= sl.lively {
			l.closeFiles(sl)
			sl.group.calm(sl)
			continue
		}
		lively = append(lively, sl)
	}
	clear(l.lively[len(lively):])
	l.lively = lively
}

// last reports all threads that slept when their final accounts were read; the sampling threads and
// run have ended. It returns whether there was no room for some of it.
func (l *sleepScanner) last() (more bool) {
	l.open()
	if l.end == 0 {
		l.end = clock()
	}
	l.crowded = false
	l.each(func(sl *sleeper) {
		if !sl.gone {
			l.look(sl)
		}
	})
	return l.crowded
}

// close closes the files of threads, except for those that belong to the engine's processes.
func (l *sleepScanner) close() {
	l.open()
	l.each(l.closeFiles)
	for _, g := range l.groups {
		g.maps.close()
	}
}

func (l *sleepScanner) each(f func(*sleeper)) {
	for _, sl := range l.lively {
		f(sl)
	}
	for _, g := range l.groups {
		for _, sl := range g.quiet {
			f(sl)
		}
	}
}
