package suspend

import "sync"

// group is the threads of one process that sleep on and on, for a sleep scanner.
//
// Looking at each costs a microsecond, every time. The CPU time of the whole
// process costs a fiftieth of that a thread: as long as it is no more than that of
// the threads which are looked at anyway, none of the others has run.
type group struct {
	proc    *process
	threads int // those of the process that the sleep scanner has, quiet or not
	quiet   []*sleeper
	cursor  int     // where in quiet to go on
	credit  float64 // looks that may be taken
	tell    float64 // looks that are due although none has run, to tell of them
	maps    stackMap

	begin  uint64 // CPU time of the process when the round began, ns; 0: not asked for
	ours   uint64 // what lively threads have run, ns, as far as they were looked at
	vague  bool   // one of them was not
	lively bool   // there are any
	rest   uint64 // what all others have: quiet ones, and those that ended
	left   int    // how many of quiet have to be looked at before rest says that none has run
	still  int64  // ns, until when surely none has run
	asked  int64  // ns, when settle asked last
	cost   int64  // ns that it takes
	ask    bool   // it is time to ask
	sure   bool   // what settle said last
}

const (
	// fewQuiet is from how many threads on their process's CPU time is asked for.
	fewQuiet = 64
	// settleShare is the part of a CPU that asking may take.
	settleShare = 0.005
)

// pause is how long it is left alone between two times that it is asked, ns.
func (g *group) pause() int64 { return int64(float64(g.cost) / settleShare) }

// asked is what the CPU time of a process was when the sleep scanner asked for it last.
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

// since gives it, and when it was, if it is from after a time.
func (a *asked) since(t int64) (total uint64, at int64, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.total, a.at, a.at > t
}

// beginRound is to be called before the lively threads are looked at.
func (g *group) beginRound(now int64) {
	g.begin, g.ours, g.vague = 0, 0, false
	g.ask = len(g.quiet) >= fewQuiet && now-g.asked >= g.pause()
	if g.lively = g.threads > len(g.quiet); g.lively && g.ask {
		g.begin = cpuClock(g.proc.pid)
	}
}

// beginLast is beginRound when recording ends, which asks in any case.
func (g *group) beginLast() {
	g.asked, g.sure = 0, false
	g.beginRound(clock())
}

// met notes that a lively thread was looked at.
func (g *group) met(sl *sleeper) {
	if sl.seen == never {
		g.vague = true
		return
	}
	g.ours += sl.seen.run
}

// settle says, after the lively threads were looked at, whether all quiet ones had
// slept on when that was asked last.
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

// calm takes a thread that sleeps among the quiet ones.
func (g *group) calm(sl *sleeper) {
	sl.quiet = true
	g.quiet = append(g.quiet, sl)
	g.rest += sl.seen.run
}

// stir takes the quiet thread at the cursor out, whose account was before.
func (g *group) stir(before account) {
	g.quiet[g.cursor].quiet = false
	last := len(g.quiet) - 1
	g.quiet[g.cursor], g.quiet[last] = g.quiet[last], nil
	g.quiet = g.quiet[:last]
	g.rest -= before.run
}

// lookQuiet looks at as many of the quiet threads as are due when each may be
// looked at once in so many ns, and gives how many they were. Looks that were not
// needed while all slept on are there when one of them has run.
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
			g.rest += before.run // the process has still run it
			continue
		}
		sl.lively = now + livelyFor
		l.lively = append(l.lively, sl)
	}
	return looks
}
