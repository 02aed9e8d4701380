package report

import (
	"fmt"

	"github.com/candid-profiler/candid/internal/profile"
)

// labels writes the labels of the samples: for each key its values.
func (pg *page) labels(s *profile.Selection, o Options) {
	rows := s.ByLabel()
	if len(rows) == 0 {
		pg.line("The samples have no labels.")
		return
	}
	for len(rows) > 0 {
		key, n := rows[0].Key, 0
		for n < len(rows) && rows[n].Key == key {
			n++
		}
		shown := rows[:n]
		if o.Top > 0 {
			shown = rows[:min(o.Top, n)]
		}
		pg.line("%s", pg.paint(bold, cellsHead("SHARE", s)+"  SAMPLES  "+clean(key)))
		for i := range shown {
			pg.line("%s%s  %s", cells(shown[i].Count, s), right(grouped(shown[i].Samples), 9), labelValue(&shown[i].Label))
		}
		if more := n - len(shown); more > 0 {
			var rest profile.Count
			for i := len(shown); i < n; i++ {
				rest.Add(rows[i].Count)
			}
			pg.line("%s", pg.paint(dim, fmt.Sprintf("%s  in %s more", cells(rest, s), plural(uint64(more), "value", "values"))))
		}
		if rows = rows[n:]; len(rows) > 0 {
			pg.line("")
		}
	}
}

// labelValue returns the value of a label with its unit. Go's heap profiles have sizes without one, as
// "bytes".
func labelValue(l *profile.Label) string {
	if l.IsText || l.Number < 0 {
		return clean(l.Value())
	}
	unit := l.Unit
	if unit == "" {
		unit = l.Key
	}
	switch unit {
	case "bytes", "nanoseconds":
		return amount(uint64(l.Number), unit)
	}
	return clean(l.Value())
}
