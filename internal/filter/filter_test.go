package filter

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

func parsed(t *testing.T, w Words) *Spec {
	t.Helper()
	s, err := Parse(w)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestMoments cuts a recording that begins at 12:30:00 UTC and lasts 10 s.
func TestMoments(t *testing.T) {
	local := time.Local
	defer func() { time.Local = local }()
	time.Local = time.UTC
	p := profiletest.Java()
	for _, c := range []struct {
		from, to string
		lo, hi   time.Duration // hi 0: the end
	}{
		{"", "", 0, 0},
		{"2s", "", 2 * time.Second, 0},
		{"1m30s", "", 0, -1},
		{"", "500ms", 0, 500 * time.Millisecond},
		{"-3s", "", 7 * time.Second, 0},
		{"-1h", "", 0, 0},
		{"-3s", "-1s", 7 * time.Second, 9 * time.Second},
		{"2s", "-2s", 2 * time.Second, 8 * time.Second},
		{"12:30:02", "12:30:05.5", 2 * time.Second, 5500 * time.Millisecond},
		{"12:30", "", 0, 0},
		{"12:00", "1s", 0, time.Second},
		{"2026-05-04T12:30:01Z", "2026-05-04 12:30:04", time.Second, 4 * time.Second},
		{"2026-05-04T14:30:01+02:00", "", time.Second, 0},
		{"2026-05-05T12:30:01Z", "", 0, -1}, // the next day
		{"", "12:29", 0, -1},
		{"1s", "100h", time.Second, 100 * time.Hour},
	} {
		f, err := parsed(t, Words{From: c.from, To: c.to}).For(p)
		if c.hi < 0 {
			if !errors.Is(err, ErrEmpty) || errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "10s") {
				t.Errorf("%s to %s: %v", c.from, c.to, err)
			}
			continue
		}
		if err != nil || f.From != c.lo || f.To != c.hi {
			t.Errorf("%s to %s is from %v to %v: %v", c.from, c.to, f.From, f.To, err)
		}
	}
	// Over midnight.
	p.Meta.Start = time.Date(2026, 5, 4, 23, 59, 55, 0, time.UTC)
	if f, err := parsed(t, Words{From: "23:59:58", To: "00:00:02"}).For(p); err != nil || f.From != 3*time.Second || f.To != 7*time.Second {
		t.Errorf("over midnight: %v, %v", f, err)
	}
	for _, w := range []Words{{From: "5s", To: "-6s"}, {From: "00:00:02", To: "23:59:58"}} {
		if _, err := parsed(t, w).For(p); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "no stretch") {
			t.Errorf("%v: %v", w, err)
		}
	}
	p.Meta.Start = time.Time{}
	if _, err := parsed(t, Words{From: "12:30"}).For(p); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "began") {
		t.Error(err)
	}
	for i := range p.Samples {
		p.Samples[i].Time = 0
	}
	if _, err := parsed(t, Words{From: "1s"}).For(p); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "no times") {
		t.Error(err)
	}
}

func TestRefusals(t *testing.T) {
	for text, w := range map[string]Words{
		"--thread":      {Thread: "("},
		"--focus":       {Focus: "*"},
		"--ignore":      {Ignore: "[z-a]"},
		"--thread-kind": {ThreadKinds: []string{"fast"}},
		"--state":       {States: []string{"running", "asleep"}},
		"--from \"5q\"": {From: "5q"},
		"--to":          {To: "25:00"},
		"no stretch":    {From: "2s", To: "2s"},
		"--from -1s":    {From: "-1s", To: "-2s"},
	} {
		if _, err := Parse(w); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v", w, err)
		}
	}
	p := profiletest.Server(500, 2000, 10)
	if _, err := parsed(t, Words{Event: "none"}).For(p); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), p.Events[0].Name) {
		t.Error(err)
	}
}

func TestApply(t *testing.T) {
	p := profiletest.Java()
	out, n, err := parsed(t, Words{Thread: "^GC|^C2"}).Apply(p, 0)
	if err != nil || n.String() != "of 10,000 samples, 1,800 (18.0%) pass" || len(out.Samples) != 1800 {
		t.Errorf("%v, %v, %d", n, err, len(out.Samples))
	}
	// The same as a report selects.
	for _, w := range []Words{
		{ThreadKinds: []string{"java"}}, {Focus: "HashMap", Ignore: "Rules"}, {From: "1s", To: "-1s", States: []string{"running"}}, {},
	} {
		s := parsed(t, w)
		out, n, err := s.Apply(p, 0)
		f, err2 := s.Choose(p)
		if err != nil || err2 != nil || p.Select(f).Chosen != out.Select(profile.Filter{}).Chosen || n.Left != uint64(len(out.Samples)) || n.Left == 0 {
			t.Errorf("%v: %v, %v, %v", s, n, err, err2)
		}
	}
	_, _, err = parsed(t, Words{States: []string{"sleeping", Waits}, Thread: "no one's"}).Apply(p, 0)
	if !errors.Is(err, ErrEmpty) || err.Error() != `no samples: none of 10,000 passes --thread 'no one'\''s' --state sleeping,waits; the states in it are running` {
		t.Error(err)
	}
	server := profiletest.Server(500, 2000, 10)
	out, n, err = parsed(t, Words{Event: server.Events[1].Name}).Apply(server, 0)
	if err != nil || len(out.Events) != 1 || out.Events[0] != server.Events[1] || n.Left != n.All || n.All == 0 || n.All == 2000 {
		t.Errorf("%v, %v, %v", out.Events, n, err)
	}
	if err := out.Check(); err != nil {
		t.Error(err)
	}
	// An empty recording is not the fault of the filter.
	if _, _, err := parsed(t, Words{Thread: "x"}).Apply(profile.NewBuilder().Profile(), 0); err != nil {
		t.Error(err)
	}
}

// Seconds need no unit, as after -d.
func TestMomentsInSeconds(t *testing.T) {
	for text, want := range map[string]Moment{
		"5": {kind: sinceStart, since: 5 * time.Second}, "0.5": {kind: sinceStart, since: 500 * time.Millisecond},
		"-2.5": {kind: beforeEnd, since: -2500 * time.Millisecond}, "0": {kind: sinceStart}, "1m": {kind: sinceStart, since: time.Minute},
	} {
		if m, err := ParseMoment(text); err != nil || m != want {
			t.Errorf("%q: %+v, %v", text, m, err)
		}
	}
	for _, text := range []string{"5q", "NaN", "Inf", "-Inf", "1e300", "-", "+"} {
		if m, err := ParseMoment(text); err == nil {
			t.Errorf("%q is taken: %+v", text, m)
		}
	}
}

func FuzzParseMoment(f *testing.F) {
	for _, s := range []string{"", "10s", "-1m30s", "14:03", "14:03:20.5", "2026-03-01T14:03:20Z", "2026-03-01 14:03", "99999h", "-0s", "5", "-0", "1e9", "NaN"} {
		f.Add(s)
	}
	p := profiletest.Java()
	f.Fuzz(func(t *testing.T, s string) {
		m, err := ParseMoment(s)
		if err != nil {
			return
		}
		if _, err := m.in(p, Length(p), 0); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	})
}

// An event has several names: each of them chooses it.
func TestEventByAnotherName(t *testing.T) {
	p := &profile.Profile{Events: []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds"}, {Name: "cs", Kind: profile.EventCounter, Unit: "count"}}}
	for name, want := range map[string]int{"cs": 1, "context-switches": 1, "task-clock": 0} {
		if f, err := parsed(t, Words{Event: name}).For(p); err != nil || f.Event != want {
			t.Errorf("%s is event %d, %v", name, f.Event, err)
		}
	}
	if _, err := parsed(t, Words{Event: "cycles"}).For(p); !errors.Is(err, ErrUsage) {
		t.Errorf("cycles: %v", err)
	}
}
