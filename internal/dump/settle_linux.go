package dump

import (
	"time"
)

// mostSettling bounds how often threads are read again because they ran between the reading of
// their stacks and that of their locks.
const mostSettling = 6

// settle makes the locks of Java threads consistent with their stacks, and with each other. A
// sleeping thread neither takes nor releases a lock. Therefore the lock owners are read once more
// after all threads have been read, and threads that have run since then are read again, until none
// has. A thread that has run on every attempt is marked as Changed.
func (p *process) settle(out *Process, until time.Time) {
	c := p.look.census
	if c == nil {
		return
	}
	for try := 0; ; try++ {
		p.fresh()
		c.ReadLocks()
		again := p.unsettled(out)
		if len(again) == 0 {
			return
		}
		if try == mostSettling || try > 0 && time.Now().After(until) {
			for _, at := range again {
				j := out.Threads[at].Java
				j.Changed = j.WaitsFor != nil || len(j.Holds) > 0
			}
			return
		}
		var running []int
		for _, at := range again {
			t := &out.Threads[at]
			t.Read, t.Error, t.StoppedUS = ReadNot, "", 0
			if _, state, ok := parseStat(p.files.read(t.TID, "stat")); ok {
				t.State = stateNames[state]
			}
			if !p.asleep(t) {
				running = append(running, at)
			}
		}
		p.running(out, running, until)
	}
}

// unsettled sets the locks of all Java threads from the last read, and returns the threads, by
// index, whose stacks may be from another moment.
func (p *process) unsettled(out *Process) (again []int) {
	was := make([]*Java, len(out.Threads))
	for i := range out.Threads {
		t := &out.Threads[i]
		if was[i] = t.Java; t.locks() {
			p.java(t)
		}
	}
	for i := range out.Threads { // what they wait for tells who holds it
		t := &out.Threads[i]
		if t.Java == nil || t.State == "ended" {
			continue
		}
		t.Java.Holds = p.holds(t.Java.WaitsFor, t.TID)
		switch t.Read {
		case ReadAsleep:
			if p.since(t.TID) != p.look.accounts[t.TID] {
				again = append(again, i)
			}
		case ReadStopped:
			if !sameLocks(was[i], t.Java) {
				again = append(again, i)
			}
			// The rest of it stays as it was when it was stopped.
			was[i].WaitsFor, was[i].Holds = t.Java.WaitsFor, t.Java.Holds
			t.Java = was[i]
		}
	}
	return again
}

// since returns what asleep compares to tell whether a thread has run.
func (p *process) since(tid int) string {
	run := string(p.files.read(tid, "schedstat"))
	if _, turns := parseRun([]byte(run)); turns == 0 {
		run += string(p.files.read(tid, "syscall"))
	}
	return run
}
