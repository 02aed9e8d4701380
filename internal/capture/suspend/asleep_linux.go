package suspend

import (
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/procsyscall"
	"github.com/candid-profiler/candid/internal/target"
)

// look looks at one thread, and reports whether the thread has run since the last look.
func (l *sleepScanner) look(sl *sleeper) (ran bool) {
	goesOn := false
	if sl.wanted.Load() && l.mayCopy(sl) {
		sl.wanted.Store(false)
		back := sl.back.Swap(0)
		sl.gave -= back
		goesOn = sl.asleep && back == 0
		sl.asleep = false
	}
	now := clock()
	a, late, ok := l.reader.accountAndDelay(sl.th.schedFD)
	if f := sl.th.final; l.end != 0 {
		now, a, late, ok = f.at, f.account, f.late, f.at != 0
	}
	if !ok {
		l.over(sl)
		return false
	}
	ran = a != sl.seen
	if sl.asleep {
		if !ran {
			sl.same, sl.due = now, sl.slept(now, a, late)-sl.gave
			sl.looked, sl.seenLate = now, late
			if (now-sl.told >= sl.tell || l.end != 0) && !l.wantsCPU(sl) && l.stillSleeps(sl, a) {
				l.again(sl, now, late)
				sl.tell = min(2*sl.tell, l.tellEvery)
			}
			return false
		}
		sl.lasted()
		// It may have waited for a CPU at the last looks already, which the kernel counts only now.
		sl.due = min(sl.due, sl.slept(now, a, late)-sl.gave)
		if !l.again(sl, sl.same, 0) {
			return true // the time before is reported first
		}
		sl.asleep = false
	}
	if sl.seen == never {
		ran = a != sl.from
	}
	if ran && sl.th.idle.Load() {
		sl.th.stirred.Store(true)
		l.tellNews()
	}
	// This also applies to a thread that has not run: it may have been about to go to sleep.
	sl.looked, sl.seenLate = now, late
	if sl.seen = a; ran {
		sl.tell = tellFirst
	}
	l.copyAsleep(sl, now, a, late, goesOn && !ran)
	return ran
}

// wantsCPU reports whether a thread that has not run since it was seen asleep has been woken, and
// waits for a CPU.
func (l *sleepScanner) wantsCPU(sl *sleeper) bool {
	s, ok := parseStatus(l.read(sl, &sl.statFD, "stat"))
	return ok && s.state == 'R'
}

// stillSleeps reports whether a thread has not run since its account was read. At the end, the account is that of the
// end.
func (l *sleepScanner) stillSleeps(sl *sleeper, a account) bool {
	if l.end != 0 {
		return true
	}
	again, ok := l.reader.account(sl.th.schedFD)
	return ok && again == a
}

// mayCopy reports whether the stack of a thread may be copied again now; until then its time is
// added up.
func (l *sleepScanner) mayCopy(sl *sleeper) bool {
	return !sl.quiet || l.end != 0 || float64(l.copies) < l.copyCredit
}

// goesOn makes a sample of a quiet thread's sleep, if it is time, without looking at the thread:
// its process's CPU time has shown that it still sleeps. It returns false if that is not known, or
// if the stack is to be copied again.
func (l *sleepScanner) goesOn(sl *sleeper, now int64) bool {
	if !sl.group.sure || !sl.asleep || sl.gone || sl.wanted.Load() {
		return false
	}
	sl.lasted()
	if now-sl.told >= sl.tell || l.end != 0 {
		l.again(sl, sl.same, 0)
		sl.tell = min(2*sl.tell, l.tellEvery)
	}
	return true
}

// lasted makes up for the looks at a sleep that were not needed.
func (sl *sleeper) lasted() {
	if still := sl.group.still; still > sl.same && sl.quiet {
		sl.due += still - sl.same
		sl.same = still
	}
}

// again makes a sample of a sleep that goes on or has ended; false if there is no room for it.
func (l *sleepScanner) again(sl *sleeper, now int64, late uint64) bool {
	if sl.due <= 0 {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.next()
	if s == nil {
		l.crowd()
		return false
	}
	*s = sample{th: sl.th, sleeper: sl, sleep: sl.sleep, again: true, time: now, weight: uint64(sl.due), state: capture.Sleeping, off: l.used}
	s.ready = sl.th.takeWaited(late, uint64(l.e.opts.Period))
	l.made(sl, s, now)
	return true
}

// crowd notes that there was no room. The caller holds l.mu.
func (l *sleepScanner) crowd() {
	l.crowded = true
	l.e.wakeReader()
}

// made accounts for a sample. The caller holds l.mu.
func (l *sleepScanner) made(sl *sleeper, s *sample, now int64) {
	sl.gave += int64(s.weight)
	sl.due, sl.told = 0, now
	if l.keep(s) {
		l.e.wakeReader()
	}
}

// copyAsleep makes a sample of a thread if it sleeps; goesOn says that this sleep was reported
// before.
func (l *sleepScanner) copyAsleep(sl *sleeper, now int64, a account, late uint64, goesOn bool) {
	if sl.th.stops.Load() {
		return // that is not a sleep of its own
	}
	weight := sl.slept(now, a, late) - sl.gave
	if weight <= 0 || l.crowded {
		return
	}
	begin := threadClock()
	defer func() {
		l.copies++
		l.copying += threadClock() - begin
	}()
	place, ok := procsyscall.Parse(l.read(sl, &sl.placeFD, "syscall"))
	if !ok || place.Running || place.SP == 0 {
		return // a thread without a stack has ended and waits to be reaped by its parent
	}
	top, limit := l.top(sl, place.SP)
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.next()
	if s == nil {
		l.crowd()
		return
	}
	l.sleeps++
	*s = sample{
		th: sl.th, sleeper: sl, sleep: l.sleeps, time: now, weight: uint64(weight), asleep: true,
		flags: capture.InKernel, off: l.used, call: uint32(place.Call + 1),
	}
	if goesOn {
		s.flags |= capture.Continued
	}
	s.regs.place(place.PC, place.SP)
	if !l.copyStack(s, place.SP, top, limit) {
		l.drop()
		l.crowd()
		return
	}
	s.state = l.stateOf(sl, place.Call)
	if again, ok := l.reader.account(sl.th.schedFD); !ok || again != a {
		l.drop() // the thread has run meanwhile, and its stack has changed
		return
	}
	s.ready = sl.th.takeWaited(late, uint64(l.e.opts.Period))
	sl.asleep, sl.sleep, sl.same = true, l.sleeps, now
	l.made(sl, s, now)
}

// stateOf returns how a thread sleeps in a system call.
func (l *sleepScanner) stateOf(sl *sleeper, call int) capture.State {
	if call >= 0 && call < len(interruptible) && interruptible[call] {
		return capture.Sleeping
	}
	if st, _ := parseStatus(l.read(sl, &sl.statFD, "stat")); st.state == 'D' {
		return capture.Uninterruptible
	}
	return capture.Sleeping
}

// copyStack copies a sleeper's stack; false if there is no room for it.
func (l *sleepScanner) copyStack(s *sample, sp, top, limit uint64) bool {
	s.at, s.top = sp-redZone, top
	if sp < 4096 || sp >= 1<<56 {
		s.flags |= capture.StackUnread
		return true
	}
	size := limit
	if top != 0 {
		size = min(top-s.at, limit)
	}
	if uint64(len(l.arena)-l.used) < size {
		return false
	}
	to := l.arena[l.used : l.used+int(size)]
	if s.len, _ = s.th.proc.memory.copy(s.th.tid, to, s.at, 0); s.len == 0 && redZone > 0 {
		// The page below the stack pointer may be a guard page.
		s.at = sp
		s.len, _ = s.th.proc.memory.copy(s.th.tid, to[:size-redZone], sp, 0)
	}
	switch {
	case s.len == 0:
		s.flags |= capture.StackUnread
	case top == 0 || s.at+uint64(s.len) < top:
		s.flags |= capture.StackCut
	}
	return true
}

// largestKnown is the largest mapping, in bytes, that is taken for the stack of one thread: a
// larger one holds other things too.
const largestKnown = 64 << 20

// top returns the end of the stack that a stack pointer is in, 0 if that is not known, and how much
// of the stack is copied at most.
func (l *sleepScanner) top(sl *sleeper, sp uint64) (top, limit uint64) {
	limit = uint64(l.e.maxStack)
	if top = sl.stack.top(sp); top != 0 {
		return top, limit
	}
	p := sl.th.proc
	if first := l.e.firstStack(p); first > sp && first-sp <= near {
		return first, limit
	}
	if span := sl.group.maps.find(p.pid, sp, sl.began); span.high-span.low <= largestKnown && span.high > sp {
		sl.stack = span
		return span.high, limit
	}
	return 0, min(limit, unknownStack)
}

// read reads a file of a thread. The file is kept open unless too many are.
func (l *sleepScanner) read(sl *sleeper, fd *int, name string) []byte {
	if *fd >= 0 {
		return l.reader.read(*fd)
	}
	f, err := unix.Openat(sl.th.proc.task, strconv.Itoa(sl.th.tid)+"/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	b := l.reader.read(f)
	if l.kept >= 2*mostKept || f >= mostFiles() {
		_ = unix.Close(f)
		return b
	}
	*fd = f
	l.kept++
	return b
}

func (l *sleepScanner) closeFiles(sl *sleeper) {
	for _, fd := range []*int{&sl.placeFD, &sl.statFD} {
		if *fd >= 0 {
			_ = unix.Close(*fd)
			l.kept--
		}
		*fd = unopened
	}
}

// stackMap holds a process's mappings, so that reading them once finds all of its stacks.
type stackMap struct {
	proc   *target.Process
	failed bool
	spans  []stackSpan // sorted
	read   int64       // ns, when they were read
	cost   int64       // ns that reading them took
}

// find returns the mapping that holds a stack pointer of a thread which began at since. Mappings
// that were read before that are read again, unless they have just been.
func (m *stackMap) find(pid int, sp uint64, since int64) stackSpan {
	span := m.holds(sp)
	if m.failed || span.high != 0 && m.read > since {
		return span
	}
	now := clock()
	if m.read != 0 && now-m.read < max(findEvery, 50*m.cost) {
		return span
	}
	if m.proc == nil {
		p, err := target.Open(pid)
		if err != nil {
			m.failed = true
			return span
		}
		m.proc = p
	}
	maps, err := m.proc.Mappings()
	m.read, m.cost = clock(), clock()-now
	if err != nil {
		return span
	}
	m.spans = m.spans[:0]
	for i := range maps {
		m.spans = append(m.spans, stackSpan{maps[i].Start, maps[i].End})
	}
	return m.holds(sp)
}

func (m *stackMap) holds(sp uint64) stackSpan {
	i, ok := slices.BinarySearchFunc(m.spans, sp, func(s stackSpan, sp uint64) int {
		switch {
		case sp < s.low:
			return 1
		case sp >= s.high:
			return -1
		}
		return 0
	})
	if !ok {
		return stackSpan{}
	}
	return m.spans[i]
}

func (m *stackMap) close() {
	if m.proc != nil {
		_ = m.proc.Close()
	}
	m.proc = nil
}
