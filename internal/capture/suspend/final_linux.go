package suspend

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// final is a thread's account when recording ended.
type final struct {
	account
	at    int64  // ns, when it was read; 0: it was not, because the thread had ended
	late  uint64 // ns that the thread had waited for a CPU
	wants bool   // it runs or wants a CPU
	idle  int64  // ns since it last ran at most, if it wants a CPU; 0: not known
}

const (
	// exactly is how far apart, in ns, the time and an account that belong together may be read, and
	// exactTries how often they are read at most: candid may lose its CPU between the two.
	exactly, exactTries = 100e3, 8
	// aTick is how long ago the scheduler may have accounted the time of a thread that runs, in ns.
	aTick = 10e6
)

// exactAccount returns a thread's account, and when it was read.
func (r *reader) exactAccount(fd int) (at int64, a account, late uint64, ok bool) {
	for try := 1; ; try++ {
		at = clock()
		if a, late, ok = r.accountAndDelay(fd); !ok || try == exactTries || clock()-at < exactly {
			return at, a, late, ok
		}
	}
}

// settle reads the accounts of all threads for the last time. All of a thread's time up to then is
// going to be in samples.
func (e *Engine) settle() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	self := -1
	if !e.blind {
		self, _ = unix.Open("/proc/thread-self/sched", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if self >= 0 {
		defer unix.Close(self)
	}
	for _, p := range e.procs {
		s, ok := e.reader.status(p.stat)
		dead := !ok || s.state == 'Z' || s.state == 'X'
		if dead {
			if tids, err := p.tids(); err != nil || len(tids) <= 1 {
				p.end(ok)
			}
		}
		for _, th := range p.threads {
			at, a, late, ok := e.reader.exactAccount(th.schedFD)
			if !ok {
				continue
			}
			th.last = a.run
			if p.ended || dead && th.tid == p.pid {
				th.seen.run = max(th.seen.run, a.run)
				continue
			}
			th.final = final{account: a, at: at, late: late}
			if sl := th.sleeper; sl != nil && !sl.asleep {
				th.final.see(th, &e.reader, self)
			}
		}
	}
}

// see finds out whether the thread wants a CPU, and for how long it does so at most.
func (f *final) see(th *thread, r *reader, self int) {
	s, ok := th.status(r)
	if f.wants = ok && s.state == 'R'; !f.wants {
		return
	}
	left, ok := parseStart(th.read(r, &th.noteFD, "sched"))
	if !ok {
		return
	}
	if mine, ok := parseStart(r.read(self)); ok {
		// The calling thread's time may have been accounted a tick ago.
		f.idle = max(0, int64(mine-left)) + aTick
	}
}

// end notes that the process has ended. If nobody has reaped it, the kernel still knows what all of
// its threads ran.
func (p *process) end(zombie bool) {
	p.ended = true
	if zombie {
		p.total = max(p.total, cpuClock(p.pid))
	}
}
