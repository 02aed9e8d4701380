package main

import (
	"errors"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/candid-profiler/candid/internal/filter"
	"github.com/candid-profiler/candid/internal/record"
)

// seconds is a duration flag: 30s, 1m30s, or, as in py-spy, async-profiler and sleep, a number of
// seconds without a unit.
type seconds struct{ d *time.Duration }

func (s seconds) Set(text string) error {
	d, err := filter.ParseTime(text)
	if err != nil {
		return err
	}
	*s.d = d
	return nil
}

func (s seconds) String() string {
	if s.d == nil || *s.d == 0 {
		return ""
	}
	return s.d.String()
}

func (s seconds) Type() string { return "time" }

// secondsVar defines a duration flag; p holds the default.
func secondsVar(fl *pflag.FlagSet, p *time.Duration, name, short, usage string) {
	fl.VarP(seconds{p}, name, short, usage)
}

// span is a flag for a short duration: 10ms. A number without a unit is refused: some would mean
// milliseconds by it, and async-profiler's users nanoseconds.
type span struct{ d *time.Duration }

func (s span) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("that is no time; write it with its unit, as 10ms or 500us")
	}
	*s.d = d
	return nil
}

func (s span) String() string { return seconds(s).String() }
func (s span) Type() string   { return "time" }

// hertz is a flag for a number of samples per second.
type hertz struct{ hz *float64 }

func (h hertz) Set(text string) error {
	hz, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return errors.New("that is no number of samples per second")
	}
	*h.hz = hz
	return nil
}

func (h hertz) String() string {
	if h.hz == nil {
		return ""
	}
	return strconv.FormatFloat(*h.hz, 'g', -1, 64)
}

func (h hertz) Type() string { return "hz" }

// hertzVar defines the flag for the sampling rate.
func hertzVar(fl *pflag.FlagSet, p *float64) {
	*p = record.DefaultHz
	fl.VarP(hertz{p}, "freq", "F", "samples per second of CPU time: `HZ`")
}
