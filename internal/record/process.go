package record

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/attach"
	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/redact"
	"github.com/candid-profiler/candid/internal/runtimes"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// process is one target: what is needed to walk and name its stacks.
type process struct {
	pid    int
	index  int // in the profile's Processes
	target *target.Process
	code   *attach.Process // what it runs, and what steps over and names that code
	able   able
	in     *interner

	learned int // number of pieces of code that the runtime had learned when the last batch ended

	threads      map[uint32]uint32 // tid -> profile thread
	newThreads   bool              // a thread has come since the runtime was last asked for names
	named        time.Time         // when the runtime was asked
	startCPU     map[int]uint64    // ns by TID when recording began
	used         used              // CPU time of all threads
	fresh        bool              // what is cached has been checked for this batch
	batched      bool              // the batch has samples of the process
	sampled      time.Time         // when a batch that had samples of the process last ended
	thin         bool              // only what must be kept of it is kept
	loaded       time.Time         // when its program was loaded
	runtimeUntil time.Time         // look for a runtime until then
	runtimeNext  time.Time         // but do not look before then
	gone         bool              // the process has ended
	goneAt       time.Time         // when its end was noticed
	unseen       bool              // it had ended before it could be examined
	noGo         bool              // the engine takes it to run no Go code
	followed     bool              // the engine knows where its stacks go on
	missed       bool              // mappings may have been made that nobody reported
	looked       time.Time         // when its mappings were last read
}

// able holds what the runtimes of a process can do; a field is nil if none can.
type able struct {
	names   runtimes.ThreadNamer
	waits   runtimes.LockWaiter
	learns  runtimes.Learner
	follows runtimes.Follower
	tells   runtimes.Observed
}

// ended records that a process has ended.
func (s *session) ended(p *process) {
	if !p.gone {
		p.gone, p.goneAt = true, time.Now()
		s.gone = append(s.gone, p)
	}
}

// newCode returns how many pieces of a runtime's code in the batch had not been seen before.
func (p *process) newCode() int {
	if p.able.learns == nil {
		return 0
	}
	before := p.learned
	p.learned = p.able.learns.Learned()
	return max(p.learned-before, 0)
}

// runtimePatience is how long candid looks for a runtime that is still starting, from the first
// look at a process or from its exec.
const runtimePatience = 10 * time.Second

// late returns how long samples of the process may still come after its end.
func (p *process) late() time.Duration {
	if p.unseen {
		// There are many such processes, and their samples come in one batch, or two.
		return lateSamples / 4
	}
	return lateSamples
}

// hold opens a process, or what is known of it if it has ended.
func (s *session) hold(pid int) (t *target.Process, unseen bool, err error) {
	space := s.spaces.Of(uint32(pid))
	t, err = target.Open(pid)
	switch {
	case err == nil:
		if space != nil {
			t.Remember(space)
		}
	case space == nil:
		return nil, false, err
	case errors.Is(err, target.ErrNoProcess), errors.Is(err, target.ErrZombie):
		return target.Ended(pid, s.comms[uint32(pid)], space), true, nil
	}
	return t, false, err
}

// openProcess attaches to a process. It stops nothing.
func (s *session) openProcess(pid int) (*process, error) {
	t, unseen, err := s.hold(pid)
	if err != nil {
		return nil, err
	}
	p := &process{pid: pid, index: -1, target: t, threads: make(map[uint32]uint32), startCPU: map[int]uint64{}, unseen: unseen}
	if unseen {
		s.ended(p)
	}
	if err = s.load(p); err != nil {
		t.Close()
		space := s.spaces.Of(uint32(pid))
		if unseen || space == nil || t.Alive() && !errors.Is(err, target.ErrZombie) && !errors.Is(err, target.ErrNoProcess) {
			return nil, err
		}
		// The process ended while it was examined.
		t = target.Ended(pid, t.Comm(), space)
		p.target, p.unseen = t, true
		s.ended(p)
		if err := s.load(p); err != nil {
			return nil, err
		}
	}
	p.index = s.b.AddProcess(profile.Process{PID: pid, Command: commandLine(t)})
	s.describeRuntime(p)
	s.beginCPU(p)
	return p, nil
}

// load builds everything that depends on the program that the process runs. It is called again when
// the process executes another one.
func (s *session) load(p *process) error {
	code, err := attach.New(p.target, attach.Options{
		Files: s.files, Finders: s.finders, Cache: s.walkCache, Shared: s.names, Open: p.target.OpenInRoot, PerfMap: p.target.OpenPerfMap, Clock: monotonic,
		Names: func(names *symbol.Native) {
			names.Budget, names.Room = s.budget, s.room.has
			if s.o.All {
				f := lifetimeOf(p, &s.hasty)
				names.Wanted, names.Fleeting = f.wantsLines, f.mayEnd
			}
			if s.o.Live == nil {
				names.Opened = s.nativeModule
			}
		},
	})
	if err != nil {
		return err
	}
	p.loaded = time.Now()
	p.code, p.looked, p.missed = code, p.loaded, false
	p.runtimeUntil, p.runtimeNext = time.Now().Add(runtimePatience), time.Time{}
	p.know(s)
	s.findRuntimes(p)
	return nil
}

// know updates what is known of the program's runtimes.
func (p *process) know(s *session) {
	p.able = able{}
	p.able.names, _ = runtimes.Ability[runtimes.ThreadNamer](p.code.Runtimes)
	p.able.waits, _ = runtimes.Ability[runtimes.LockWaiter](p.code.Runtimes)
	p.able.learns, _ = runtimes.Ability[runtimes.Learner](p.code.Runtimes)
	p.able.follows, _ = runtimes.FollowerOf(p.code.Runtimes)
	p.able.tells, _ = runtimes.Ability[runtimes.Observed](p.code.Runtimes)
	p.in = newInterner(s.b, s.kernel)
	p.in.resolvers, p.in.byRef = p.code.Resolvers()
}

const (
	// runtimeAgain is how soon a process in which no runtime is mapped is examined again, unless it
	// maps something: not all engines report that.
	runtimeAgain = time.Second
	// runtimeSoon is the same for a young process: a runtime that is found has then existed for no
	// longer than the process had existed without it.
	runtimeSoon = 20 * time.Millisecond
)

// runtimePause returns how soon a process is examined again whose program was loaded that long ago.
func runtimePause(loaded time.Duration) time.Duration {
	return min(max(loaded, runtimeSoon), runtimeAgain)
}

// findRuntimes looks for runtimes in the process, as long as one may still be starting.
func (s *session) findRuntimes(p *process) {
	now := time.Now()
	if !p.code.Looking() || p.gone || now.After(p.runtimeUntil) || now.Before(p.runtimeNext) {
		return
	}
	told := p.told()
	if told && !p.code.MayFind() {
		if p.runtimeNext = p.loaded.Add(runtimeAgain); p.runtimeNext.Before(now) {
			p.runtimeUntil = time.Time{} // until it maps something
		}
		return
	}
	found, missing := p.code.Look()
	if len(found) > 0 {
		p.know(s)
		for _, f := range found {
			s.foundRuntime(p, f)
		}
		s.describeRuntime(p)
	}
	for _, m := range missing {
		switch {
		case errors.Is(m.Err, runtimes.ErrAbsent):
			p.runtimeNext = now.Add(runtimePause(now.Sub(p.loaded)))
			if told && now.Sub(p.loaded) >= runtimeAgain {
				p.runtimeUntil = time.Time{} // until it maps something
			}
		case errors.Is(m.Err, runtimes.ErrNotReady):
		case errors.Is(m.Err, target.ErrZombie), errors.Is(m.Err, target.ErrNoProcess), p.target.Memory().Released(), !p.target.Alive():
			// The process is ending: its memory is freed before the rest.
			p.runtimeUntil = time.Time{}
		default:
			p.runtimeUntil = time.Time{}
			s.note(fmt.Sprintf("process %d: its %s cannot be named: %v", p.pid, m.Runtime.Functions, m.Err))
		}
	}
}

// foundRuntime records what follows from a runtime that was found.
func (s *session) foundRuntime(p *process, f attach.Found) {
	if _, ok := f.Instance.(runtimes.Learner); ok {
		s.births.generates(uint32(p.pid))
	}
	if _, ok := f.Instance.(runtimes.ThreadNamer); ok {
		p.newThreads = true
	}
	for _, n := range f.Instance.Notes() {
		s.note(fmt.Sprintf("process %d: %s", p.pid, n))
	}
	if a, ok := f.Instance.(runtimes.Adviser); ok {
		if advice := a.Advice(); advice != "" {
			who := fmt.Sprintf("process %d runs", p.pid)
			if s.many() { // once for all of them
				who = "some " + f.Runtime.Programs + " run"
			}
			s.note(who + " " + advice)
		}
	}
}

// told reports whether the engine has reported every mapping that the process has.
func (p *process) told() bool {
	sp := p.target.Space()
	return sp != nil && sp.Whole && !p.missed
}

// spare tells the engine what it need not look for in the process: a program whose own file only
// loads a runtime has Go code only in libraries, and then that is seen on stacks.
func (s *session) spare(p *process) {
	none := p.code.Launched() && !p.code.Native.RunsGo()
	if s.engine.hints == nil || none == p.noGo {
		return
	}
	// If this fails it is tried again with the next batch.
	if s.engine.hints.RunsGo(p.pid, !none) == nil {
		p.noGo = none
	}
}

// follow tells the engine where the runtime's stacks go on, as soon as the runtime knows.
func (s *session) follow(p *process) {
	if p.able.follows == nil || p.followed || s.engine.follower == nil {
		return
	}
	if how := p.able.follows.Follow(); how != nil && s.engine.follower.Follow(p.pid, how) == nil {
		p.followed = true
	}
}

func (s *session) describeRuntime(p *process) {
	if title := p.code.Title(); title != "" && p.index >= 0 {
		s.b.Processes()[p.index].Runtime = title
	}
}

// refresh makes sure, once a batch, that what is cached about the process is still valid.
func (s *session) refresh(p *process) {
	if p.fresh {
		return
	}
	p.fresh = true
	if !p.batched {
		p.batched = true
		s.batch = append(s.batch, p)
	}
	p.code.Walker.Renew()
	if p.missed {
		p.missed, p.looked = false, time.Now()
		_ = p.code.Native.Refresh() // if this fails it stays as it was
	}
	if p.gone || !p.target.Alive() {
		// Its last samples are walked with what is known: there is nothing left to check that
		// against.
		s.ended(p)
		return
	}
	p.target.Memory().Invalidate()
	s.findRuntimes(p)
	p.code.BeginBatch()
}

// thread returns the profile's index of a thread.
func (s *session) thread(p *process, tid uint32) uint32 {
	if i, ok := p.threads[tid]; ok {
		return i
	}
	name := s.comms[tid]
	if n, err := p.target.ThreadName(int(tid)); err == nil {
		name = n
	}
	if name == "" {
		name = p.target.Comm()
	}
	if name == "" {
		if sp := p.target.Space(); sp != nil {
			name = sp.Name()
		}
		name = cmp.Or(name, "[ended]")
	}
	i := s.b.NewThread(p.pid, int(tid), name)
	p.threads[tid] = i
	p.newThreads = true
	return i
}

// nameThreads asks the runtime for its threads' names, which are longer and more accurate than the
// operating system's.
func (s *session) nameThreads(p *process) {
	if p.able.names == nil || p.gone || !p.newThreads || time.Since(p.named) < 250*time.Millisecond {
		return
	}
	begin := time.Now()
	threads := s.b.Threads()
	names, whole := p.able.names.AskThreads()
	p.newThreads = !whole
	for tid, i := range p.threads {
		th := &threads[i]
		name := names[int(tid)]
		if name != "" && !p.able.names.Passing(name) {
			th.Name = name
		}
		th.Kind = p.kindOf(tid, th, name, whole)
	}
	// With thousands of threads this takes long: then it is done less often.
	p.named = time.Now().Add(20 * time.Since(begin))
}

// kindOf returns what a thread is for, after the runtime was asked for names; whole means that it
// reported all of its threads. A known kind is not withdrawn: a runtime that ends reports no
// thread. A native thread may become the runtime's, though (JNI's AttachCurrentThread).
func (p *process) kindOf(tid uint32, th *profile.Thread, name string, whole bool) string {
	kind := p.able.names.ThreadKind(tid, name, th.OSName, whole)
	switch {
	case th.Kind == runtimes.ThreadUnknown && kind == runtimes.ThreadNative:
		// The thread may have ended, and left the list, before the runtime was asked.
		if _, err := p.target.ThreadName(int(tid)); err != nil {
			return runtimes.ThreadUnknown
		}
	case th.Kind != runtimes.ThreadUnknown && (kind == runtimes.ThreadNative || kind == runtimes.ThreadUnknown || name == "" && th.Kind != runtimes.ThreadNative):
		return th.Kind
	}
	return kind
}

// ranManaged notes that a thread of unknown kind has a runtime's frames on its stack: it may end
// before the runtime is asked.
func (s *session) ranManaged(p *process, thread uint32, st *walk.Stack) {
	if p.able.names == nil {
		return
	}
	if th := &s.b.Threads()[thread]; th.Kind == runtimes.ThreadUnknown && slices.ContainsFunc(st.Frames, isManaged) {
		th.Kind = p.able.names.RunnerKind(th.OSName)
	}
}

func isManaged(f walk.Frame) bool {
	switch f.Kind {
	case walk.KindInterpreted, walk.KindCompiled, walk.KindC1, walk.KindC2, walk.KindInlined, walk.KindNativeMethod,
		walk.KindTier0, walk.KindInstrumented, walk.KindOSR, walk.KindTier1, walk.KindReadyToRun, walk.KindAOT:
		return true
	}
	return false
}

// notice handles an event of a process.
func (s *session) notice(n capture.ProcessEvent) {
	p := s.procs[n.PID]
	switch n.Kind {
	case capture.Exec:
		s.pace.begin()
		s.comms[n.TID] = n.Comm
		delete(s.bare, n.PID) // it can be examined now
		if p == nil {
			return
		}
		s.flushNames(p)
		if err := p.target.Close(); err == nil {
			if t, unseen, err := s.hold(int(n.PID)); err == nil {
				p.target, p.gone, p.unseen = t, false, unseen
				p.noGo, p.followed = false, false // these belonged to the old program
				if unseen {
					s.ended(p)
				}
				proc := &s.b.Processes()[p.index]
				proc.Command, proc.Runtime = commandLine(t), ""
				if err := s.load(p); err != nil {
					s.note(err.Error())
				}
				if s.launched == nil || n.PID != s.launched.pid || s.launched.execs > 1 {
					p.markThreads(p.cpuTimes(nil)) // it has used time before as another program
				}
			} else {
				s.ended(p)
			}
		}
		clear(p.threads)
		p.fresh = false
	case capture.Comm:
		s.comms[n.TID] = n.Comm
		if p != nil {
			if i, ok := p.threads[n.TID]; ok {
				th := &s.b.Threads()[i]
				if th.Name == th.OSName && n.Comm != "" {
					th.Name = n.Comm
				}
				th.OSName = n.Comm
			}
		}
	case capture.Exit:
		delete(s.comms, n.TID)
		delete(s.sleeps, sleepKey{n.TID, false})
		delete(s.sleeps, sleepKey{n.TID, true})
		if p != nil {
			// The kernel may reuse the TID for another thread.
			delete(p.threads, n.TID)
			delete(p.startCPU, int(n.TID))
			// The kernel reports the last thread's end before it tears down the process, which
			// exists for as long as that takes.
			if n.Last || !p.target.Alive() {
				s.ended(p)
			}
		}
	case capture.Mmap:
		if n.PID == 0 {
			for _, p := range s.procs {
				p.missed, p.fresh = true, false
			}
		}
		if p != nil {
			s.mapped(p, &n.Mapping)
		}
	case capture.Fork:
		if len(s.comms) > 1<<17 {
			clear(s.comms)
		}
		if c, ok := s.comms[uint32(n.Parent)]; ok && s.comms[n.TID] == "" {
			s.comms[n.TID] = c
		}
	}
}

// lookAgain is how often the mappings of a process are read as a whole although new mappings are
// reported: nobody reports removals.
const lookAgain = time.Second

// mapped records a mapping that a process made.
func (s *session) mapped(p *process, m *target.Mapping) {
	known := m.End > m.Start
	if known {
		p.code.Native.Map(*m)
	}
	if sp := p.target.Space(); p.unseen && sp != nil && sp.Program == m.Path && known {
		s.b.Processes()[p.index].Command = sp.Program
	}
	if now := time.Now(); !p.unseen && (!known || now.Sub(p.looked) > lookAgain) {
		p.looked = now
		if err := p.code.Native.Refresh(); err != nil && !p.target.Alive() {
			s.ended(p)
		}
	}
	if p.code.Looking() && (!known || p.code.MayFind()) {
		p.runtimeUntil, p.runtimeNext = time.Now().Add(runtimePatience), time.Time{}
		p.fresh = false // samples in this very batch may be of the runtime's code
	}
}

// flushNames reads the names that the runtime knows now, because the process is about to be
// forgotten.
func (s *session) flushNames(p *process) {
	p.target.Memory().Invalidate()
	p.named, p.newThreads = time.Time{}, true
	s.nameThreads(p)
}

// noteMaps says what could not be read of the process, and why names that a runtime wrote of its
// generated code were not used.
func (s *session) noteMaps(p *process) {
	for _, line := range p.target.Unread() {
		s.note(fmt.Sprintf("process %d: %s", p.pid, line))
	}
	if p.code == nil {
		return
	}
	if err := p.code.Names.PerfMapProblem(); err != nil {
		s.note(fmt.Sprintf("process %d: generated code has no names: %v", p.pid, err))
	}
}

// accountCPU stores the kernel's account of each living thread's CPU time with its samples.
func (s *session) accountCPU(p *process, end map[int]uint64) {
	threads := s.b.Threads()
	for tid, i := range p.threads {
		if now, ok := end[int(tid)]; ok && now >= p.startCPU[int(tid)] {
			threads[i].KernelCPU = now - p.startCPU[int(tid)]
		}
	}
}

// commOf returns the operating system's name for a thread that belongs to no target, "" if it has
// ended.
func commOf(pid, tid uint32) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/comm", pid, tid))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(b), "\n")
}

func commandLine(t *target.Process) string {
	const most = 512
	c := redact.Command(t.Cmdline())
	if c == "" {
		c = t.Comm()
	}
	if len(c) > most {
		c = strings.ToValidUTF8(c[:most], "") + "…"
	}
	return c
}

var hostArch = cpu.Host()
