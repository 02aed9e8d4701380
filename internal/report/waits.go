package report

import (
	"time"

	"github.com/candid-profiler/candid/internal/attribution"
	"github.com/candid-profiler/candid/internal/profile"
)

// WaitText returns a wait as the header names it.
func WaitText(w *attribution.Wait) string {
	return w.State.String() + " " + duration64(w.Weight) + " in " + clean(w.Name)
}

// headWaits is how many waits the header names.
const headWaits = 3

// A recording of CPU time gets a hint to record waits if it is at least this long and at least this
// idle.
const (
	hintLeast = time.Second // of recording
	hintShare = 20          // less than one part in so many of one CPU was used
)

// waitingHint returns a hint if a recording of CPU time is of a target that hardly used any; "" if
// it did, or if that is not known.
func waitingHint(p *profile.Profile) string {
	d, c := p.Meta.Duration, p.Meta.Cost
	if len(p.Events) != 1 || p.Events[0].Kind != profile.EventCPU || p.Events[0].Unit != "nanoseconds" || d < hintLeast || c.TargetCPU == 0 || c.Samples > 0 {
		return ""
	}
	// On some machines the kernel's account is only as fine as its tick.
	used := max(c.TargetCPU, time.Duration(min(p.EventWeights()[0], 1<<62)))
	if used >= d/hintShare {
		return ""
	}
	return "the target used " + duration(used) + " of CPU in " + duration(d) + ": else it waited, or was not given a CPU. -e wall shows which, and where; 'candid dump' shows who holds which lock"
}

// longestWaits writes what the summary shows instead of the hottest methods.
func (pg *page) longestWaits(s *profile.Selection, rows []attribution.Wait) {
	label := pg.paint(bold, left("waits", itemWidth))
	width := 0
	shown := rows[:min(mostHottest, len(rows))]
	for i := range shown {
		width = max(width, len(shown[i].State.String()))
	}
	for i := range shown {
		r := &shown[i]
		pg.line("%s%s %s  %s", label, left(r.State.String(), width), right(duration64(r.Weight), 7),
			pg.named(r.Name, r.Module, kindColors[r.Kind], pg.room(itemWidth+width+10)))
		label = left("", itemWidth)
	}
}
