// Package report says what a profile holds as text for people and as JSON for
// scripts.
package report

import (
	"errors"
	"regexp"

	"github.com/candid-profiler/candid/internal/profile"
)

// View is what a text report shows below its header.
type View string

// The views.
const (
	Methods View = "methods" // self and total of each method
	Tree    View = "tree"    // who calls whom, from the thread's first frame on
	Callers View = "callers" // who called the methods that Options.Callers matches
	Threads View = "threads" // each thread, beside what the kernel says it used
)

// Options say what a report shows.
type Options struct {
	View View // "" is Methods
	// Top is how many rows a list has at most: 0 is 30, less than 0 is all.
	Top int
	// MinShare hides parts of a tree below this share of what is shown, 0 to 1:
	// 0 is 0.005, less than 0 hides none.
	MinShare float64
	Callers  *regexp.Regexp
	Filter   profile.Filter
	// Width is of the terminal in columns; 0 is no limit.
	Width int
	// Color allows escape sequences.
	Color bool
}

// ErrNoTimes says that a range of time was asked of a profile without times.
var ErrNoTimes = errors.New("this profile has no times of single samples (pprof and collapsed files merge equal stacks): it cannot be cut by time")

// ErrNoCallers says that no method was named whose callers to show.
var ErrNoCallers = errors.New("the callers of what? give a regular expression")

func (o Options) withDefaults() Options {
	if o.View == "" {
		o.View = Methods
	}
	if o.Top == 0 {
		o.Top = 30
	}
	if o.MinShare == 0 {
		o.MinShare = 0.005
	}
	return o
}

// selection applies the filter, and refuses what the profile cannot answer.
func selection(p *profile.Profile, o Options) (*profile.Selection, error) {
	if (o.Filter.From > 0 || o.Filter.To > 0) && len(p.Samples) > 0 && !p.HasTimes() {
		return nil, ErrNoTimes
	}
	if o.View == Callers && o.Callers == nil {
		return nil, ErrNoCallers
	}
	return p.Select(o.Filter), nil
}
