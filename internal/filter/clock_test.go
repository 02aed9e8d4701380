package filter

import (
	"testing"
	"time"
)

func TestParseClock(t *testing.T) {
	zone := time.FixedZone("here", 2*3600)
	now := time.Date(2026, 3, 1, 14, 30, 0, 0, zone)
	for text, want := range map[string]time.Time{
		"now":                       now,
		"-1h":                       now.Add(-time.Hour),
		"-1h30m":                    now.Add(-90 * time.Minute),
		"-90":                       now.Add(-90 * time.Second),
		"-7d":                       now.Add(-7 * 24 * time.Hour),
		"-2w":                       now.Add(-14 * 24 * time.Hour),
		"-1.5d":                     now.Add(-36 * time.Hour),
		"today":                     time.Date(2026, 3, 1, 0, 0, 0, 0, zone),
		"yesterday":                 time.Date(2026, 2, 28, 0, 0, 0, 0, zone),
		"14:03":                     time.Date(2026, 3, 1, 14, 3, 0, 0, zone),
		"14:31":                     time.Date(2026, 2, 28, 14, 31, 0, 0, zone),
		"2026-02-27":                time.Date(2026, 2, 27, 0, 0, 0, 0, zone),
		"2026-02-27 11:00":          time.Date(2026, 2, 27, 11, 0, 0, 0, zone),
		"2026-02-27T11:00:05Z":      time.Date(2026, 2, 27, 11, 0, 5, 0, time.UTC),
		"2026-02-27T11:00:05.5Z":    time.Date(2026, 2, 27, 11, 0, 5, 5e8, time.UTC),
		"2026-02-27T11:00:05-07:00": time.Date(2026, 2, 27, 18, 0, 5, 0, time.UTC),
	} {
		if got, err := ParseClock(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "90s", "1h", "-", "--1h", "-x", "-1e400d", "soon", "25:00", "2026-13-01", "-9999999999w"} {
		if got, err := ParseClock(text, now); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
