package filter

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
)

// Moment is a point in time as users write it: since the beginning (10s, 1m30s, 10), before the end
// (-5s) or by the clock (14:03:20, 2026-03-01T14:03:20Z).
type Moment struct {
	kind  momentKind
	since time.Duration // since the beginning, or if negative relative to the end
	clock time.Time     // in the local zone if the text has none; in year 0 if it has no date
}

type momentKind uint8

const (
	unset momentKind = iota
	sinceStart
	beforeEnd
	byClock
	byDate
)

var clocks = []string{"15:04", "15:04:05"} // fractions of a second are read too

var dates = []string{
	"2006-01-02T15:04:05Z07:00", "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05", "2006-01-02 15:04:05",
	"2006-01-02T15:04", "2006-01-02 15:04",
}

// ParseTime reads a duration as people write it: 90s, 1m30s or, as in sleep, py-spy and
// async-profiler, a number of seconds without a unit.
func ParseTime(s string) (time.Duration, error) {
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		if !(math.Abs(n) < math.MaxInt64/float64(time.Second)) {
			return 0, errors.New("so many seconds are no time; write 30s, 1m30s or a number of seconds")
		}
		return time.Duration(n * float64(time.Second)), nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, errors.New("that is no time; write 30s, 1m30s or a number of seconds")
	}
	return d, nil
}

// ParseMoment reads a Moment; "" is none.
func ParseMoment(s string) (Moment, error) {
	if s == "" {
		return Moment{}, nil
	}
	if d, err := ParseTime(s); err == nil {
		if d < 0 || s[0] == '-' {
			return Moment{kind: beforeEnd, since: d}, nil
		}
		return Moment{kind: sinceStart, since: d}, nil
	}
	for _, form := range clocks {
		if t, err := time.ParseInLocation(form, s, time.Local); err == nil {
			return Moment{kind: byClock, clock: t}, nil
		}
	}
	for _, form := range dates {
		if t, err := time.ParseInLocation(form, s, time.Local); err == nil {
			return Moment{kind: byDate, clock: t}, nil
		}
	}
	return Moment{}, errors.New("no time: write it since the beginning (90s, 1m30s, or seconds), before the end (-10s), or by the clock (14:03:20, 2026-03-01T14:03:20Z)")
}

// in returns the moment since the beginning of the recording, which has length end; otherwise if
// the moment is unset.
func (m Moment) in(p *profile.Profile, end, otherwise time.Duration) (time.Duration, error) {
	start := p.Meta.Start
	switch m.kind {
	case unset:
		return otherwise, nil
	case sinceStart:
		return m.since, nil
	case beforeEnd:
		return end + m.since, nil
	}
	if start.IsZero() {
		return 0, fmt.Errorf("the recording does not say when it began: give the time since its beginning, such as 90s")
	}
	if m.kind == byDate {
		return m.clock.Sub(start), nil
	}
	// The day is that of the beginning, or a later one within the recording.
	day := start.In(m.clock.Location())
	c := m.clock
	for days := 0; ; days++ {
		at := time.Date(day.Year(), day.Month(), day.Day()+days, c.Hour(), c.Minute(), c.Second(), c.Nanosecond(), c.Location()).Sub(start)
		next := time.Date(day.Year(), day.Month(), day.Day()+days+1, c.Hour(), c.Minute(), c.Second(), c.Nanosecond(), c.Location()).Sub(start)
		if at >= 0 || next > end {
			return at, nil
		}
	}
}

// Length returns how long a recording is: at least until its last sample.
func Length(p *profile.Profile) time.Duration {
	return max(p.Meta.Duration, time.Duration(min(p.Latest(), 1<<62)))
}

// began returns when a recording began, if that is known.
func began(p *profile.Profile) string {
	if p.Meta.Start.IsZero() {
		return ""
	}
	return " and began at " + p.Meta.Start.Format("2006-01-02 15:04:05 MST")
}
