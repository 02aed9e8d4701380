package record

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/engines"
	"github.com/candid-profiler/candid/internal/capture/launch"
	"github.com/candid-profiler/candid/internal/filter"
	"github.com/candid-profiler/candid/internal/priority"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/redact"
)

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
	return priority.Keep(func(t priority.Report) {
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
func (o *Options) launch(argv, set []string) (*launch.Child, error) {
	env := withSettings(os.Environ(), set)
	if o.Output != nil {
		return launch.StartApart(argv, env, o.Output)
	}
	return launch.Start(argv, env)
}

// withSettings returns an environment in which some variables, NAME=VALUE, are set, whatever they were.
func withSettings(env, set []string) []string {
	if len(set) == 0 {
		return env
	}
	out := slices.DeleteFunc(slices.Clone(env), func(old string) bool {
		name, _, _ := strings.Cut(old, "=")
		return slices.ContainsFunc(set, func(s string) bool { return strings.HasPrefix(s, name+"=") })
	})
	return append(out, set...)
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

// addTarget begins to record one more process.
func (s *session) addTarget(pid int) error {
	delete(s.bare, uint32(pid))
	if old := s.procs[uint32(pid)]; old != nil { // its number belongs to another process now
		s.forget(old)
	}
	p, err := s.openProcess(pid)
	if err != nil {
		return err
	}
	s.procs[uint32(pid)] = p
	s.follows(pid)
	return nil
}

// follows makes a process one of the targets that were asked for.
func (s *session) follows(pid int) {
	s.o.PIDs = append(s.o.PIDs, pid)
	s.ends.watch([]int{pid})
}

// dropTarget undoes addTarget.
func (s *session) dropTarget(pid int) {
	s.ends.drop(pid)
	s.o.PIDs = slices.DeleteFunc(s.o.PIDs, func(p int) bool { return p == pid })
	if p := s.procs[uint32(pid)]; p != nil {
		s.forget(p)
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
