package suspend

import "sync"

// group is the set of threads of one process that sleep on and on, for a sleep scanner.
//
// Looking at a thread costs a microsecond, every time. Reading the CPU time of the whole process
// costs a fiftieth of that per thread: as long as it is no more than that of the threads which are
// looked at anyway, none of the others has run.
type group struct {
	proc    *process
	threads int // the process's threads that the sleep scanner has, quiet or not
	quiet   []*sleeper
	cursor  int     // index in quiet at which to continue
	credit  float64 // looks that may be done
	tell    float64 // looks that are due although none has run, to report the threads
	maps    stackMap

	begin  uint64 // CPU time of the process when the round began, ns; 0: not read
	ours   uint64 // what lively threads have run, in ns, as of the looks at them
	vague  bool   // one of them was not looked at
	lively bool   // there are lively threads
	rest   uint64 // what all others have run, in ns: quiet threads, and those that have ended
	left   int    // how many quiet threads have to be looked at before rest can show that none has run
	still  int64  // ns, until when certainly none has run
	asked  int64  // ns, when settle last asked
	cost   int64  // ns that asking takes
	ask    bool   // it is time to ask
	sure   bool   // the last result of settle
}

const (
	// fewQuiet is the number of quiet threads from which on their process's CPU time is read.
	fewQuiet = 64
	// settleShare is the share of a CPU that reading it may take.
	settleShare = 0.005
)

// pause returns the time between two readings of the process's CPU time, in ns.
func (g *group) pause() int64 { return int64(float64(g.cost) / settleShare) }

// asked is the CPU time of a process when the sleep scanner last read it.
type asked struct {
	mu    sync.Mutex
	at    int64 // ns
	total uint64
}

func (a *asked) note(at int64, total uint64) {
	a.mu.Lock()
	a.at, a.total = at, total
	a.mu.Unlock()
}

// since returns the CPU time, and when it was read, if that was after t.
func (a *asked) since(t int64) (total uint64, at int64, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.total, a.at, a.at > t
}

// beginRound must be called before the lively threads are looked at.
func (g *group) beginRound(now int64) {
	g.begin, g.ours, g.vague = 0, 0, false
	g.ask = len(g.quiet) >= fewQuiet && now-g.asked >= g.pause()
	if g.lively = g.threads > len(g.quiet); g.lively && g.ask {
		g.begin = cpuClock(g.proc.pid)
	}
}

// met notes that a lively thread was looked at.
func (g *group) met(sl *sleeper) {
	if sl.seen == never {
		g.vague = true
		return
	}
	g.ours += sl.seen.run
}

// settle reports, after the lively threads were looked at, whether all quiet threads were still
// asleep at the last reading.
func (g *group) settle(now int64) bool {
	if !g.ask || g.vague {
		return g.sure
	}
	g.sure = false
	begin := clock()
	total := cpuClock(g.proc.pid)
	g.asked, g.cost = now, clock()-begin
	g.proc.asked.note(begin, total)
	if g.lively && total != g.begin {
		return false // something ran meanwhile
	}
	if rest := total - g.ours; rest != g.rest {
		g.rest, g.left = rest, len(g.quiet)
	}
	if g.left > 0 {
		return false
	}
	g.still, g.sure = now, true
	return true
}

// calm adds a thread that sleeps to the quiet ones.
func (g *group) calm(sl *sleeper) {
	sl.quiet = true
	g.quiet = append(g.quiet, sl)
	g.rest += sl.seen.run
}

// stir removes the quiet thread at the cursor, whose account was before.
func (g *group) stir(before account) {
	g.quiet[g.cursor].quiet = false
	last := len(g.quiet) - 1
	g.quiet[g.cursor], g.quiet[last] = g.quiet[last], nil
	g.quiet = g.quiet[:last]
	g.rest -= before.run
}

// lookQuiet looks at as many of the quiet threads as are due if each may be looked at once in
// interval ns, and returns how many. Looks that were not needed while all were asleep are available
// when one of them has run.
func (l *sleepScanner) lookQuiet(g *group, now, since int64, interval float64) (looks int) {
	all := float64(len(g.quiet))
	g.credit = min(g.credit+all*float64(since)/interval, all)
	g.tell = min(g.tell+2*all*float64(since)/float64(l.tellEvery), all)
	due := g.credit
	if g.settle(now) {
		due = min(due, g.tell)
	}
	for ; due >= 1 && len(g.quiet) > 0; due-- {
		g.tell = max(g.tell-1, 0)
		if g.cursor >= len(g.quiet) {
			g.cursor = 0
		}
		sl := g.quiet[g.cursor]
		if l.goesOn(sl, now) {
			g.cursor++
			continue
		}
		g.credit--
		before := sl.seen
		ran := false
		if !sl.gone {
			looks++
			ran = l.look(sl)
			g.left--
		}
		if sl.asleep && !ran && !sl.gone {
			g.cursor++
			continue
		}
		g.stir(before)
		if sl.gone {
			g.rest += before.run // it still counts in the process's CPU time
			continue
		}
		sl.lively = now + livelyFor
		l.lively = append(l.lively, sl)
	}
	return looks
}
