// Package report writes the contents of a profile as text for people and as JSON for scripts.
package report

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/profile"
)

// View is what a text report shows below its header.
type View string

// The views.
const (
	ViewMethods View = "methods" // self and total of each method
	ViewTree    View = "tree"    // who calls whom, from the thread's first frame on
	ViewCallers View = "callers" // who called the methods that Options.Callers matches
	ViewStates  View = "states"  // what threads were doing: running, asleep in which call
	ViewLabels  View = "labels"  // labels of the samples: classes, tenants, sizes
	ViewThreads View = "threads" // each thread, beside the CPU time that the kernel counted
)

// ViewNames returns the names of the views.
func ViewNames() []string {
	return []string{string(ViewMethods), string(ViewTree), string(ViewCallers), string(ViewThreads), string(ViewStates), string(ViewLabels)}
}

// ParseView returns the view of a name.
func ParseView(name string) (View, error) {
	if !slices.Contains(ViewNames(), name) {
		return "", fmt.Errorf("no view is called %q: there are %s", name, strings.Join(ViewNames(), ", "))
	}
	return View(name), nil
}

// Options select what a report shows.
type Options struct {
	View View // "" is ViewMethods
	// Top is how many rows a list or a tree has at most: 0 means 30 for a list and everything for a
	// tree, less than 0 means everything.
	Top int
	// MinPercent sums up the parts of a tree that are less than this percentage of what is shown; 0
	// shows all.
	MinPercent float64
	// Unfold shows each frame by which a thread starts in text of trees; otherwise they are one
	// line.
	Unfold bool
	// ByTotal sorts methods by total instead of self.
	ByTotal bool
	// ByThread shows the methods, tree or callers of each thread by itself.
	ByThread bool
	// NoMethods leaves the hottest methods out of a summary.
	NoMethods bool
	Callers   *regexp.Regexp
	Filter    profile.Filter
	// Services are listed before the rest: those of a store, the one with most CPU time first.
	Services []Service
	// Width is the width of the terminal in columns; 0 means no limit.
	Width int
	// Color allows escape sequences.
	Color bool
}

// ErrNoTimes is the error if a range of time is asked of a profile without times.
var ErrNoTimes = errors.New("this profile has no times of single samples (pprof and collapsed files merge equal stacks): it cannot be cut by time")

// ErrNoCallers is the error if no method was named whose callers to show.
var ErrNoCallers = errors.New("the callers of what? give a regular expression")

func (o Options) withDefaults() Options {
	if o.View == "" {
		o.View = ViewMethods
	}
	if o.Top == 0 && o.View != ViewTree && o.View != ViewCallers {
		o.Top = 30
	}
	return o
}

// selection applies the filter, and returns an error for what the profile cannot answer.
func selection(p *profile.Profile, o Options) (*profile.Selection, error) {
	if (o.Filter.From > 0 || o.Filter.To > 0) && p.SampleCount() > 0 && !p.HasTimes() {
		return nil, ErrNoTimes
	}
	if o.View == ViewCallers && o.Callers == nil {
		return nil, ErrNoCallers
	}
	return p.Select(o.Filter), nil
}
