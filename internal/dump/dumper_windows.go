package dump

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/candid-profiler/candid/internal/attach"
	"github.com/candid-profiler/candid/internal/capture/winsuspend"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/runtimes"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
	"github.com/candid-profiler/candid/internal/winsys"
)

// Dumper is attached to processes and reads their threads on each call of Take. It is used from one
// goroutine.
type Dumper struct {
	o       Options
	stopper *winsuspend.Stopper
	procs   []*process
}

// process is an attached process.
type process struct {
	*attach.Process
	pid    int
	dumper runtimes.ThreadDumper // nil: no runtime that knows its threads
	look   look
}

// look is the state of one dump of a process.
type look struct {
	census runtimes.ThreadDump // nil: no runtime that knows its threads
	dotnet bool                // it is of .NET
	named  map[frameKey][]Frame
	stack  walk.Stack
	syms   []symbol.Frame
	stood  []time.Duration
}

// New attaches to the processes; nothing is stopped. The errors are those of target.Open, or wrap
// capture.ErrUnsupported.
func New(o Options) (*Dumper, error) {
	stopper, err := winsuspend.NewStopper()
	if err != nil {
		return nil, fmt.Errorf("look at the threads of a process: %w", err)
	}
	d := &Dumper{o: o, stopper: stopper}
	files := native.NewFiles()
	for _, pid := range slices.Compact(slices.Sorted(slices.Values(o.PIDs))) {
		a, err := attach.Open(pid, files)
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
		p := &process{Process: a, pid: pid}
		p.dumper, _ = runtimes.Ability[runtimes.ThreadDumper](a.Runtimes)
		d.procs = append(d.procs, p)
	}
	return d, nil
}

// Close releases the processes.
func (d *Dumper) Close() error {
	var err error
	for _, p := range d.procs {
		err = errors.Join(err, p.Close())
	}
	d.procs = nil
	d.stopper.Close()
	return err
}

// Take reads all threads once. If a process has ended meanwhile, the error wraps
// target.ErrNoProcess.
func (d *Dumper) Take() (*Dump, error) {
	out := &Dump{Schema: Schema, Time: time.Now()}
	out.Host, _ = os.Hostname()
	for _, p := range d.procs {
		r, err := p.take(d)
		if err != nil {
			return nil, err
		}
		out.Processes = append(out.Processes, *r)
	}
	out.TookMS = float64(time.Since(out.Time).Microseconds()) / 1000
	return out, nil
}

// take reads all threads of the process.
func (p *process) take(d *Dumper) (*Process, error) {
	ended := func() error {
		return fmt.Errorf("look at process %d: it has ended: %w", p.pid, target.ErrNoProcess)
	}
	if !p.Target.Alive() {
		return nil, ended()
	}
	out := &Process{PID: p.pid, Command: commandLine(p.Target), Runtime: p.Title(), Notes: slices.Clone(p.Notes)}
	p.look = look{named: make(map[frameKey][]Frame)}
	l := &p.look
	if err := p.Native.Refresh(); err != nil {
		return nil, err
	}
	p.fresh()
	threads, err := p.Target.Threads()
	if err != nil {
		return nil, err
	}
	out.Count = len(threads)
	if p.dumper != nil {
		l.census = p.dumper.DumpThreads()
		p.safepoint(out)
	}
	out.Threads = make([]Thread, 0, len(threads))
	for _, th := range threads {
		t := Thread{TID: th.TID, Name: th.Name, CPU: th.CPU, Kind: "native", Read: ReadNot, Frames: []Frame{}}
		if c := l.census; c != nil {
			t.Kind = c.Kind(uint32(th.TID), th.Name)
			if java, ok := c.Name(uint32(th.TID)); ok && java != th.Name {
				t.Name, t.OSName = java, th.Name
			}
		}
		if d.o.Threads == nil || d.o.Threads.MatchString(t.Name) {
			out.Threads = append(out.Threads, t)
		}
	}
	for i := range out.Threads {
		p.read(d, &out.Threads[i])
	}
	p.settle(d, out)
	p.nameOwners(out)
	out.excuse()
	p.divide(out)
	if d.o.JavaFrames {
		out.leaveJava()
	}
	p.async(out, &d.o)
	if !p.Target.Alive() {
		return nil, ended()
	}
	out.Stops = stopsOf(l.stood)
	out.Notes = append(out.Notes, p.Target.Unread()...)
	return out, nil
}

// fresh invalidates the caches of the process's memory.
func (p *process) fresh() {
	p.Target.Memory().Invalidate()
	p.BeginBatch()
}

// read stops a thread for a copy, and walks that.
func (p *process) read(d *Dumper, t *Thread) {
	c, err := d.stopper.Copy(p.pid, uint32(t.TID))
	switch {
	case errors.Is(err, target.ErrNoProcess):
		t.State, t.Error = "ended", "it has ended meanwhile"
		return
	case err != nil:
		t.Error = err.Error()
		return
	}
	t.Read, t.Error, t.End, t.Frames = ReadStopped, "", "", []Frame{}
	t.StoppedUS = float64(c.Stood.Nanoseconds()) / 1000
	p.look.stood = append(p.look.stood, c.Stood)
	switch {
	case c.Suspended:
		t.State = "stopped"
	case c.Waits:
		t.State = sleeping
	case c.Ready:
		t.State = "runnable"
	default:
		t.State = "running"
	}
	st := &p.look.stack
	p.Walker.Walk(&c.Snapshot, p.Target.Memory(), st)
	p.readStack(&c.Snapshot)
	p.Walker.Join(st)
	if st.End != walk.EndComplete {
		t.End = st.End.String()
	}
	for _, f := range st.Frames {
		t.Frames = append(t.Frames, p.frames(f)...)
	}
	t.Syscall = ""
	if len(t.Frames) > 0 && isSystemCall(&t.Frames[0]) {
		t.Syscall = t.Frames[0].Function
	}
	p.java(t)
}

// isSystemCall reports whether a frame is a stub of a system call: NtWaitForSingleObject.
func isSystemCall(f *Frame) bool {
	n := f.Function
	return (f.Module == "ntdll.dll" || f.Module == "win32u.dll") && len(n) > 2 && n[:2] == "Nt" && n[2] >= 'A' && n[2] <= 'Z'
}

// mostSettling bounds how often threads are read again because their locks changed.
const mostSettling = 6

// settle makes the locks of Java threads consistent with their stacks, and with each other: they are
// read once more after all threads have been, and threads whose locks are other ones by then are read
// again. A thread whose locks changed on every attempt is marked.
func (p *process) settle(d *Dumper, out *Process) {
	c := p.look.census
	if c == nil {
		return
	}
	for try := 0; ; try++ {
		p.fresh()
		c.ReadLocks()
		var again []*Thread
		was := make([]*Java, len(out.Threads))
		for i := range out.Threads {
			t := &out.Threads[i]
			if was[i] = t.Java; t.locks() && t.State != "ended" {
				p.java(t)
			}
		}
		for i := range out.Threads { // what they wait for tells who holds it
			t := &out.Threads[i]
			if t.Java == nil || t.State == "ended" {
				continue
			}
			t.Java.Holds = p.holds(t.Java.WaitsFor, t.TID)
			if !sameLocks(was[i], t.Java) {
				again = append(again, t)
			}
			was[i].WaitsFor, was[i].Holds = t.Java.WaitsFor, t.Java.Holds
			t.Java = was[i]
		}
		if len(again) == 0 {
			return
		}
		for _, t := range again {
			if try == mostSettling {
				t.Java.Changed = t.Java.WaitsFor != nil || len(t.Java.Holds) > 0
			} else {
				p.read(d, t)
			}
		}
		if try == mostSettling {
			return
		}
	}
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
	out.Safepoint = &Safepoint{State: s.State, Operation: s.Operation, SinceMS: float64(s.Since(int64(winsys.Clock())).Microseconds()) / 1000}
	for _, tid := range s.WaitsFor {
		out.Safepoint.WaitsFor = append(out.Safepoint.WaitsFor, int(tid))
	}
}
