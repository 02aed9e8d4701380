package filter

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

var errClock = errors.New("no time: write it before now (-1h, -30m, -7d), as now, today or yesterday, or by the clock (14:03, 2026-03-01, 2026-03-01T14:03:20Z)")

// ParseClock reads a moment of a history that goes on: before now (-1h30m, -7d, or -90 in seconds), now,
// today and yesterday (their midnight), or by the clock (14:03, the last time that it was that late;
// 2026-03-01; 2026-03-01T14:03:20Z), in the zone of now unless the text has one.
func ParseClock(s string, now time.Time) (time.Time, error) {
	midnight := func(days int) time.Time {
		return time.Date(now.Year(), now.Month(), now.Day()+days, 0, 0, 0, 0, now.Location())
	}
	switch s {
	case "now":
		return now, nil
	case "today":
		return midnight(0), nil
	case "yesterday":
		return midnight(-1), nil
	}
	if strings.HasPrefix(s, "-") {
		d, err := ParseSpan(s[1:])
		if err != nil {
			return now, errClock
		}
		return now.Add(-d), nil
	}
	for _, form := range clocks {
		if c, err := time.ParseInLocation(form, s, now.Location()); err == nil {
			at := func(days int) time.Time {
				return time.Date(now.Year(), now.Month(), now.Day()+days, c.Hour(), c.Minute(), c.Second(), c.Nanosecond(), now.Location())
			}
			if t := at(0); !t.After(now) {
				return t, nil
			}
			return at(-1), nil
		}
	}
	for _, form := range append([]string{"2006-01-02", time.RFC3339Nano}, dates...) {
		if t, err := time.ParseInLocation(form, s, now.Location()); err == nil {
			return t, nil
		}
	}
	return now, errClock
}

// ParseSpan reads a length of time: 90s, 1h30m, 7d, 2w, or a number of seconds.
func ParseSpan(s string) (time.Duration, error) {
	units := map[byte]time.Duration{'d': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	if s != "" && units[s[len(s)-1]] > 0 {
		n, err := strconv.ParseFloat(s[:len(s)-1], 64)
		if v := n * float64(units[s[len(s)-1]]); err == nil && v >= 0 && v < math.MaxInt64 {
			return time.Duration(v), nil
		}
	}
	d, err := ParseTime(s)
	if err != nil || d < 0 {
		return 0, errors.New("no length of time: write 30s, 1h30m, 7d or 2w")
	}
	return d, nil
}
