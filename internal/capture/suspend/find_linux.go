package suspend

import (
	"errors"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// fewLooks is how many threads a tick may look at in any case, and mostLooks at how
	// many at most; between them it is for looksShare of a CPU, if each takes lookTime ns.
	fewLooks, mostLooks  = 96, 1024
	looksShare, lookTime = 0.03, 750
	// closeLooks is at how many of them it looks closely, at most.
	closeLooks = 24
	// switchSlack is how far apart two notes of the scheduler about one switch
	// between threads may be, ns. Mostly they are equal: sameSwitch.
	switchSlack, sameSwitch = 20e3, 1e3
	// promptly is how long the sampling thread may have waited for its CPU, ns, if the
	// thread it got it from is to be where it was when it was due. A thread in its own code
	// loses the CPU at once; one in a call may take longer, and so may any where the CPU is
	// owed to others first.
	promptly = 15e3
	// justNow is how long ago the sampling of another CPU may have seen that the thread
	// ran which this one was taken from, ns.
	justNow = 1e6
)

// find looks for the thread that this CPU was taken from when the sampling
// thread woke, and puts it into w.pick. The caller holds w.mu.
//
// The scheduler notes when it accounted a thread's time last: of one that does
// not run, when it lost the CPU; of one that runs, when it got it, unless it was
// accounted since. That the one is the other's predecessor shows in both notes
// being the same.
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
	direct       bool   // that is when the thread that was looked at last lost it
	looks, close int
	most         int  // looks
	moved        int  // how many have run since they were looked at last
	ran          bool // one of them ran lately where the sampling thread is
}

// lookAtHot looks at the threads that ran lately, first at those that were on this CPU
// when they were looked at closely. Where many want a CPU those whose last turn is the
// longest ago have had the next one, and where few do most likely those that had the
// last one. There are limits to what one tick does; those that were seen to have run
// are the last in the list afterwards.
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

// lookAlong looks at those that were on this CPU, or at the others.
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
	// The account is read first: if it is the same later, then the thread has
	// not run since it was found.
	a, late, ok := w.reader.accountAndDelay(th.schedFD)
	if !ok {
		th.gone = true
		return false
	}
	switch {
	case a != th.seen:
		th.seen, th.active, th.ran = a, s.woke, s.woke
		s.moved++
	case th != w.last && s.woke-th.ran > justNow:
		return false
	}
	if a.run == th.sampled {
		return false
	}
	s.close++
	// This comes first because the scheduler's notes take four times as long to read.
	st, ok := th.status(&w.reader)
	if !ok {
		return false
	}
	if th.cpu = st.cpu; st.cpu != w.cpu || w.selfFD >= 0 && !s.precedes(th) {
		return false
	}
	s.ran = true
	if p := th.proc; w.e.waiting.Load() && st.startCode == p.startCode && st.startStack == p.startStack {
		th.sampled = a.run
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
		// It may have computed anywhere before it went to sleep. What it ran is for a sample
		// that is taken where it runs.
		return false
	case unsure:
		unsure = !w.prompt(s.direct)
	}
	w.pick = pick{
		th: th, tid: th.tid, account: a, late: late, at: s.woke, stack: th.stack, first: th.proc.firstStack(),
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
		return false // it has ended, or runs elsewhere
	}
	s.direct = s.mine-left <= sameSwitch
	// The sampling thread's time may have been accounted since it got the CPU.
	return s.mine-left <= uint64(max(clock()-s.woke, 0))+switchSlack
}

// prompt reports whether the sampling thread got the CPU as soon as it was due, from the
// thread itself and not after another one or an idle while.
func (w *worker) prompt(direct bool) bool {
	if !direct || w.ownFD < 0 {
		return false
	}
	_, waited, ok := w.reader.accountAndDelay(w.ownFD)
	return ok && waited-w.waitedBefore <= promptly
}

// mayBeInKernel reports whether a sample inside of a call may stand for what the thread has
// run, where it is not sure that it was there when it was to be sampled: as long as all such
// samples are for no more than what the kernel says that it ran in the kernel, which is exact
// to a tick.
func (th *thread) mayBeInKernel(system, run uint64) bool {
	const tick = uint64(time.Second / 100) // USER_HZ
	if th.system == unknownTime {
		th.system = system
	}
	return system > th.system && th.inKernel+run-th.sampled <= (system-th.system-1)*tick
}

// read reads a file of a thread, which is opened when it is needed first and kept open if
// there are descriptors to spare.
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
