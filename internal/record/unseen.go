package record

import (
	"fmt"
	"math"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
)

const (
	// unseenShare is the share of the targets' CPU time that may be missing before that is
	// reported.
	unseenShare = 0.1
	// unseenTime is how much may be missing for other reasons: the kernel counts CPU time in ticks,
	// and not all counts are read at the same moment.
	unseenTime = 100 * time.Millisecond
)

// unseen describes for which part of the targets' CPU time the samples stand; "" if that is nearly
// all of it, as far as chance allows, or not known.
func unseen(p *profile.Profile, target time.Duration) string {
	weights := p.EventWeights()
	for i, e := range p.Events {
		if e.Kind != profile.EventCPU || e.Unit != "nanoseconds" {
			continue
		}
		seen := weights[i]
		all := float64(target)
		chance := 4 * math.Sqrt(all*float64(e.Period))
		if missing := all - float64(seen); seen == 0 || missing < unseenShare*all || missing < chance+float64(unseenTime) {
			return ""
		}
		why := ""
		switch {
		case p.Losses.Throttled > 0:
			why = fmt.Sprintf("; more threads want the CPUs than there are, and in %d periods candid got none or waited for others", p.Losses.Throttled)
		case p.Losses.Lost > 0:
			why = fmt.Sprintf("; %d samples were lost", p.Losses.Lost)
		}
		return fmt.Sprintf("samples stand for %.0f%% of the CPU time that the target used (%v of %v)%s; what it did in the rest is not known, and may be other things",
			100*float64(seen)/all, time.Duration(seen).Round(10*time.Millisecond), target.Round(10*time.Millisecond), why)
	}
	return ""
}
