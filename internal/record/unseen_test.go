package record

import (
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
)

// CPU time that the samples do not stand for is reported, if it is more than chance.
func TestUnseen(t *testing.T) {
	const period = uint64(10 * time.Millisecond)
	for _, c := range []struct {
		name             string
		samples          int
		target           time.Duration
		throttled, lost  uint64
		says, saysBeside string
	}{
		{"all", 1000, 10 * time.Second, 0, 0, "", ""},
		{"nearly all", 930, 10 * time.Second, 50, 0, "", ""},
		{"a third", 310, 10 * time.Second, 1000, 0, "stand for 31% of the CPU time", "3.1s of 10s"},
		{"periods", 310, 10 * time.Second, 1234, 0, "stand for 31%", "in 1234 periods"},
		{"lost", 500, 10 * time.Second, 0, 500, "stand for 50%", "500 samples were lost"},
		{"hidden", 500, 10 * time.Second, 0, 0, "stand for 50%", "what it did in the rest"},
		{"chance", 5, 100 * time.Millisecond, 0, 0, "", ""},
		{"more than all", 1200, 10 * time.Second, 0, 0, "", ""},
		{"not known", 100, 0, 0, 0, "", ""},
		{"none", 0, 10 * time.Second, 0, 0, "", ""}, // the command says why there are none
	} {
		// Long recordings keep only the sums of most samples.
		for _, summed := range []bool{false, true} {
			b := profile.NewBuilder()
			for i := range c.samples {
				if summed && i == c.samples/2 {
					b.SumUp()
				}
				b.Add(profile.Sample{Event: 1, Weight: period})
				b.Add(profile.Sample{Event: 0, Weight: period})
			}
			p := b.Finish()
			p.Events = []profile.Event{{Name: "wall", Kind: profile.EventWall, Unit: "nanoseconds", Period: period}, {Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: period}}
			p.Losses = profile.Losses{Lost: c.lost, Throttled: c.throttled}
			said := unseen(p, c.target)
			if (said == "") != (c.says == "") || !strings.Contains(said, c.says) || !strings.Contains(said, c.saysBeside) {
				t.Errorf("%s, summed up %v: %q", c.name, summed, said)
			}
		}
	}
	p := &profile.Profile{Events: []profile.Event{{Name: "page-faults", Kind: profile.EventCounter, Unit: "count"}}, Samples: make([]profile.Sample, 3)}
	if said := unseen(p, time.Hour); said != "" {
		t.Errorf("of no CPU time: %q", said)
	}
}
