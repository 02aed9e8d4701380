// Package record runs the pipeline: it opens the targets, lets an engine sample them, walks and
// names every stack as it comes, and returns the profile.
package record

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/engines"
	"github.com/candid-profiler/candid/internal/capture/event"
	"github.com/candid-profiler/candid/internal/capture/launch"
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/filter"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// Options are what to record, and how.
type Options struct {
	PIDs       []int    // processes to record, or
	All        bool     // the whole machine, or
	Command    []string // a program to launch
	Children   bool     // also the processes that targets start
	NoJVMFlags bool     // launch java with exactly the given arguments
	// DotNetInlines launches Command with the setting that makes .NET record which methods it inlines.
	DotNetInlines bool
	// Heap is how many bytes of candid's heap may be in use when the whole machine is recorded, everything else in
	// the process included, before what was read of programs is given up, the least recently used first. 0: 96 MB.
	Heap int64
	// Unobserved says that only samples are wanted, and nothing that is read besides them: CPU load, memory,
	// collections, libraries, the kernel's account of each thread's CPU time.
	Unobserved bool
	// Nice lets candid take a better nice level than its targets while many threads want each CPU.
	// Without it fewer samples are taken if candid gets too little of a CPU.
	Nice bool
	// Output is where the output of a launched program goes; the program then has no terminal and
	// no input. nil: the program has candid's own.
	Output *os.File

	Duration time.Duration // 0: until the targets end or the context does
	Hz       float64       // samples per second of CPU time
	Events   []string      // events to sample by, in the syntax of package event
	MinSleep time.Duration // capture.Options.MinSleep
	Engine   string        // "auto" or an engine's name
	Branches bool          // continue samples by emulation, and record the branches that are found
	Filter   *filter.Spec  // which samples are kept when recording ends; nil: all

	SaveBroken SaveBroken // without a Dir no stack is saved

	Version string       // of candid, for the profile
	Log     func(string) // receives one line for the user; never nil after check
	// Launched is called once when the launched program has been started, with a function that
	// passes a signal on to it; may be nil.
	Launched func(signal func(os.Signal) error)
	// Attaching is called when a program to launch has been started, before anything of a target is
	// read, and Attached when the engine has been opened: nothing more has to be loaded or started then.
	// Both may be nil.
	Attaching, Attached func()
	// Progress is called about five times a second with the samples so far; may be nil.
	Progress func(samples uint64, elapsed time.Duration)
	Live     Live // receives the samples as they come, instead of the profile; may be nil
	Beside   Live // receives the samples as they come, besides the profile, if Live is nil; may be nil

	// Service names the service of a process and its container, for profile.Process. It is called once for each
	// process that is sampled, and again when the process executes another program, on the goroutine
	// that walks stacks, and must not block; may be nil.
	Service func(Subject) (service, container string)

	walked func(*walk.Walker, *capture.Snapshot, walk.Memory, *walk.Stack) // called for each walk; for tests
}

// Costs are what a recording has cost.
type Costs struct {
	Stats       capture.Stats
	OwnCPU      time.Duration // candid's own CPU time, attaching included
	MaxRSS      uint64        // bytes, candid's own peak
	Target      time.Duration // CPU time that copying took from the targets, as far as known
	TargetCPU   time.Duration // CPU time that the targets' threads used, as far as known
	FirstWalked time.Duration // from the start of attaching to the first walked sample; 0: none
}

// kept returns the part that is stored in a file.
func (c *Costs) kept() profile.Cost {
	return profile.Cost{Copying: c.Target, TargetCPU: c.TargetCPU, OwnCPU: c.OwnCPU, Memory: c.MaxRSS, FirstWalked: c.FirstWalked}
}

// Result is the outcome of a recording.
type Result struct {
	Profile *profile.Profile
	Passed  filter.Passed // how much of what was recorded is in Profile
	// Filtered is why Options.Filter left nothing of what was recorded, or could not be applied; in
	// both cases everything is kept. It wraps an error of package filter.
	Filtered error
	Costs    Costs
	// Ends are the targets given by PID that ended during the recording, in the order of their
	// ends.
	Ends  []End
	Early bool          // all of them ended before Options.Duration had passed
	child *launch.Child // the launched program; nil if there is none
}

// End is how a target ended.
type End struct {
	PID     int
	After   time.Duration // since sampling began
	Outcome target.Outcome
}

// Signal sends a signal to the launched program, or to its whole process group if it has
// Options.Output. If the program has already ended, Signal returns that as an error.
func (r *Result) Signal(sig os.Signal) error {
	if r.child == nil {
		return nil
	}
	return r.child.Signal(sig)
}

// Wait waits for the launched program to end and returns its exit code, 128+n if signal n ended it;
// launched is false if there is none.
func (r *Result) Wait() (code int, launched bool, err error) {
	if r.child == nil {
		return 0, false, nil
	}
	code, err = r.child.Wait()
	return code, true, err
}

// DefaultHz is the Options.Hz of a recording for which no other rate is requested. It is low enough
// to be left on, and is in lockstep with nothing.
const DefaultHz = 99

// Limits of Options.Hz.
const (
	MinHz = 0.1
	MaxHz = 20000
)

// ErrUsage is wrapped by errors that say that the options are wrong.
var ErrUsage = errors.New("wrong usage")

// Check returns what is wrong with the options; the error wraps ErrUsage.
func (o *Options) Check() error {
	_, err := o.check()
	return err
}

func (o *Options) check() ([]capture.Event, error) {
	if o.Log == nil {
		o.Log = func(string) {}
	}
	ways := 0
	for _, w := range []bool{len(o.PIDs) > 0, o.All, len(o.Command) > 0} {
		if w {
			ways++
		}
	}
	switch {
	case ways == 0:
		return nil, fmt.Errorf("%w: nothing to record: give -p PID, -a for the whole machine, or -- COMMAND to launch", ErrUsage)
	case ways > 1:
		return nil, fmt.Errorf("%w: -p, -a and -- COMMAND exclude each other", ErrUsage)
	case !(o.Hz >= MinHz && o.Hz <= MaxHz): // NaN is neither
		return nil, fmt.Errorf("%w: frequency %g Hz is out of range: %g to %d samples per second", ErrUsage, o.Hz, MinHz, MaxHz)
	case o.Branches && cpu.Host() != cpu.AMD64:
		return nil, fmt.Errorf("%w: --branches: only code for x86-64 is emulated: %w", ErrUsage, capture.ErrUnsupported)
	case o.Engine != "" && o.Engine != "auto" && !slices.Contains(engines.Names(), o.Engine):
		return nil, fmt.Errorf("%w: unknown engine %q: there are auto, %s", ErrUsage, o.Engine, strings.Join(engines.Names(), ", "))
	case o.MinSleep < 0:
		return nil, fmt.Errorf("%w: the least sleep %v is negative", ErrUsage, o.MinSleep)
	case o.SaveBroken.Files < 0:
		return nil, fmt.Errorf("%w: %d files of stacks", ErrUsage, o.SaveBroken.Files)
	case o.Duration < 0:
		return nil, fmt.Errorf("%w: duration %v is negative", ErrUsage, o.Duration)
	}
	var events []capture.Event
	for _, name := range o.Events {
		e, err := event.Parse(name)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUsage, err)
		}
		if slices.ContainsFunc(events, func(other capture.Event) bool { return other.Name == e.Name }) {
			return nil, fmt.Errorf("%w: event %s is there twice", ErrUsage, e.Name)
		}
		events = append(events, e)
	}
	switch {
	case len(events) == 0:
		return nil, fmt.Errorf("%w: no event to sample by: -e cpu is the default", ErrUsage)
	case len(events) > maxEvents:
		return nil, fmt.Errorf("%w: %d events at once, more than %d", ErrUsage, len(events), maxEvents)
	}
	return events, nil
}

// maxEvents bounds how many events one recording has.
const maxEvents = 32
