package record

import (
	"errors"
	"fmt"
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
	follow       *capture.Follow   // what the engine knows of where its stacks go on
	missed       bool              // mappings may have been made that nobody reported
	unlisted     bool              // some were reported since looked
	looked       time.Time         // when its mappings were last read
	tracing      *tracing          // nil until a sample is continued by emulation
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
		t.EndReads(&s.reads)
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
	s.serve(p)
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
			if s.o.Live == nil && !s.o.Unobserved {
				names.Opened = s.nativeModule
			}
		},
	})
	if err != nil {
		return err
	}
	p.loaded = time.Now()
	p.code, p.looked, p.missed, p.unlisted, p.tracing = code, p.loaded, false, true, nil
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
	if p.gone || !p.target.Alive() || p.target.Memory().Released() {
		// Its last samples are walked with what is known: there is nothing left to check that
		// against.
		s.ended(p)
		return
	}
	p.target.Memory().Invalidate()
	s.confirmBranches(p)
	s.findRuntimes(p)
	s.listImages(p)
	p.code.BeginBatch()
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
				p.noGo, p.follow = false, nil // these belonged to the old program
				if unseen {
					s.ended(p)
				}
				proc := &s.b.Processes()[p.index]
				proc.Command, proc.Runtime = commandLine(t), ""
				s.serve(p)
				if err := s.load(p); err != nil {
					s.note(err.Error())
				}
				if s.launched == nil || n.PID != s.launched.pid || s.launched.execs > 1 {
					p.markThreads(s.cpuTimes(p, nil)) // it has used time before as another program
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
		s.serve(p)
	}
	p.unlisted = true
	if now := time.Now(); !p.unseen && (!known || now.Sub(p.looked) > lookAgain) {
		p.looked, p.unlisted = now, false
		if err := p.code.Native.Refresh(); err != nil && !p.target.Alive() {
			s.ended(p)
		}
	}
	if p.code.Looking() && (!known || p.code.MayHold(*m)) {
		p.runtimeUntil, p.runtimeNext = time.Now().Add(runtimePatience), time.Time{}
		p.fresh = false // samples in this very batch may be of the runtime's code
	}
}

// listImages reads the mappings as a whole, soon after some were reported, if the program's runtime
// loads images: code that it has read into memory belongs to a file of which only the headers are
// mapped, and nobody reports mappings without code.
func (s *session) listImages(p *process) {
	if !p.unlisted || p.unseen || !p.code.Loads() {
		return
	}
	if now := time.Now(); now.Sub(p.looked) >= runtimePause(now.Sub(p.loaded)) {
		p.looked, p.unlisted = now, false
		_ = p.code.Native.Refresh() // if this fails it stays as it was
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
	if n := p.code.Native.Computed(); n > 0 {
		ranges := "1 range"
		if n > 1 {
			ranges = fmt.Sprintf("%d ranges", n)
		}
		s.note(fmt.Sprintf("process %d: the program computes the unwind data of %s of its generated code itself (RtlInstallFunctionTableCallback): only Windows can ask for it, so callers were found by reading the code", p.pid, ranges))
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
