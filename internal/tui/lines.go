package tui

import (
	"cmp"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/attribution"
	"github.com/candid-profiler/candid/internal/live"
)

// line is a line of the table: a method, one of its callers, or a thread.
type line struct {
	key    string
	path   []live.Method // from the method of the table outwards
	row    *live.Row     // of a method
	caller *live.Caller  // of a caller
	rails  string        // what is drawn before a caller's name
	opened bool          // its callers are shown
	thread *live.ThreadRow
}

func methodKey(path []live.Method) string {
	var b strings.Builder
	for _, m := range path {
		b.WriteString(m.Name)
		b.WriteByte(0)
		b.WriteString(m.Module)
		b.WriteByte(0)
	}
	return b.String()
}

func (s *Screen) matches(words ...string) bool {
	return s.filter() == nil || slices.ContainsFunc(words, s.filter().MatchString)
}

// folds reports whether a method is hidden because it only starts threads: sorted by total such
// frames would be all that a small terminal shows. Methods that match a filter, or have time of
// their own, are shown.
func (s *Screen) folds(r *live.Row) bool {
	if s.order[methodsPage] != bySecond || s.unfold || s.filter() != nil || r.Self.Weight >= s.table.Shown.Weight/200 {
		return false
	}
	yes, named := attribution.Starts(r.Kind, r.Name, r.Module)
	return yes && named
}

func (s *Screen) methodLines() []line {
	rows := make([]*live.Row, 0, len(s.table.Rows))
	s.folded = 0
	for i := range s.table.Rows {
		r := &s.table.Rows[i]
		switch {
		case !s.matches(r.Name, r.Module):
		case s.folds(r):
			s.folded++
		default:
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, [...]func(a, b *live.Row) int{live.BySelf, live.ByTotal, live.ByName}[s.order[methodsPage]])
	lines := make([]line, 0, len(rows))
	for _, r := range rows {
		path := []live.Method{r.Method}
		l := line{key: methodKey(path), path: path, row: r}
		c, opened := s.table.Callers[r.Method]
		l.opened = opened
		lines = append(lines, l)
		if opened {
			lines = callerLines(lines, c, path, "")
		}
	}
	return lines
}

// callerLines appends the callers of c.
func callerLines(lines []line, c *live.Caller, path []live.Method, rails string) []line {
	for i, child := range c.Children {
		// A straight line of callers is not indented further with every step.
		own, below := "├─", "│ "
		if i == len(c.Children)-1 {
			own, below = "└─", "  "
		}
		if len(c.Children) == 1 && rails != "" {
			own, below = "  ", ""
		}
		way := append(path[:len(path):len(path)], child.Method)
		lines = append(lines, line{
			key: methodKey(way), path: way, caller: child, rails: rails + own, opened: len(child.Children) > 0,
		})
		lines = callerLines(lines, child, way, rails+below)
	}
	return lines
}

func (s *Screen) threadLines() []line {
	rows := make([]*live.ThreadRow, 0, len(s.table.Threads))
	for i := range s.table.Threads {
		if r := &s.table.Threads[i]; s.matches(r.Name) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b *live.ThreadRow) int { return compareThreads(a, b, s.order[threadsPage]) })
	lines := make([]line, len(rows))
	for i, r := range rows {
		lines[i] = line{key: methodKey([]live.Method{{Name: r.Name, Module: itoa(r.TID)}}), thread: r}
	}
	return lines
}

func compareThreads(a, b *live.ThreadRow, by order) int {
	name := cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.TID, b.TID))
	recent := cmp.Or(cmp.Compare(b.Recent.Weight, a.Recent.Weight), cmp.Compare(b.Recent.Samples, a.Recent.Samples))
	since := cmp.Or(cmp.Compare(b.Since.Weight, a.Since.Weight), cmp.Compare(b.Since.Samples, a.Since.Samples))
	switch by {
	case bySecond:
		return cmp.Or(since, recent, name)
	case byName:
		return name
	}
	return cmp.Or(recent, since, name)
}
