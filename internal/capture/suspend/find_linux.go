package suspend

import (
	"errors"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// fewLooks is how many threads a tick may look at in any case, and mostLooks how many at most;
	// between them the number is limited to looksShare of a CPU, if each look takes lookTime ns.
	fewLooks, mostLooks  = 96, 1024
	looksShare, lookTime = 0.03, 750
	// closeLooks is how many of them are looked at closely, at most.
	closeLooks = 24
	// switchSlack is how far apart the scheduler's two times of one context switch may be, in ns.
	// Mostly they differ by no more than sameSwitch.
	switchSlack, sameSwitch = 20e3, 1e3
	// promptly is how long the sampling thread may have waited for its CPU, in ns, for the thread
	// that it took the CPU from to be where it was when the sample was due. A thread in its own
	// code loses the CPU at once; one in a call may take longer, and so may any thread if the CPU
	// is owed to others first.
	promptly = 15e3
	// justNow is how long ago, in ns, another CPU's sampling may have seen the thread run that this
	// CPU was taken from.
	justNow = 1e6
)

// find looks for the thread that this CPU was taken from when the sampling thread woke, and stores
// it in w.pick. The caller holds w.mu.
//
// The scheduler records when it last accounted a thread's time: for a thread that does not run,
// when it lost the CPU; for one that runs, when it got it, unless it was accounted since. If both
// times are the same, the one thread is the predecessor of the other.
func (w *worker) find(woke int64) bool {
	e := w.e
	e.mu.Lock()
	defer e.mu.Unlock()
	s := search{w: w, woke: woke, most: min(max(int(looksShare/lookTime*float64(e.opts.Period)), fewLooks), mostLooks)}
	found := s.look(w.last) || s.lookAtHot() || s.findNewborn()
	if w.quiet++; s.ran {
		w.quiet = 0
	}
	w.idle.Store(!s.ran)
	if !found {
		return false
	}
	th := w.pick.th
	th.busy = true
	w.last = th
	return true
}

// search is the state of one find.
type search struct {
	w            *worker
	woke         int64
	mine         uint64 // when the sampling thread got the CPU, on the scheduler's clock; 0: not read yet
	direct       bool   // the thread that was looked at last lost it at that time
	looks, close int
	most         int  // limit of looks
	moved        int  // how many threads have run since the last look at them
	ran          bool // one of them ran lately on the sampling thread's CPU
}

// lookAtHot looks at the threads that ran lately, first at those that were on this CPU at the last
// close look. If many want a CPU, those whose last turn is longest ago have had the next one, and
// if few do, most likely those that had the last one. There are limits to what one tick does;
// threads that were seen to have run are the last in the list afterwards.
func (s *search) lookAtHot() (found bool) {
	found = s.lookAlong(true) || s.lookAlong(false)
	if s.moved == 0 {
		return found
	}
	hot := s.w.e.hot
	ran := s.w.ran[:0]
	left := hot[:0]
	for _, th := range hot {
		if th.ran == s.woke {
			ran = append(ran, th)
		} else {
			left = append(left, th)
		}
	}
	copy(hot[len(left):], ran)
	clear(ran)
	s.w.ran = ran[:0]
	return found
}

// lookAlong looks at the threads that were on this CPU, or at the others.
func (s *search) lookAlong(here bool) bool {
	hot := s.w.e.hot
	low, high := 0, len(hot)-1
	for i := 0; low <= high && s.looks < s.most && s.close < closeLooks; i++ {
		th := hot[low]
		if i%4 == 3 {
			th = hot[high]
			high--
		} else {
			low++
		}
		if (th.cpu == s.w.cpu) == here && th != s.w.last && s.look(th) {
			return true
		}
	}
	return false
}

// look reports whether th is the thread, and picks it if so.
func (s *search) look(th *thread) bool {
	w := s.w
	if th == nil || !th.hot || th.busy || th.gone || th.spared {
		return false
	}
	s.looks++
	// The account is read first: if it is the same later, the thread has not run since it was
	// found.
	a, late, ok := w.reader.accountAndDelay(th.schedFD)
	if !ok {
		th.gone = true
		return false
	}
	th.looked = final{at: clock(), account: a, late: late}
	switch {
	case a != th.seen:
		th.seen, th.active, th.ran = a, s.woke, s.woke
		s.moved++
	case th != w.last && s.woke-th.ran > justNow:
		return false
	}
	if a.run <= th.sampled {
		if a.run < th.sampled { // another thread has taken its ID in exec
			th.sampled, th.from = a.run, min(th.from, a.run)
		}
		return false
	}
	s.close++
	// This comes first because reading the scheduler's times takes four times as long.
	st, ok := th.status(&w.reader)
	if !ok {
		return false
	}
	if th.cpu = st.cpu; st.cpu != w.cpu || w.selfFD >= 0 && !s.precedes(th) {
		return false
	}
	s.ran = true
	if p := th.proc; w.e.waiting.Load() && st.startCode == p.startCode && st.startStack == p.startStack {
		th.sampled, th.from = a.run, a.run
		return false
	}
	asleep, unsure := false, false
	switch st.state {
	case 'R':
		if w.e.wary && !th.wasPreempted(a, &w.reader) {
			return false
		}
	case 'S', 'D':
		if w.selfFD < 0 {
			if w.e.wary {
				th.noteSleeps(&w.reader)
			}
			return false
		}
		asleep = true
	default:
		return false
	}
	switch unsure = !th.mayBeInKernel(st.system, a.run); {
	case unsure && asleep:
		// It may have computed anywhere before it went to sleep. Its time is left for a sample that
		// is taken while it runs.
		return false
	case unsure:
		unsure = !w.prompt(s.direct)
	}
	w.pick = pick{
		th: th, tid: th.tid, account: a, late: late, at: th.looked.at, stack: th.stack, first: th.proc.firstStack(),
		asleep: asleep, unsure: unsure,
	}
	if th.newborn {
		w.pick.backlog = th.proc.backlog
	}
	return true
}

// precedes reports whether the sampling thread got the CPU from th.
func (s *search) precedes(th *thread) bool {
	w := s.w
	if s.mine == 0 {
		var ok bool
		if s.mine, ok = parseStart(w.reader.read(w.selfFD)); !ok {
			w.selfFD = -1 // the file is closed when the thread ends
			return true
		}
	}
	left, ok := parseStart(th.read(&w.reader, &th.noteFD, "sched"))
	if !ok || left > s.mine {
		return false // it has ended, or runs on another CPU
	}
	s.direct = s.mine-left <= sameSwitch
	// The sampling thread's time may have been accounted since it got the CPU.
	return s.mine-left <= uint64(max(clock()-s.woke, 0))+switchSlack
}

// prompt reports whether the sampling thread got the CPU as soon as it was due, directly from the
// thread and not after another one or after idle time.
func (w *worker) prompt(direct bool) bool {
	if !direct || w.ownFD < 0 {
		return false
	}
	_, waited, ok := w.reader.accountAndDelay(w.ownFD)
	return ok && waited-w.waitedBefore <= promptly
}

// mayBeInKernel reports whether a sample inside of a call may stand for what the thread has run if
// it is not sure that the thread was in the call when the sample was due: it may as long as all
// such samples stand for no more than the thread's time in the kernel by the kernel's account,
// which is exact to a tick.
func (th *thread) mayBeInKernel(system, run uint64) bool {
	const tick = uint64(time.Second / 100) // USER_HZ
	if th.system == unknownTime {
		th.system = system
	}
	return system > th.system && th.inKernel+run-th.sampled <= (system-th.system-1)*tick
}

// read reads a file of a thread, which is opened when it is first needed and kept open if there are
// descriptors to spare.
func (th *thread) read(r *reader, fd *int, name string) []byte {
	if *fd != unopened {
		return r.read(*fd)
	}
	n, err := unix.Openat(th.proc.dir, "task/"+strconv.Itoa(th.tid)+"/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return nil
	case err != nil:
		*fd = -1
		return nil
	case n < mostFiles():
		*fd = n
		return r.read(n)
	}
	b := r.read(n)
	_ = unix.Close(n)
	return b
}

// status reads the thread's stat.
func (th *thread) status(r *reader) (s status, ok bool) {
	return parseStatus(th.read(r, &th.statFD, "stat"))
}
