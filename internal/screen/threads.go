package screen

import (
	"fmt"

	"github.com/candid-profiler/candid/internal/live"
)

const (
	stateWidth = 9
	tidWidth   = 8
)

// sparkWidth is how wide a thread's load over time is drawn.
func (s *Screen) sparkWidth() int {
	switch {
	case s.width < 70:
		return 0
	case s.width < 110:
		return 10
	case s.width < 160:
		return 20
	}
	return 40
}

// threadNameWidth is what a thread's name may take.
func (s *Screen) threadNameWidth() int {
	if s.width < 70 {
		return max(s.width-selfWidth-s.sinceThreads()-s.stateWidth()-s.spark()-tidWidth-6, 8)
	}
	return min(max(s.width/4, 14), 40)
}

func (s *Screen) stateWidth() int {
	if s.o.State == nil || s.width < 60 {
		return 0
	}
	return stateWidth + 2
}

func (s *Screen) spark() int {
	if n := s.sparkWidth(); n > 0 {
		return n + 2
	}
	return 0
}

func (s *Screen) sinceThreads() int {
	if s.width < 64 {
		return 0
	}
	return totalWidth
}

func (s *Screen) threadColumns() string {
	mark := func(by order, text string) string {
		if s.order[threadsPage] == by {
			return "↓" + text
		}
		return text
	}
	out := right(mark(byFirst, "CPU/"+s.windowName()), selfWidth)
	if event(s.table).Unit != "nanoseconds" {
		out = right(mark(byFirst, "PART/"+s.windowName()), selfWidth)
	}
	if n := s.sinceThreads(); n > 0 {
		out += right(mark(bySecond, "PART/ALL"), n)
	}
	out += right("TID", tidWidth+1)
	if s.stateWidth() > 0 {
		out += "  " + left("STATE", stateWidth)
	}
	if n := s.sparkWidth(); n > 0 {
		out += "  " + left("LOAD", n)
	}
	out += "  " + left(mark(byName, "THREAD"), s.threadNameWidth())
	return out + "  HOTTEST METHOD"
}

func (s *Screen) threadLine(r *live.ThreadRow, chosen bool) string {
	style := func(style, text string) string {
		if chosen {
			return text
		}
		return paint(style, text)
	}
	t := s.table
	part, full := r.Recent.Share(t.Recent.Count), 0.0
	if event(t).Unit == "nanoseconds" {
		// Of one CPU: more than that no thread can use.
		if t.Window > 0 {
			part = float64(r.Recent.Weight) / float64(t.Window)
		}
		full = float64(live.Interval)
	} else {
		for _, v := range r.Load {
			full = max(full, float64(v))
		}
	}
	out := style(heat(part/4), right(share(part), selfWidth))
	if n := s.sinceThreads(); n > 0 {
		out += style(dim, right(share(r.Since.Share(t.Since.Count)), n))
	}
	out += right(itoa(r.TID), tidWidth+1)
	if s.stateWidth() > 0 {
		out += "  " + left(s.state(r), stateWidth)
	}
	if n := s.sparkWidth(); n > 0 {
		out += "  " + style(green, sparkline(r.Load, n, full))
	}
	thread := name(r.Name)
	if len(t.Processes) > 1 {
		thread = fmt.Sprintf("%d/%s", r.PID, thread)
	}
	out += "  " + left(thread, s.threadNameWidth())
	if r.Hottest == (live.Method{}) {
		return out
	}
	out += style(dim, right(share(r.HottestShare), 8)) + " "
	return out + s.method(r.Hottest, s.width-width(out), style)
}

// state is what a thread does now. It is asked for the lines that are seen only.
func (s *Screen) state(r *live.ThreadRow) string {
	if s.frozen || s.ended != nil {
		return "-"
	}
	return s.o.State(r.PID, r.TID)
}
