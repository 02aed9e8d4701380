package suspend

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
)

const (
	listEvery  = 100e6 // ns between two listings of a process's threads
	listShare  = 200e3 // ns for each thread: a longer list is read less often, unless the number of threads changes
	listAtMost = 10e6  // ns, even if the number changes all the time
	listAgo    = 200e6 // ns that may have passed since the sleep scanner last read whether any has run
	hotFor     = 100e6 // ns that a thread is watched after it last ran
	firstPause = 20e6  // ns that a thread is left alone after it has just become idle
	// runnableLooks is how many threads that have not run lately are checked at a time for being
	// runnable.
	runnableLooks = 256
	longestIdle   = 160e6 // ns that any thread is left alone, if there are few
	// Looking at one idle thread takes lookCost ns; looking at all of them may take lookShare of a
	// CPU.
	lookCost, lookShare = 1500, 0.01
)

// look updates what is known of the targets and their threads.
func (e *Engine) look(now int64) {
	for _, p := range e.adopt() {
		p.lookAtMemory(now)
		e.list1(p, now)
	}
	for _, p := range e.procs {
		p.lookAtMemory(now)
		var st unix.Stat_t
		if unix.Fstat(p.task, &st) != nil {
			st.Nlink = 0
		}
		e.mu.Lock() // sampling threads may find new ones
		threads := len(p.threads)
		e.mu.Unlock()
		since := now - p.listed
		if p.links != 0 && uint64(st.Nlink) != p.links {
			p.churned = now
		}
		if since >= max(listEvery, listShare*int64(threads)) || uint64(st.Nlink) != p.links && since >= listAtMost {
			p.links = uint64(st.Nlink)
			if threads >= fewQuiet {
				// If nothing has run, no thread was started either.
				ran, at, ok := p.asked.since(now - listAgo)
				if !ok {
					ran, at = cpuClock(p.pid), now
				}
				if ran == p.ranThen && ran != 0 && !p.gone {
					p.listed = at
					continue
				}
				p.ranThen, p.total = ran, ran
			}
			e.list1(p, now)
		}
	}
	if e.opts.Children && now-e.looked >= listEvery {
		e.looked = now
		e.findChildren(now)
	}
	e.tellBirths(now)
	e.wakeIdle(now)
	e.sweep(now)
	e.churn(now)
	for pid, p := range e.procs {
		if p.gone && len(p.threads) == 0 {
			p.stacks.close()
			p.close()
			delete(e.procs, pid)
			e.closing = append(e.closing, p)
		}
	}
}

// adopt returns the processes that AddPID left.
func (e *Engine) adopt() []*process {
	e.adding.Lock()
	defer e.adding.Unlock()
	var fresh []*process
	for _, p := range e.added {
		if e.procs[p.pid] != nil {
			p.close()
			continue
		}
		e.procs[p.pid] = p
		fresh = append(fresh, p)
	}
	e.added = e.added[:0]
	return fresh
}

// endingLooks is how often a process must appear to have ended, listAtMost apart, to be taken as
// ended.
const endingLooks = 3

// list1 lists the threads of one process.
func (e *Engine) list1(p *process, now int64) {
	first, before := p.listed == 0 && !p.child, p.listed
	p.listed = now
	if first {
		p.ranFirst = cpuClock(p.pid)
		p.clock = p.ranFirst
	}
	s, ok := e.reader.status(p.stat)
	tids, err := p.tids()
	if s.state == 'Z' && len(tids) <= 1 && p.ending < endingLooks {
		// The process has ended, or a thread other than the first is in exec.
		p.ending++
		p.listed = now - listEvery + listAtMost
		return
	}
	if ok && (errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE)) {
		return // which does not mean that the process has ended
	}
	if p.ending = 0; !ok || err != nil || len(tids) == 0 || s.state == 'Z' && len(tids) == 1 {
		p.end(ok && s.state == 'Z')
		e.mu.Lock()
		p.gone = true
		for _, th := range p.threads {
			th.gone = true
		}
		e.mu.Unlock()
		if e.scanner != nil {
			e.scanner.news.Store(true)
		}
		return
	}
	if s.startCode != p.startCode || s.startStack != p.startStack {
		e.mu.Lock()
		p.startCode, p.startStack = s.startCode, s.startStack
		for _, th := range p.threads {
			th.stack = stackSpan{}
		}
		e.mu.Unlock()
		p.stacks.close()
		p.stacks = stackFinder{}
		p.memory.looked = 0
		e.notices = append(e.notices,
			capture.ProcessEvent{Kind: capture.Exec, Time: uint64(now), PID: uint32(p.pid), TID: uint32(p.pid), Comm: comm(p.pid)},
			// Nobody reports mappings that are made from now on.
			capture.ProcessEvent{Kind: capture.Mmap, Time: uint64(now)})
	}
	p.without = 0
	defer e.noteUnfollowed()
	for _, th := range p.lost {
		e.notices = append(e.notices, th.exit())
	}
	p.lost = nil
	if len(tids) < fewQuiet {
		p.total = cpuClock(p.pid)
	}
	for _, tid := range tids {
		e.mu.Lock()
		known := p.threads[tid] != nil
		e.mu.Unlock()
		if known {
			continue
		}
		open, crowd := p.openThread, first && len(tids) > 64
		if crowd {
			open = p.openIdle
		}
		th, err := open(tid, &e.reader)
		if err != nil {
			if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
				p.without++
			}
			continue
		}
		e.mu.Lock()
		if known = p.threads[tid] != nil; !known {
			p.threads[tid] = th
		}
		e.mu.Unlock()
		if known { // a sampling thread has just found it
			th.close()
			continue
		}
		if first {
			th.sampled, th.from = th.seen.run, th.seen.run
		} else if th.newborn = true; tid != p.pid {
			p.churned = now
			e.notices = append(e.notices, capture.ProcessEvent{Kind: capture.Fork, Time: uint64(now), PID: uint32(p.pid), TID: uint32(tid), Parent: uint32(p.pid)})
		}
		e.follow(th, crowd, before, now)
		if crowd {
			e.retire(th, now)
			continue
		}
		e.heat(th, now)
	}
}

// noteUnfollowed records the greatest number of threads at one time for which there was no
// descriptor.
func (e *Engine) noteUnfollowed() {
	n := 0
	for _, p := range e.procs {
		n += p.without
	}
	e.unfollowed.Store(max(e.unfollowed.Load(), uint64(n)))
}

// heat moves a thread to those that the sampling threads look at.
func (e *Engine) heat(th *thread, now int64) {
	e.mu.Lock()
	e.heatLocked(th, now)
	e.mu.Unlock()
}

func (e *Engine) heatLocked(th *thread, now int64) {
	th.active, th.hot = now, true
	th.idle.Store(false)
	if e.nobody() {
		e.poke()
	}
	e.hot = append(e.hot, th)
}

// stir moves an idle thread that has run to those that the sampling threads look at.
func (e *Engine) stir(th *thread, now int64) {
	if s, ok := th.status(&e.reader); ok {
		th.cpu = s.cpu
	}
	e.heat(th, now)
}

// retire moves a thread to those that are looked at now and then.
func (e *Engine) retire(th *thread, now int64) {
	th.rest()
	th.pause = firstPause
	th.next = now + th.pause
	e.idle = append(e.idle, th)
	th.stirred.Store(false)
	th.idle.Store(true)
}

// follow makes the sleep scanner look at a thread that was born after before.
func (e *Engine) follow(th *thread, crowd bool, before, now int64) {
	if e.scanner == nil {
		return
	}
	if th.newborn {
		e.scanner.add(th, birth(th.started, max(before, e.began), now), account{}, 0, false)
		return
	}
	// The account has just been opened.
	e.scanner.add(th, now, th.seen, th.waited.Load(), crowd)
}

// wakeIdle checks which idle threads have begun to run.
func (e *Engine) wakeIdle(now int64) {
	if e.scanner != nil && !e.scanner.news.Swap(false) {
		return
	}
	longest := max(longestIdle, int64(float64(len(e.idle))*lookCost/lookShare))
	left := e.idle[:0]
	for _, th := range e.idle {
		if th.gone || th.over.Load() {
			e.drop(th, now)
			continue
		}
		if e.scanner != nil {
			// The sleep scanner is the one that looks at idle threads.
			if th.stirred.Swap(false) {
				th.seen, _ = e.reader.account(th.schedFD)
				e.stir(th, now)
			} else {
				left = append(left, th)
			}
			continue
		}
		if now < th.next {
			left = append(left, th)
			continue
		}
		a, ok := e.reader.account(th.schedFD)
		if !ok {
			e.drop(th, now)
			continue
		}
		if a != th.seen {
			th.seen = a
			e.stir(th, now)
			continue
		}
		th.pause = min(2*th.pause, longest)
		th.next = now + th.pause
		left = append(left, th)
	}
	clear(e.idle[len(left):])
	e.idle = left
}

// sweep removes threads that have ended or become idle from those that are watched.
func (e *Engine) sweep(now int64) {
	var gone, still []*thread
	looks := runnableLooks
	e.mu.Lock()
	left := e.hot[:0]
	for _, th := range e.hot {
		switch {
		case th.busy:
			left = append(left, th)
		case th.gone:
			th.hot = false
			gone = append(gone, th)
		case now-th.active > hotFor && e.runnable(th, &looks, now):
			left = append(left, th)
		case now-th.active > hotFor:
			th.hot = false
			still = append(still, th)
		default:
			if !e.inReach(th.cpu) {
				e.track(th, now)
			}
			left = append(left, th)
		}
	}
	clear(e.hot[len(left):])
	e.hot = left
	e.mu.Unlock()
	for _, th := range gone {
		e.drop(th, now)
	}
	for _, th := range still {
		e.retire(th, now)
	}
}

// runnable reports whether a thread wants a CPU, and continues to be watched then: if many do, its
// next turn is over before its account shows it. looks is how many more looks may be done. For wall
// time the sleep scanner looks at all threads anyway.
func (e *Engine) runnable(th *thread, looks *int, now int64) bool {
	if *looks == 0 || e.scanner != nil {
		return false
	}
	*looks--
	s, ok := th.status(&e.reader)
	if ok = ok && s.state == 'R'; ok {
		th.active = now
	}
	return ok
}

// inReach reports whether candid has a sampling thread on a CPU.
func (e *Engine) inReach(cpu int) bool {
	for _, c := range e.cpus {
		if c == cpu {
			return true
		}
	}
	return false
}

// track finds out where a thread went that ran where candid may not run.
func (e *Engine) track(th *thread, now int64) {
	if a, ok := e.reader.account(th.schedFD); ok && a != th.seen {
		th.seen, th.active = a, now
		e.outOfReach.Add(1)
	}
	if s, ok := th.status(&e.reader); ok {
		th.cpu = s.cpu
	}
}

// drop forgets a thread that has ended. Its end is reported after its rest was handed over.
func (e *Engine) drop(th *thread, now int64) {
	th.proc.parting++
	th.exited = now
	// The first thread of a process that has ended has an account until the process is reaped.
	if a, ok := e.reader.account(th.schedFD); ok {
		th.seen.run = max(th.seen.run, a.run)
	}
	e.mu.Lock()
	if ran := th.seen.run - min(th.sampled, th.seen.run); e.owes(th, ran) {
		th.owed = ran
		th.proc.pending += ran
	}
	e.mu.Unlock()
	if e.scanner != nil && th.sleeper != nil {
		th.rest()
		e.scanner.forget(th)
	} else {
		th.close()
		e.part(th)
	}
	e.mu.Lock()
	if th.proc.threads[th.tid] == th {
		delete(th.proc.threads, th.tid)
	}
	e.mu.Unlock()
}
