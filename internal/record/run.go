package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/engines"
	"github.com/candid-profiler/candid/internal/capture/launch"
	"github.com/candid-profiler/candid/internal/filter"
	"github.com/candid-profiler/candid/internal/hostinfo"
	"github.com/candid-profiler/candid/internal/priority"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/redact"
	"github.com/candid-profiler/candid/internal/runtimes/supported"
)

// Run records until the duration has passed, the targets have ended or ctx is done. Whatever was
// recorded is in the Result, even if there is an error. A launched program goes on when recording
// ends: Result.Wait returns its exit code.
func Run(ctx context.Context, o Options) (*Result, error) {
	events, err := o.check()
	if err != nil {
		return nil, err
	}
	s := newSession(&o)
	defer s.close()
	s.lines = &lines{log: s.o.Log} // messages come from several goroutines
	s.o.Log = s.lines.say
	period, moved, why := capture.ChooseRate(o.Hz)
	s.period = period
	defer spareThread()()
	// The same process given twice is one target.
	o.PIDs = slices.Compact(slices.Sorted(slices.Values(o.PIDs)))
	opts := capture.Options{PIDs: o.PIDs, All: o.All, Children: o.Children, Period: period, Events: events, MinSleep: o.MinSleep}
	opts.Tell = tellEvery
	if o.Live == nil {
		opts.TellMost = tellMost
	}
	res := &Result{}
	var child *launch.Child
	var argv []string
	if len(o.Command) > 0 {
		argv = o.Command
		if !o.NoJVMFlags {
			for _, r := range supported.Runtimes {
				if r.Launch == nil {
					continue
				}
				var said string
				if argv, said = r.Launch(argv); said != "" {
					o.Log(said + " (--no-jvm-flags to leave it alone)")
				}
			}
		}
		if child, err = o.launch(argv); err != nil {
			return nil, err
		}
		if o.Launched != nil {
			o.Launched(child.Signal)
		}
		opts.PIDs = []int{child.PID}
		opts.Ready = func() error {
			begin, err := child.Release()
			if err == nil {
				s.launch(uint32(child.PID), begin)
			}
			return err
		}
	}
	// Loading the engine takes as long as examining the targets.
	for _, e := range events {
		s.events = append(s.events, profileEvent(e, opts))
	}
	loading := openEngine(opts, o.Engine)
	if child == nil {
		err = s.attach()
	}
	engine, engineErr := loading()
	if err = cmp.Or(err, engineErr); err != nil {
		if child != nil {
			child.Kill()
		}
		if engineErr == nil {
			err = errors.Join(err, engine.Close())
		}
		return nil, err
	}
	closeEngine := sync.OnceValue(engine.Close)
	defer closeEngine()
	// An engine that stops threads to examine them must not make them wait for a CPU of its own.
	if o.Nice || engine.Name() == "suspend" {
		defer s.keepTime()()
	}
	if moved {
		o.Log(why)
	}
	o.Log(engine.Describe())

	// Attaching took a while, in which the targets ran unsampled.
	for _, p := range s.procs {
		p.markCPU(p.cpuTimes(engine))
	}
	var start time.Time
	s.start, start = moment()
	s.ends.start = start
	s.replaced()
	s.begin(engine, start)
	run := ctx
	if o.Duration > 0 {
		var cancel context.CancelFunc
		run, cancel = context.WithTimeout(ctx, o.Duration)
		defer cancel()
	}
	if child != nil && o.Output == nil {
		s.lines.hold()
	}
	runErr := engine.Run(run, s)
	s.lines.release()
	if child != nil {
		if s.launched == nil {
			child.Kill()
			return nil, cmp.Or(runErr, fmt.Errorf("%s ended before it could be recorded", argv[0]))
		}
		res.child = child
	} else {
		all := runErr == nil && run.Err() == nil
		res.Ends, res.Early = s.lastEnds(all), all && o.Duration > 0
	}

	s.hasty.Store(true)
	s.name(true)
	for _, p := range s.procs {
		s.flushNames(p)
		s.noteMaps(p)
		s.accountCPU(p, p.cpuTimes(engine))
	}
	s.observe(true)
	s.told = time.Time{}
	s.liveBatch()
	if n, ok := engine.(capture.Noter); ok {
		for _, line := range n.Notes() {
			s.note(line)
		}
	}
	targetCPU, copying, stats, describe := s.targetCPU(), s.copying(), engine.Stats(), engine.Describe()
	// From here on the memory of the targets' tables and the engine's rings is used to write what
	// was recorded.
	s.letGo()
	_ = closeEngine()
	prof := s.b.Finish()
	res.Profile = prof
	prof.Meta.Duration = time.Since(start)
	if stats.Ended > s.start { // walking what was left may have taken a while
		prof.Meta.Duration = min(prof.Meta.Duration, time.Duration(stats.Ended-s.start))
	}
	prof.Meta.Describe = describe
	prof.Meta.Command = s.what()
	prof.Events = s.events
	if t := s.late.Load(); t != nil {
		s.note(t.String())
	}
	if l, ok := engine.(capture.Losing); ok {
		s.noteLosses(l.Losses())
	}
	if err := s.kernel.Err(); err != nil {
		s.note(fmt.Sprintf("kernel functions have no names: %v", err))
	}
	prof.Losses = profile.Losses{Lost: stats.Lost, Throttled: stats.Throttled}
	res.Costs = Costs{
		Stats: stats, Target: copying, OwnCPU: hostinfo.OwnCPU() - s.usage, TargetCPU: targetCPU, MaxRSS: PeakMemory(), FirstWalked: s.first,
	}
	prof.Meta.Cost = res.Costs.kept()
	if n := unseen(prof, targetCPU); n != "" {
		s.note(n)
	}
	if n := s.skidNote(); n != "" {
		s.note(n)
	}
	if n := s.room.note(); n != "" {
		s.note(n)
	}
	res.filter(s.o.Filter)
	if errors.Is(runErr, context.Canceled) || errors.Is(runErr, context.DeadlineExceeded) {
		runErr = nil
	}
	return res, runErr
}

// moment returns one moment by the clock that samples are timed by and by the time of day: if
// candid waits for a CPU between reading the two, they are read again.
func moment() (mono uint64, day time.Time) {
	best := ^uint64(0)
	for range 8 {
		before := monotonic()
		now := time.Now()
		if apart := monotonic() - before; apart < best {
			best, mono, day = apart, before, now
		}
		if best < uint64(100*time.Microsecond) {
			break
		}
	}
	return mono, day
}

// keepTime keeps candid responsive on a crowded machine until stop is called.
func (s *session) keepTime() (stop func()) {
	return priority.Keep(func(t priority.Told) {
		s.o.Log(t.String())
		if t.Refused() {
			s.late.Store(&t)
		}
	})
}

// filter keeps what was requested of the profile.
func (r *Result) filter(spec *filter.Spec) {
	r.Passed = filter.Passed{All: r.Profile.SampleCount(), Left: r.Profile.SampleCount()}
	if spec == nil {
		return
	}
	p, n, err := spec.Apply(r.Profile, 0)
	switch {
	case errors.Is(err, filter.ErrUsage):
		// It is too late to request another filter.
		r.Filtered = fmt.Errorf("%w; all that was recorded is kept", err)
		return
	case err != nil:
		none := *r.Profile
		none.Samples = nil
		p, n, r.Filtered = &none, filter.Passed{All: r.Passed.All}, err
	}
	r.Profile, r.Passed = p, n
}

// launch starts the program, stopped before its first instruction.
func (o *Options) launch(argv []string) (*launch.Child, error) {
	if o.Output != nil {
		return launch.StartApart(argv, os.Environ(), o.Output)
	}
	return launch.Start(argv, os.Environ())
}

// profileEvent returns the profile's description of an event.
func profileEvent(e capture.Event, o capture.Options) profile.Event {
	out := profile.Event{Name: e.Name, Kind: eventKind(e), Unit: e.Unit, Period: max(e.Period, 1)}
	switch e.Kind {
	case capture.CPUTime, capture.Wall:
		out.Period = uint64(o.Period)
	case capture.OffCPU:
		out.Period = uint64(cmp.Or(o.MinSleep, capture.DefaultMinSleep))
	}
	return out
}

// eventKind returns the profile's kind of an event.
func eventKind(e capture.Event) profile.EventKind {
	switch e.Kind {
	case capture.CPUTime:
		if e.NoUser || e.NoKernel {
			return profile.EventCPUPart
		}
		return profile.EventCPU
	case capture.Wall:
		return profile.EventWall
	case capture.OffCPU:
		return profile.EventOffCPU
	case capture.Tracepoint:
		return profile.EventTracepoint
	case capture.Probe:
		return profile.EventProbe
	case capture.Counter:
		if profile.EventKindOf(e.Name) == profile.EventCycles {
			return profile.EventCycles
		}
		return profile.EventCounter
	}
	return profile.EventOther
}

// openEngine opens the engine in the background; the returned function waits for it.
func openEngine(opts capture.Options, name string) func() (capture.Engine, error) {
	var engine capture.Engine
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		engine, err = engines.Open(opts, name)
	}()
	return func() (capture.Engine, error) {
		<-done
		return engine, err
	}
}

// attach examines the targets before sampling starts, so that the first sample is walked at once
// and a target that cannot be read is refused with its reason.
func (s *session) attach() error {
	s.ends.watch(s.o.PIDs)
	for _, pid := range s.o.PIDs {
		p, err := s.openProcess(pid)
		if err != nil {
			return err
		}
		s.procs[uint32(pid)] = p
	}
	return nil
}

// replaced detects targets that have executed other programs since they were opened: the engine
// reports only what happens once it has them.
func (s *session) replaced() {
	for pid, p := range s.procs {
		if p.gone || !p.target.Replaced() {
			continue
		}
		n := capture.ProcessEvent{Kind: capture.Exec, Time: s.start, PID: pid, TID: pid}
		if name, err := p.target.ThreadName(int(pid)); err == nil {
			n.Comm = name
		}
		s.Notice(n)
		// Only mappings from now on are reported.
		s.Notice(capture.ProcessEvent{Kind: capture.Mmap, Time: s.start})
	}
}

// what returns what was recorded, as people would write it.
func (s *session) what() string {
	procs := s.b.Processes()
	switch {
	case s.o.All:
		return "the whole machine"
	case len(procs) == 0:
		return redact.Command(s.o.Command)
	case len(procs) == 1:
		return procs[0].Command
	}
	more := "1 process more"
	if n := len(procs) - 1; n > 1 {
		more = fmt.Sprintf("%d processes more", n)
	}
	return procs[0].Command + " and " + more
}
