package record

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/engines"
	"github.com/candid-profiler/candid/internal/capture/launch"
	"github.com/candid-profiler/candid/internal/profile"
)

const goarch = runtime.GOARCH

// Run records until the duration has passed, the targets have ended or ctx is
// done. Whatever was recorded is in the Result, also when an error comes with
// it. A launched program goes on when recording ends: Result.Wait gives its exit.
func Run(ctx context.Context, o Options) (*Result, error) {
	events, err := o.check()
	if err != nil {
		return nil, err
	}
	s := newSession(&o)
	defer s.close()
	period, moved, why := capture.ChooseRate(o.Hz)
	// The same process twice is one target.
	o.PIDs = slices.Compact(slices.Sorted(slices.Values(o.PIDs)))
	opts := capture.Options{PIDs: o.PIDs, All: o.All, Children: o.Children, Period: period, Events: events}
	res := &Result{}
	var child *launch.Child
	if len(o.Command) > 0 {
		argv := o.Command
		if !o.NoJVMFlags {
			var added bool
			if argv, added = withJVMFlags(argv); added {
				o.Log("added " + strings.Join(jvmFlags, " ") + " to the java command, so that inlined code is placed exactly (--no-jvm-flags to leave it alone)")
			}
		}
		if child, err = launch.Start(argv, os.Environ()); err != nil {
			return nil, err
		}
		s.launching = true
		if o.Launched != nil {
			o.Launched(child.Signal)
		}
		opts.PIDs = []int{child.PID}
	} else {
		// Attach before sampling starts, so that the first sample is walked at
		// once and a target that cannot be read is refused with its reason.
		for _, pid := range o.PIDs {
			p, err := s.openProcess(pid)
			if err != nil {
				return nil, err
			}
			s.procs[uint32(pid)] = p
		}
	}
	engine, err := engines.Open(opts, o.Engine)
	if err != nil {
		if child != nil {
			child.Kill()
		}
		return nil, err
	}
	defer engine.Close()
	if moved {
		o.Log(why)
	}
	o.Log(engine.Describe())

	run := ctx
	if o.Duration > 0 {
		var cancel context.CancelFunc
		run, cancel = context.WithTimeout(ctx, o.Duration)
		defer cancel()
	}
	if child != nil {
		if err := child.Release(); err != nil {
			child.Kill()
			return nil, err
		}
		res.child = child
	}
	// Attaching took a while, in which the targets ran on unsampled.
	for _, p := range s.procs {
		p.markCPU()
	}
	s.start = monotonic()
	start := time.Now()
	runErr := engine.Run(run, s)

	for _, p := range s.procs {
		s.flushNames(p)
		s.accountCPU(p)
	}
	prof := s.b.Profile()
	res.Profile = prof
	prof.Meta.Start = start
	prof.Meta.Duration = time.Since(start)
	prof.Meta.Engine = engine.Name()
	prof.Meta.Describe = engine.Describe()
	prof.Meta.Version = o.Version
	prof.Meta.Host, _ = os.Hostname()
	prof.Meta.Command = s.what()
	for _, e := range events {
		prof.Events = append(prof.Events, profile.Event{Name: e.Name, Unit: e.Unit, Period: uint64(period)})
	}
	if err := s.kernel.Err(); err != nil {
		s.note(fmt.Sprintf("kernel functions have no names: %v", err))
	}
	stats := engine.Stats()
	prof.Losses = profile.Losses{Lost: stats.Lost, Throttled: stats.Throttled}
	after := ownUsage()
	res.Costs = Costs{Stats: stats, OwnCPU: after.cpu - s.usage.cpu, TargetCPU: s.targetCPU(), MaxRSS: after.maxRSS, FirstWalked: s.first}
	if c, ok := engine.(interface {
		ProgramCost() (runs, ns uint64, err error)
	}); ok {
		if _, ns, err := c.ProgramCost(); err == nil {
			res.Costs.Target = time.Duration(ns)
		}
	}
	if s.o.Threads != nil {
		res.Profile = profile.Apply(prof, profile.Filter{Thread: s.o.Threads})
	}
	if errors.Is(runErr, context.Canceled) || errors.Is(runErr, context.DeadlineExceeded) {
		runErr = nil
	}
	return res, runErr
}

// what says what was recorded, as people write it.
func (s *session) what() string {
	procs := s.b.Processes()
	switch {
	case s.o.All:
		return "the whole machine"
	case len(procs) == 0:
		return strings.Join(s.o.Command, " ")
	case len(procs) == 1:
		return procs[0].Command
	}
	return fmt.Sprintf("%s and %d more processes", procs[0].Command, len(procs)-1)
}
