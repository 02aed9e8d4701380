package diff

import (
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
)

// Two profiles may together have more labels than one: the joined one says so.
func TestJoinTooManyLabels(t *testing.T) {
	side := func(first int64) *profile.Profile {
		b := profile.NewBuilder()
		b.Profile().Events = []profile.Event{profile.NamedEvent("cpu", "nanoseconds", 1)}
		th := b.Thread(1, 1, "main")
		for i := range int64(40_000) {
			call, _ := b.Labeled("read", []profile.Label{{Key: "span", Number: first + i}})
			b.Add(profile.Sample{Weight: 1, Thread: th, Syscall: call})
		}
		return b.Finish()
	}
	base, new := side(0), side(30_000)
	p, _ := Join(base, new, false)
	if len(p.Meta.Notes) != 1 || !strings.Contains(p.Meta.Notes[0], " 8561 samples lost") { // of 70,000 labels all but 61,439
		t.Errorf("the notes are %q", p.Meta.Notes)
	}
	labeled := 0
	p.Each(func(s *profile.Sample, _ uint64) {
		if p.Syscalls[s.Syscall] != "read" {
			t.Fatalf("%+v is in no system call", s)
		}
		labeled += len(p.LabelsOf(s))
	})
	if labeled != 80_000-8561 {
		t.Errorf("%d samples have labels", labeled)
	}
	if p, _ = Join(base, base, false); p.Meta.Notes != nil {
		t.Errorf("the notes are %q", p.Meta.Notes)
	}
}
