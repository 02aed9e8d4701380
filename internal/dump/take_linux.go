package dump

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/procsyscall"
	"github.com/candid-profiler/candid/internal/capture/suspend"
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/runtimes"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// look is the state of one dump of a process.
type look struct {
	maps   []target.Mapping
	census runtimes.ThreadDump // nil: no runtime that knows its threads
	dotnet bool                // it is .NET's
	named  map[frameKey][]Frame
	kernel map[string][]Frame // by the kernel's text of a stack
	stack  walk.Stack
	copy   []byte
	syms   []symbol.Frame
	stood  []time.Duration
	how    *capture.Follow // where stacks continue; nil: nowhere else, or not known
	others map[int]waiting // where threads wait, if files do not show it

	// accounts are, by thread, its account when it was read asleep: as long as that stays the same
	// the thread has not run.
	accounts map[int]string
}

// stackBytes is how many bytes of a sleeping thread's stack are copied at once; the part beyond is
// read when the walk gets there.
const stackBytes = 64 << 10

// mostTakes bounds how often a process is read because it mapped code in the meantime.
const mostTakes = 3

// take reads all threads of the process. A program that has just begun maps its libraries while it
// is read, so that a thread may already wait in code that the list of modules lacks. Then the
// process is read again.
func (p *process) take(o *Options) (*Process, error) {
	for try := 1; ; try++ {
		out, err := p.takeOnce(o)
		if err != nil {
			return nil, err
		}
		if try == mostTakes || !p.mappedMeanwhile(out) {
			p.async(out, o)
			return out, nil
		}
	}
}

// mappedMeanwhile reports whether a stack ended at an address outside all code, and the process's
// mappings are not those that it was walked with.
func (p *process) mappedMeanwhile(out *Process) bool {
	lost := slices.ContainsFunc(out.Threads, func(t Thread) bool {
		return t.End == walk.EndBadPC.String() || t.End == walk.EndNoRule.String()
	})
	if !lost {
		return false
	}
	maps, err := p.Target.Mappings()
	return err == nil && !slices.Equal(maps, p.look.maps)
}

// takeOnce reads all threads of the process, with the modules that it has at the beginning.
func (p *process) takeOnce(o *Options) (*Process, error) {
	if !p.Target.Alive() {
		return nil, fmt.Errorf("look at process %d: it has ended: %w", p.pid, target.ErrNoProcess)
	}
	out := &Process{PID: p.pid, Command: commandLine(p.Target), Runtime: p.Title(), Notes: slices.Clone(p.Notes)}
	l := &p.look
	*l = look{named: make(map[frameKey][]Frame), kernel: make(map[string][]Frame), accounts: make(map[int]string), copy: l.copy, how: l.how}
	if l.copy == nil {
		l.copy = make([]byte, stackBytes)
	}
	var err error
	if err = p.Native.Refresh(); err == nil {
		l.maps, err = p.Target.Mappings()
	}
	if err != nil {
		return nil, err
	}
	p.fresh()
	p.follow()
	tids, err := p.files.tids()
	if err != nil {
		return nil, fmt.Errorf("list the threads of process %d: %w (%v)", p.pid, target.ErrNoProcess, err)
	}
	out.Count = len(tids)
	if p.dumper != nil {
		l.census = p.dumper.DumpThreads()
		p.safepoint(out)
		if hidden := l.census.Hides(p.Target.NamespacePID()); hidden != "" {
			out.Notes = append(out.Notes, hidden)
		}
	}
	if err := p.lookAtOthers(tids); err != nil {
		return nil, err
	}
	var running []int // indices of threads that were not read yet
	out.Threads = make([]Thread, 0, len(tids))
	for _, tid := range tids {
		t, ok := p.thread(tid)
		if !ok || o.Threads != nil && !o.Threads.MatchString(t.Name) {
			continue
		}
		out.Threads = append(out.Threads, t)
		if !p.asleep(&out.Threads[len(out.Threads)-1]) {
			running = append(running, len(out.Threads)-1)
		}
	}
	until := time.Now().Add(o.Patience)
	p.running(out, running, until)
	p.settle(out, until)
	p.nameOwners(out)
	out.excuse()
	p.divide(out)
	if o.JavaFrames {
		out.leaveJava()
	}
	out.Stops = stopsOf(l.stood)
	out.Notes = append(out.Notes, p.Target.Unread()...)
	return out, nil
}

// safepoint sets the state of the VM's safepoint, nil if there is none.
func (p *process) safepoint(out *Process) {
	s, err := p.dumper.Pause(p.look.census)
	if err != nil {
		out.Notes = append(out.Notes, err.Error())
		return
	}
	if s == nil {
		return
	}
	sp := &Safepoint{State: s.State, Operation: s.Operation}
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) == nil {
		sp.SinceMS = float64(s.Since(now.Nano()).Microseconds()) / 1000
	}
	for _, tid := range s.WaitsFor {
		sp.WaitsFor = append(sp.WaitsFor, int(tid))
	}
	out.Safepoint = sp
}

// follow finds out where stacks continue. If that is known, it is copied with them.
func (p *process) follow() {
	if p.follower == nil || p.stopper == nil || p.look.how != nil {
		return
	}
	if p.look.how = p.follower.Follow(); p.look.how != nil {
		_ = p.stopper.Follow(p.look.how) // it has been made by candid itself
	}
}

// regions copies the memory in which the stack of a waiting thread continues. The caller ensures
// that the thread has not run meanwhile.
func (p *process) regions(snap *capture.Snapshot) []capture.Region {
	if p.look.how == nil {
		return nil
	}
	f := capture.Followed{
		Load:     func(b []byte, addr uint64) bool { return p.Target.Memory().ReadAt(b, addr) == nil },
		Register: func(n uint32) (uint64, bool) { return 0, false },
		SP:       snap.Regs.SP(), Top: snap.StackTop, Most: 256 << 10,
	}
	f.Thread, _ = p.follower.ThreadPointer(snap.TID)
	f.Go(p.look.how)
	return f.Regions
}

// fresh invalidates the caches of the process's memory.
func (p *process) fresh() {
	p.Target.Memory().Invalidate()
	p.BeginBatch()
}

// thread begins the entry of a thread; false if it has ended.
func (p *process) thread(tid int) (Thread, bool) {
	name, state, ok := parseStat(p.files.read(tid, "stat"))
	if !ok || state == 'Z' || state == 'X' || state == 'x' {
		return Thread{}, false
	}
	t := Thread{TID: tid, Name: name, State: stateNames[state], Kind: "native", Read: ReadNot, Frames: []Frame{}}
	if c := p.look.census; c != nil {
		t.Kind = c.Kind(uint32(tid), name)
		if java, ok := c.Name(uint32(tid)); ok && java != name {
			t.Name, t.OSName = java, name
		}
	}
	return t, true
}

// tries is how often a thread that runs while it is read is read again at once.
const tries = 4

// asleep reads a sleeping thread from outside. It returns false if the thread runs, or has run on
// every attempt while it was read.
func (p *process) asleep(t *Thread) bool {
	t.Error = "" // of a try before
	var before, after [512]byte
	account := p.files.open(t.TID, "schedstat")
	defer p.files.shut(account)
	for try := range tries {
		run := p.files.from(account)
		n := copy(before[:], run)
		var turns uint64
		t.CPU, turns = parseRun(run)
		entry := p.files.read(t.TID, "syscall")
		if entry == nil && p.waiters != nil {
			return p.waits(t)
		}
		if turns == 0 {
			n += copy(before[n:], entry)
		}
		pl, ok := procsyscall.Parse(entry)
		if !ok {
			if entry == nil {
				if p.account(t.TID) == "" && p.stopper != nil {
					return false // it is running
				}
				t.Error = p.kept
				p.java(t)
			} else {
				t.Error = "the kernel's account of where it sleeps makes no sense"
			}
			return true
		}
		if pl.Running {
			return false
		}
		if t.State == "stopped" && p.stopper != nil {
			return false // it is in no system call: all of its registers can be read
		}
		if try > 0 {
			p.fresh()
		}
		t.Syscall = callName(pl)
		kernel := p.kernelFrames(p.files.read(t.TID, "stack"))
		p.walkFrom(t, pl)
		p.java(t)
		m := copy(after[:], p.files.from(account))
		if turns == 0 { // the kernel does not count them, so the place is read again
			m += copy(after[m:], p.files.read(t.TID, "syscall"))
		}
		if m == n && bytes.Equal(before[:n], after[:m]) {
			t.Read, p.look.accounts[t.TID] = ReadAsleep, string(before[:n])
			if t.State == "runnable" {
				t.State = "sleeping" // it has fallen asleep since its state was read
			}
			t.Frames = slices.Concat(kernel, t.Frames)
			return true
		}
	}
	return false
}

// walkFrom walks the stack of a thread of which only the place where it entered the kernel is
// known.
func (p *process) walkFrom(t *Thread, pl procsyscall.Place) {
	snap := capture.Snapshot{PID: uint32(p.pid), TID: uint32(t.TID), Flags: capture.InKernel}
	snap.Regs.Arch = cpu.Host()
	snap.Regs.PC = pl.PC
	snap.Regs.SetSP(pl.SP)
	snap.Regs.Known = knownSP
	p.walkWaiting(t, &snap)
}

// walkWaiting copies the stack of a waiting thread whose registers are known, and walks it.
func (p *process) walkWaiting(t *Thread, snap *capture.Snapshot) {
	sp := snap.Regs.SP()
	snap.StackAddr = sp
	if i, ok := slices.BinarySearchFunc(p.look.maps, sp, compareMapping); ok {
		snap.StackTop = p.look.maps[i].End
		n := min(snap.StackTop-sp, stackBytes)
		if b := p.look.copy[:n]; p.Target.Memory().ReadAt(b, sp) == nil {
			snap.Stack = b
		} else {
			snap.Flags |= capture.StackUnread
		}
		if sp+n < snap.StackTop {
			snap.Flags |= capture.StackCut
		}
		snap.Regions = p.regions(snap)
	}
	p.walk(t, snap)
}

// compareMapping finds the mapping that holds an address.
func compareMapping(m target.Mapping, addr uint64) int {
	switch {
	case addr < m.Start:
		return 1
	case addr >= m.End:
		return -1
	}
	return 0
}

// walk walks a copy of a stack and names its frames.
func (p *process) walk(t *Thread, snap *capture.Snapshot) {
	st := &p.look.stack
	p.Walker.Walk(snap, p.Target.Memory(), st)
	p.readStack(snap)
	p.Walker.Join(st)
	t.Frames, t.End = []Frame{}, ""
	if st.End != walk.EndComplete {
		t.End = st.End.String()
	}
	t.Frames = slices.Grow(t.Frames, len(st.Frames)+len(st.Frames)/2)
	for _, f := range st.Frames {
		t.Frames = append(t.Frames, p.frames(f)...)
	}
}

// running stops the running threads, until all have been read or until is reached; it tries at
// least once.
func (p *process) running(out *Process, left []int, until time.Time) {
	for first := true; len(left) > 0 && (first || time.Now().Before(until)); first = false {
		var again []int
		stopped := make(map[int]*copied)
		var why map[int]error
		if p.stopper != nil {
			tids := make([]int, len(left))
			for i, at := range left {
				tids[i] = out.Threads[at].TID
			}
			why = p.stopper.Copy(tids, func(s *capture.Snapshot, stood time.Duration) { stopped[int(s.TID)] = cloned(s, stood) })
		}
		p.fresh()
		for _, at := range left {
			t := &out.Threads[at]
			c, err := stopped[t.TID], why[t.TID]
			switch {
			case c != nil:
				p.standing(t, c)
			case p.asleep(t):
			case err == nil && p.stopper != nil:
				t.State, t.Error = "ended", "it has ended meanwhile"
			case errors.Is(err, suspend.ErrRefused), errors.Is(err, suspend.ErrStuck):
				t.Error = err.Error()
			case errors.Is(err, suspend.ErrAsleep):
				t.Error = "it slept whenever it was to be stopped, and ran whenever it was read"
				again = append(again, at)
			default:
				if err != nil {
					t.Error = err.Error()
				}
				again = append(again, at)
			}
		}
		if left = again; p.stopper == nil {
			time.Sleep(2 * time.Millisecond)
		}
	}
	for _, at := range left {
		if t := &out.Threads[at]; p.stopper == nil {
			t.Error = "it runs, and cannot be stopped: " + p.cannot
		}
	}
}

// copied is a thread that was stopped.
type copied struct {
	snap  capture.Snapshot
	stood time.Duration
}

func cloned(s *capture.Snapshot, stood time.Duration) *copied {
	c := &copied{*s, stood}
	c.snap.Stack, c.snap.Other, c.snap.Kernel = slices.Clone(s.Stack), slices.Clone(s.Other), slices.Clone(s.Kernel)
	return c
}

// standing fills in the entry of a thread that was stopped.
func (p *process) standing(t *Thread, c *copied) {
	t.Read, t.Error, t.Syscall = ReadStopped, "", ""
	if t.State != "stopped" {
		t.State = "running"
	}
	t.StoppedUS = float64(c.stood.Nanoseconds()) / 1000
	p.look.stood = append(p.look.stood, c.stood)
	t.CPU, _ = parseRun(p.files.read(t.TID, "schedstat"))
	p.walk(t, &c.snap)
	p.java(t)
}
