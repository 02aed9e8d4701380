package record

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/candid-profiler/candid/internal/attach"
	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/gctune"
	"github.com/candid-profiler/candid/internal/hostinfo"
	"github.com/candid-profiler/candid/internal/kallsyms"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/priority"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/snapshot"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/vmread"
	"github.com/candid-profiler/candid/internal/walk"
)

// session is a running recording. It is the engine's Sink: everything is called from one goroutine.
type session struct {
	o       *Options
	lines   *lines
	between between // what other goroutines want done
	events  []profile.Event
	period  time.Duration // between samples of a clock, as requested
	engine  sampler
	reads   vmread.Ends // when reads of targets' memory are given up

	// The part that is being recorded.
	b       *profile.Builder
	start   uint64 // CLOCK_MONOTONIC ns when it began
	from    origin
	parts   int      // that have ended
	lasting []string // notes that are true of later parts too
	samples uint64
	unseen  uint64 // of those: of processes that had ended before they could be examined
	skids   skids
	ghosts  vanished
	out     delivery

	// The targets.
	procs    map[uint32]*process
	batch    []*process      // processes of which the batch has samples
	gone     []*process      // processes that have ended, oldest first
	bare     map[uint32]bool // processes that could not be opened, or have no program
	comms    map[uint32]string
	spaces   *spaces
	births   *births
	ends     ends
	launched *launched // nil if nothing was launched
	services services
	account  cpuAccount
	observer observer
	branches *branches       // nil if they are not wanted
	broken   *snapshot.Saver // saves stacks that are not complete; nil if they are not wanted

	// Walking and naming.
	files      *native.Files
	names      *symbol.Shared
	finders    *attach.Finders
	kernel     *kallsyms.Resolver
	kernelOnly kernelOnly
	stack      walk.Stack
	walkCache  *walk.WalkCache
	waits      map[uint32]wait // by node, how sleepers with that stack wait
	sleeps     sleeps
	deferred   deferredNaming
	budget     *symbol.Budget
	hasty      atomic.Bool   // recording has ended: source lines that have not been read yet never are
	over       atomic.Uint64 // when the recording ended on time, ns of CLOCK_MONOTONIC; 0: it has not

	// Its own pace and memory.
	began    time.Time // start of attaching
	progress time.Time // when Options.Progress was last called
	pace     batchPace
	slowed   atomic.Pointer[capture.Slowed]  // the last that the engine has told; nil: it samples as requested
	late     atomic.Pointer[priority.Report] // candid gets a CPU late, and may not change that
	gc       gctune.Collector
	memory
}

// sampler is the engine, with what only some engines can do.
type sampler struct {
	capture.Engine
	copying  func() time.Duration
	hints    capture.GoHinter     // nil if the engine does not implement it
	wakeups  capture.WakeupFilter // nil if the engine does not implement it
	follower capture.Follower     // nil if the engine does not implement it
}

// kernelOnly is for threads of which only the kernel's part can be seen.
type kernelOnly struct {
	walker *walk.Walker
	in     *interner
}

// Engines check by type assertion whether the Sink has these.
var (
	_ capture.Sink           = (*session)(nil)
	_ capture.BatchScheduler = (*session)(nil)
	_ capture.Prompter       = (*session)(nil)
	_ capture.Pacer          = (*session)(nil)
	_ capture.SleepSink      = (*session)(nil)
)

func newSession(o *Options) *session {
	b, k := profile.NewBuilder(), kallsyms.NewResolver()
	s := &session{
		o: o, b: b, files: native.NewFiles(), names: symbol.NewShared(), finders: attach.NewFinders(), spaces: newSpaces(), births: newBirths(), kernel: k,
		procs: make(map[uint32]*process), account: cpuAccount{before: make(map[uint32]usedBefore)}, bare: make(map[uint32]bool), comms: make(map[uint32]string), sleeps: make(sleeps),
		began: time.Now(), from: origin{usage: hostinfo.OwnCPU()}, walkCache: walk.NewWalkCache(), kernelOnly: kernelOnly{walk.New(hostArch, nil), newInterner(b, k)},
	}
	if o.Branches {
		s.branches = newBranches()
	}
	s.services = newServices(o.Service)
	s.budget, s.room.all, s.room.heap = symbol.NewBudget(symbolsCPU, forSymbols), o.All, uint64(max(o.Heap, 0))
	if !kallsyms.Visible() {
		k.HideAddresses()
	}
	if o.All {
		s.gc.Garbage = allGarbage
	}
	s.gc.Start()
	if o.All {
		s.names.Limit(int(s.room.share(allShared)))
	}
	return s
}

// Sample walks one snapshot and adds it to the profile.
func (s *session) Sample(snap *capture.Snapshot) {
	if s.launched.isCopy(snap) {
		return
	}
	p := s.process(snap.PID)
	out := profile.Sample{Weight: snap.Weight, Event: snap.Event, State: states[snap.State]}
	if snap.State != capture.Running {
		snap.Kernel = s.kernel.BelowScheduler(snap.Kernel)
	}
	if snap.Syscall != 0 {
		out.Syscall = s.b.Syscall(kallsyms.SyscallName(int(snap.Syscall - 1)))
	}
	if snap.Time > s.start {
		out.Time = snap.Time - s.start
	}
	if snap.Flags&capture.Continued != 0 {
		out.Flags |= profile.Continued
	}
	if p == nil {
		s.bareSample(snap, out)
		return
	}
	if p.able.learns != nil && int(snap.Event) < len(s.events) && s.events[snap.Event].Kind == profile.EventCPU {
		s.pace.use(snap.Weight)
	}
	named := s.walk(p, snap, &out)
	out.End = s.stack.End
	if p.unseen {
		s.unseen++
	}
	out.Flags |= profile.FlagsOf(&s.stack, named && p.in.unnamed(snap.TID))
	if s.broken != nil {
		s.saveBroken(p, snap, &out, named)
	}
	if named {
		if p.able.waits != nil && out.State == profile.StateSleeping {
			s.askRuntime(p, snap.TID, snap.Regs.SP(), out.Node)
		}
		s.sleeps.remember(snap, out)
		s.add(out)
	} else {
		s.putOff(p, snap.TID, snap.Regs.SP(), snap.Sleep, out)
	}
}

// states maps the kernel's states to the profile's.
var states = [...]profile.State{
	capture.Running:         profile.StateRunning,
	capture.Runnable:        profile.StateRunnable,
	capture.Sleeping:        profile.StateSleeping,
	capture.Uninterruptible: profile.StateDisk,
}

// bareSample adds a sample of a kernel thread, or of a process that ended before it could be
// examined: its time is real, and what the kernel did for it can be seen.
func (s *session) bareSample(snap *capture.Snapshot, out profile.Sample) {
	s.ghosts.sample(snap.PID)
	name := s.comms[snap.TID]
	if name == "" {
		if name = commOf(snap.PID, snap.TID); name == "" {
			name = "[ended]"
		}
		s.comms[snap.TID] = name
	}
	out.Thread = s.b.Thread(int(snap.PID), int(snap.TID), name)
	s.serveBare(snap.PID, name)
	only := *snap
	only.Flags |= capture.NoUser
	s.kernelOnly.walker.Walk(&only, nil, &s.stack)
	s.markSkid(snap)
	if snap.Flags&capture.NoUser == 0 {
		s.stack.End = walk.EndUnread
		s.kernelOnly.in.execs(&s.stack)
	}
	out.Node, _ = s.kernelOnly.in.node(snap.TID, &s.stack)
	out.End = s.stack.End
	s.sleeps.remember(snap, out)
	s.add(out)
}

// walk walks and names the stack of one snapshot; false if it cannot be named yet. A fault of
// candid's own costs only that one stack, which is counted as broken and reported, never the
// recording.
func (s *session) walk(p *process, snap *capture.Snapshot, out *profile.Sample) (named bool) {
	defer func() {
		if r := recover(); r != nil {
			s.note(fmt.Sprintf("candid has a fault, please report it: walking a stack of process %d: %v", p.pid, r))
			s.stack.Reset()
			s.stack.End = walk.EndNoRule
			out.Node, named = profile.RootNode, true
		}
	}()
	s.refresh(p)
	out.Thread = s.thread(p, snap.TID)
	p.code.Walker.Walk(snap, p.target.Memory(), &s.stack)
	if s.o.walked != nil {
		s.o.walked(p.code.Walker, snap, p.target.Memory(), &s.stack)
	}
	p.code.Walker.Join(&s.stack)
	s.traceOn(p, snap)
	if s.from.first == 0 && s.parts == 0 {
		s.from.first = time.Since(s.began)
	}
	s.markSkid(snap)
	s.ranManaged(p, out.Thread, &s.stack)
	p.in.execs(&s.stack)
	out.Node, named = p.in.node(snap.TID, &s.stack)
	return named
}

// process returns the target with this PID, and attaches to it at its first sample.
func (s *session) process(pid uint32) *process {
	if pid == 0 {
		return nil // the process is not visible in candid's pid namespace
	}
	if p := s.procs[pid]; p != nil {
		return p
	}
	if s.bare[pid] {
		return nil
	}
	p, err := s.openProcess(int(pid))
	if err != nil {
		s.bare[pid] = true
		s.services.refused(pid, err)
		s.ghosts.refused(pid, err)
		if !errors.Is(err, target.ErrNoProcess) && !errors.Is(err, target.ErrZombie) && !errors.Is(err, target.ErrKernelThread) {
			s.note(err.Error())
		}
		return nil
	}
	s.procs[pid] = p
	return p
}

// Notice handles an event of a target.
func (s *session) Notice(n capture.ProcessEvent) {
	if n.PID == 0 && n.Kind != capture.Mmap {
		return // it stands for many processes that are not visible in candid's pid namespace
	}
	if n.Kind == capture.Fork && n.PID != n.Parent {
		// The PID belongs to a new process now.
		delete(s.bare, n.PID)
		delete(s.ghosts.pids, n.PID)
		if p := s.procs[n.PID]; p != nil {
			s.forget(p)
		}
		if len(s.account.before) > 1<<16 {
			clear(s.account.before)
		}
		s.account.before[n.PID] = usedBefore{}
	}
	if s.launched != nil && n.Kind == capture.Exec && n.PID == s.launched.pid {
		s.launched.execs++
	}
	if n.Last {
		s.ends.tell(int(n.PID), n.Outcome)
	}
	s.spaces.notice(&n)
	s.services.notice(&n)
	if !s.births.prompted.Load() {
		s.births.notice(&n, time.Now())
	}
	s.notice(n)
}

// BatchEnd marks everything that was read from the targets as stale.
func (s *session) BatchEnd() {
	now := time.Now()
	news, bare := 0, false
	for _, p := range s.batch {
		s.nameThreads(p)
		s.spare(p)
		s.follow(p)
		news += p.newCode()
		bare = bare || p.able.learns == nil
		p.fresh, p.batched, p.thin, p.sampled = false, false, false, now
		if len(p.in.keys) > maxKeys {
			p.in = p.in.anew(s.b)
		}
	}
	clear(s.batch)
	s.batch = s.batch[:0]
	s.forgetGone(now)
	if s.engine.wakeups != nil {
		s.births.tell(s.engine.wakeups)
	}
	s.pace.batch(now, news)
	s.spaces.sweep(now)
	s.thin(now)
	if now.Sub(s.deferred.tried) >= tryEvery {
		s.name(false)
	}
	s.pace.bare = bare
	if bare || len(s.deferred.stacks) > 0 {
		s.pace.wantSoon(now)
	}
	s.observe(false)
	s.countAll()
	s.lookEnds(0)
	s.liveBatch()
	if s.o.Progress != nil && time.Since(s.progress) > 200*time.Millisecond {
		s.progress = time.Now()
		s.o.Progress(s.samples, time.Since(s.began))
	}
	s.between.run()
}

// lateSamples is how long after the end of a process was seen its samples may still come.
const lateSamples = 2 * time.Second

// forgetGone forgets the processes that ended so long ago that no sample of them can still arrive.
func (s *session) forgetGone(now time.Time) {
	left := s.gone[:0]
	for _, p := range s.gone {
		switch {
		case !p.gone || s.procs[uint32(p.pid)] != p: // it goes on as another program, or has been forgotten
		case now.Sub(p.goneAt) > p.late() && s.deferred.of[p] == 0:
			s.forget(p)
		default:
			left = append(left, p)
		}
	}
	clear(s.gone[len(left):])
	s.gone = left
}

// forget drops a process that has ended: its PID may be reused, and on a busy machine there are
// many.
func (s *session) forget(p *process) {
	s.nameAllOf(p)
	s.noteMaps(p)
	p.countCPU()
	s.account.ended += p.used.sum()
	p.target.Close()
	delete(s.procs, uint32(p.pid))
	delete(s.observer.of, p)
}

// note keeps a line about what was not available, once.
func (s *session) note(line string) {
	addNote(s.b.Meta(), line)
	if len(s.lasting) < mostNotes && !slices.Contains(s.lasting, line) {
		s.lasting = append(s.lasting, line)
	}
}

// letGo frees what only walking and naming need.
func (s *session) letGo() {
	s.close()
	clear(s.procs)
	s.batch, s.gone = nil, nil
	s.walkCache, s.files, s.names, s.spaces = nil, nil, nil, nil
	s.kernelOnly, s.account.before = kernelOnly{}, nil
	s.waits, s.sleeps, s.deferred, s.observer.of = nil, nil, deferredNaming{}, nil
	clear(s.comms)
}

// close closes the targets.
func (s *session) close() {
	s.gc.Stop()
	s.kernel.Close()
	s.ends.close()
	for _, p := range s.procs {
		p.target.Close()
	}
}
