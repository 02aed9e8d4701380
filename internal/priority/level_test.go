package priority

import (
	"slices"
	"strings"
	"testing"
)

func TestLevels(t *testing.T) {
	for _, c := range []struct{ now, runnable, cpus, want int }{
		{0, 0, 2, 0},
		{0, 15, 2, 0},
		{0, 16, 2, -5},
		{0, 50, 2, -10},
		{0, 1600, 2, -20},
		{0, 1600, 64, -10},
		{0, 500, 2, -20},
		{-20, 300, 2, -20}, // half of the crowd: the level is not given up yet
		{-20, 240, 2, -15},
		{-5, 8, 2, -5},
		{-5, 7, 2, 0},
		{-20, 2, 2, 0},
		{0, 5, 0, 0},
	} {
		if got := next(c.now, c.runnable, c.cpus); got != c.want {
			t.Errorf("next(%d, %d, %d) = %d, want %d", c.now, c.runnable, c.cpus, got, c.want)
		}
	}
}

func TestParseRunnable(t *testing.T) {
	for s, want := range map[string]int{
		"0.20 0.18 0.12 1/80 11206\n":    1,
		"812.20 0.18 0.12 1600/1730 7\n": 1600,
		"":                               -1,
		"0.20 0.18 0.12":                 -1,
		"0 0 0 x/80 1":                   -1,
		"0 0 0 -4/80 1":                  -1,
		"0 0 0 4 1":                      -1,
		"0 0 0 99999999999999999999/1 1": -1,
	} {
		got, ok := parseRunnable([]byte(s))
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
}

// A report names the crowd and, if candid may not change its level, what to do about that.
func TestTold(t *testing.T) {
	s := Report{1600, 2, -20, -20}.String()
	if !strings.Contains(s, "1600 threads want 2 CPUs") || !strings.Contains(s, "nice level -20") || strings.Contains(s, "CAP_SYS_NICE") {
		t.Error(s)
	}
	s = Report{300, 1, -20, 0}.String()
	if !strings.Contains(s, "300 threads want the one CPU") || !strings.Contains(s, "CAP_SYS_NICE") || !strings.Contains(s, "prlimit") {
		t.Error(s)
	}
}

// Reports that come early are passed on when that is allowed, in order and once.
func TestHeld(t *testing.T) {
	var said []int
	held, open := Held(func(t Report) { said = append(said, t.Runnable) })
	held(Report{Runnable: 1})
	held(Report{Runnable: 2})
	if len(said) > 0 {
		t.Errorf("said before: %v", said)
	}
	open()
	held(Report{Runnable: 3})
	if !slices.Equal(said, []int{1, 2, 3}) {
		t.Errorf("said: %v", said)
	}
}
