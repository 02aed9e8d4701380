package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/profile"
)

// states writes what threads were doing.
func (pg *page) states(s *profile.Selection, o Options) {
	rows := s.ByState()
	shown := rows
	if o.Top > 0 && len(rows) > o.Top {
		shown = rows[:o.Top]
	}
	pg.line("%s", pg.paint(bold, cellsHead("SHARE", s)+"  SAMPLES  STATE"))
	for _, r := range shown {
		text := r.State.String()
		if r.Syscall != "" {
			text += " in " + clean(r.Syscall)
		}
		pg.line("%s%s  %s", cells(r.Count, s), right(grouped(r.Samples), 9), text)
	}
	if n := len(rows) - len(shown); n > 0 {
		var rest profile.Count
		for _, r := range rows[len(shown):] {
			rest.Add(r.Count)
		}
		pg.line("%s", pg.paint(dim, fmt.Sprintf("%s  in %s more", cells(rest, s), plural(uint64(n), "state", "states"))))
	}
}

// statesOf returns the shares of states, the largest first: "sleeping 80%, running 20%".
func statesOf(counts []profile.Count, all profile.Count) string {
	var order []profile.State
	for i, c := range counts {
		if c.Samples > 0 {
			order = append(order, profile.State(i))
		}
	}
	slices.SortStableFunc(order, func(a, b profile.State) int {
		switch x, y := counts[a].Share(all), counts[b].Share(all); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	var parts []string
	for _, st := range order[:min(3, len(order))] {
		parts = append(parts, fmt.Sprintf("%s %.0f%%", st, 100*counts[st].Share(all)))
	}
	return strings.Join(parts, ", ")
}
