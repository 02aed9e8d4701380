package tui

import (
	"fmt"

	"github.com/candid-profiler/candid/internal/live"
	"github.com/candid-profiler/candid/internal/profile"
)

const (
	stateWidth = 9
	tidWidth   = 8
)

// threadLayout is the widths of columns; 0 means absent.
type threadLayout struct {
	recent, since, state, spark, name int
	share                             bool // of the hottest method
}

func (s *Screen) threadLayout() threadLayout {
	l := threadLayout{recent: selfWidth}
	switch {
	case s.width < 60:
		l.name = max(s.width-selfWidth-tidWidth-3, 8)
	case s.width < 80:
		l.spark, l.name = 10, 14
	case s.width < 110:
		l.state, l.spark, l.name = stateWidth, 10, 18
	case s.width < 160:
		l.since, l.state, l.spark, l.name, l.share = totalWidth, stateWidth, 20, 26, true
	default:
		l.since, l.state, l.spark, l.name, l.share = totalWidth, stateWidth, 40, 40, true
	}
	if l.since == 0 && s.order[threadsPage] == bySecond {
		// The column that the table is sorted by must be visible.
		l.recent, l.since = 0, totalWidth
	}
	if s.o.State == nil && s.table.CPUTime() {
		l.state = 0
	}
	return l
}

func (s *Screen) threadColumns() string {
	mark := func(by order, text string) string {
		if s.order[threadsPage] == by {
			return "↓" + text
		}
		return text
	}
	l := s.threadLayout()
	first := "CPU/"
	if !s.table.CPUTime() {
		first = "PART/"
		if event(s.table).Unit == "nanoseconds" {
			first = "TIME/"
		}
	}
	out := right(mark(byFirst, first+s.windowName()), l.recent) + right(mark(bySecond, "PART/ALL"), l.since) + right("TID", tidWidth+1)
	if l.state > 0 {
		out += "  " + left("STATE", l.state)
	}
	if l.spark > 0 {
		out += "  " + left("LOAD", l.spark)
	}
	return out + "  " + left(mark(byName, "THREAD"), l.name) + "  HOTTEST METHOD"
}

func (s *Screen) threadLine(r *live.ThreadRow, chosen bool) string {
	style := styleOf(chosen)
	t := s.table
	part, full := r.Recent.Share(t.Recent.Count), 0.0
	if event(t).Unit == "nanoseconds" {
		// As a share of the elapsed time: no thread can use more.
		if t.Window > 0 {
			part = float64(r.Recent.Weight) / float64(t.Window)
		}
		full = float64(live.Interval)
	} else {
		for _, v := range r.Load {
			full = max(full, float64(v))
		}
	}
	l := s.threadLayout()
	out := style(heat(part/4), right(share(part), l.recent))
	out += style(dim, right(share(r.Since.Share(t.Since.Count)), l.since))
	out += right(itoa(r.TID), tidWidth+1)
	if l.state > 0 {
		out += "  " + left(s.state(r), l.state)
	}
	if l.spark > 0 {
		out += "  " + style(green, sparkline(r.Load, l.spark, full))
	}
	thread := name(r.Name)
	if len(t.Processes) > 1 {
		thread = fmt.Sprintf("%d/%s", r.PID, thread)
	}
	out += "  " + left(thread, l.name)
	if r.Hottest == (live.Method{}) {
		return out
	}
	if l.share {
		out += style(dim, right(share(r.HottestShare), 8))
	}
	out += "  " + doingIn(r)
	return out + s.method(r.Hottest, s.width-width(out), style)
}

// doingIn returns what a thread that mostly waits does, before the name of what waits.
func doingIn(r *live.ThreadRow) string {
	if r.Waits == profile.StateUnknown {
		return ""
	}
	return r.Waits.String() + " in "
}

// state returns what a thread does now. Sampling by CPU time has only seen it running, so the
// system is asked, for visible lines only.
func (s *Screen) state(r *live.ThreadRow) string {
	switch {
	case !s.table.CPUTime() && r.Recent.Weight > 0:
		return r.State.String()
	case s.frozen || s.ended != nil || s.o.State == nil:
		return "-"
	}
	return s.o.State(r.PID, r.TID)
}
