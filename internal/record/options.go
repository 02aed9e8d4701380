// Package record runs the pipeline: it opens the targets, lets an engine sample
// them, walks and names every stack as it comes, and gives the profile.
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
	"github.com/candid-profiler/candid/internal/filter"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// Options says what to record.
type Options struct {
	PIDs       []int    // processes to record, or
	All        bool     // the whole machine, or
	Command    []string // a program to launch
	Children   bool     // also the processes that targets start
	NoJVMFlags bool     // launch java with the very arguments given
	// Nice lets candid take a better nice level than its targets have while many threads
	// want each CPU. Without it samples are taken less often where candid gets too little.
	Nice bool
	// Output is where what a launched program prints goes; it then has no terminal,
	// and no input. nil: the program has candid's own.
	Output *os.File

	Duration time.Duration // 0: until the targets end or the context does
	Hz       float64       // samples per second of CPU time
	Events   []string      // what to sample by, as package event reads it
	MinSleep time.Duration // capture.Options.MinSleep
	Engine   string        // "auto" or an engine's name
	Filter   *filter.Spec  // what of the samples is kept when recording ends; nil: all

	Version string       // of candid, for the profile
	Log     func(string) // takes one line for the user; never nil after check
	// Launched is called once when the launched program has been started, with
	// the way to pass a signal on to it; may be nil.
	Launched func(signal func(os.Signal) error)
	// Progress is called about five times a second with the samples so far; may be nil.
	Progress func(samples uint64, elapsed time.Duration)
	Live     Live // takes the samples while they come; nil: the profile does
	Beside   Live // takes the samples while they come beside the profile, where there is no Live; may be nil

	walked func(*walk.Walker, *capture.Snapshot, walk.Memory, *walk.Stack) // looks at each walk; for tests
}

// Costs is what a recording cost.
type Costs struct {
	Stats       capture.Stats
	OwnCPU      time.Duration // candid's own CPU time, attaching included
	MaxRSS      uint64        // bytes, candid's own peak
	Target      time.Duration // CPU time that copying took from the targets, as far as it is known
	TargetCPU   time.Duration // CPU time that the targets' threads used, as far as it is known
	FirstWalked time.Duration // from the start of attaching to the first walked sample; 0: none
}

// kept is what a file keeps of it.
func (c *Costs) kept() profile.Cost {
	return profile.Cost{Copying: c.Target, TargetCPU: c.TargetCPU, OwnCPU: c.OwnCPU, Memory: c.MaxRSS, FirstWalked: c.FirstWalked}
}

// Result is what a recording gave.
type Result struct {
	Profile *profile.Profile
	Passed  filter.Passed // of what was recorded, in Profile
	// Filtered is why Options.Filter left nothing of what was recorded, or could not be
	// applied, and then all is left. It wraps an error of package filter.
	Filtered error
	Costs    Costs
	// Ends are those targets given by number that ended while they were recorded, in
	// that order.
	Ends  []End
	Early bool          // all had, before Options.Duration had passed
	child *launch.Child // the launched program; nil: none
}

// End is how a target ended.
type End struct {
	PID     int
	After   time.Duration // since sampling began
	Outcome target.Outcome
}

// Signal sends the launched program a signal, all of its process group if it has
// Options.Output. It may have ended already, then that is the error.
func (r *Result) Signal(sig os.Signal) error {
	if r.child == nil {
		return nil
	}
	return r.child.Signal(sig)
}

// Wait waits for the launched program to end and gives its exit code, 128+n if
// signal n ended it; launched is false if there is none.
func (r *Result) Wait() (code int, launched bool, err error) {
	if r.child == nil {
		return 0, false, nil
	}
	code, err = r.child.Wait()
	return code, true, err
}

// DefaultHz is the Options.Hz of a recording for which no other is asked. It is low
// enough to be left on, and keeps step with nothing.
const DefaultHz = 99

// Limits of Options.Hz.
const (
	MinHz = 0.1
	MaxHz = 20000
)

// ErrUsage is wrapped by errors that say that the options are wrong.
var ErrUsage = errors.New("wrong usage")

// Check says what is wrong with the options; the error wraps ErrUsage.
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
	case o.Engine != "" && o.Engine != "auto" && !slices.Contains(engines.Names(), o.Engine):
		return nil, fmt.Errorf("%w: unknown engine %q: there are auto, %s", ErrUsage, o.Engine, strings.Join(engines.Names(), ", "))
	case o.MinSleep < 0:
		return nil, fmt.Errorf("%w: the least sleep %v is negative", ErrUsage, o.MinSleep)
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
