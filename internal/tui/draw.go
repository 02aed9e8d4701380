package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/candid-profiler/candid/internal/live"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/report"
	"github.com/candid-profiler/candid/internal/walk"
)

// Below this size nothing can be shown.
const (
	leastWidth  = 20
	leastHeight = 5
)

// room returns how many lines of the table fit.
func (s *Screen) room() int {
	n := s.height - 2 - 1 // a header of at least two lines, and the column names
	if s.height >= 9 {
		n--
	}
	if s.height >= 7 {
		n-- // the key bar
	}
	if s.detailed() {
		n--
	}
	if s.noted() {
		n--
	}
	if s.waits() {
		n--
	}
	return max(n, 1)
}

// detailed reports whether there is room for a line about the chosen row.
func (s *Screen) detailed() bool { return s.height >= 14 }

// View implements tea.Model.
func (s *Screen) View() tea.View {
	v := tea.NewView(s.text())
	v.AltScreen = true
	v.WindowTitle = title
	return v
}

func (s *Screen) text() string {
	if s.width < leastWidth || s.height < leastHeight {
		return cut("too small", s.width)
	}
	if s.help {
		return s.helpText()
	}
	lines := s.header()
	lines = append(lines, paint(bold, cut(s.columns(), s.width)))
	n := s.room()
	for i := s.top; i < s.top+n; i++ {
		text := ""
		if i < len(s.lines) {
			text = s.line(&s.lines[i], i == s.at)
		} else if i == 0 {
			text = paint(dim, cut(s.nothing(), s.width))
		}
		lines = append(lines, text)
	}
	if s.detailed() {
		lines = append(lines, paint(dim, cut(s.detail(), s.width)))
	}
	if s.height >= 7 || s.editing {
		if s.height < 7 {
			lines = lines[:len(lines)-1]
		}
		lines = append(lines, s.footer())
	}
	return strings.Join(lines, "\n")
}

// nothing returns why there is no row.
func (s *Screen) nothing() string {
	switch {
	case s.filter() != nil && s.table.Since.Count.Samples > 0:
		return "nothing matches /" + name(s.filter().String()) + "/"
	case s.ended != nil:
		return "no samples were taken"
	case s.thread != nil:
		return "no samples of this thread in this window"
	}
	if s.table.CPUTime() {
		return "no samples yet: the target uses no CPU"
	}
	return "no samples yet"
}

// Widths of number columns, in both tables.
const (
	selfWidth, totalWidth = 9, 10
	kindWidth, kindNarrow = 13, 8
)

// since returns how many columns since the start there is room for: 0 to 2.
func (s *Screen) since() int {
	switch {
	case s.thread != nil && s.page == methodsPage || s.width < 64:
		return 0
	case s.width < 110:
		return 1
	}
	return 2
}

// kind returns the column of a kind of code, or of its heading: empty, short words or those of
// reports, as there is room.
func (s *Screen) kind(k walk.Kind, style func(style, text string) string) string {
	switch {
	case s.width < 56:
		return ""
	case s.width < 110:
		return "  " + style(kindColors[k], left(shortKinds[k], kindNarrow))
	}
	return "  " + style(kindColors[k], left(profile.KindName(k), kindWidth))
}

var shortKinds = [walk.NumKinds]string{
	walk.KindUnknown:      "unknown",
	walk.KindKernel:       "kernel",
	walk.KindNative:       "native",
	walk.KindInterpreted:  "interp",
	walk.KindCompiled:     "compiled",
	walk.KindC1:           "C1",
	walk.KindC2:           "C2",
	walk.KindInlined:      "inlined",
	walk.KindStub:         "stub",
	walk.KindNativeMethod: "JNI",
	walk.KindAOT:          "AOT",
	walk.KindTier0:        "Tier-0",
	walk.KindInstrumented: "Tier-0i",
	walk.KindOSR:          "OSR",
	walk.KindTier1:        "Tier-1",
	walk.KindReadyToRun:   "R2R",
}

// numbers is which columns of the window are shown.
type numbers int

const (
	both numbers = iota
	onlySelf
	onlyTotal
)

func (s *Screen) numbers() numbers {
	switch {
	case s.width >= 44:
		return both
	case s.order[methodsPage] == bySecond:
		return onlyTotal
	}
	return onlySelf
}

func (s *Screen) windowName() string {
	return fmt.Sprintf("%ds", int(windows[s.window].Seconds()))
}

// columns returns the column names; the column that the table is sorted by has an arrow.
func (s *Screen) columns() string {
	if s.page == threadsPage {
		return s.threadColumns()
	}
	mark := func(by order, text string) string {
		if s.order[methodsPage] == by {
			return "↓" + text
		}
		return text
	}
	w := s.windowName()
	selfHead, totalHead := right(mark(byFirst, "SELF/"+w), selfWidth), right(mark(bySecond, "TOTAL/"+w), totalWidth+1)
	out := selfHead + totalHead
	switch s.numbers() {
	case onlySelf:
		out = selfHead
	case onlyTotal:
		out = totalHead
	}
	switch s.since() {
	case 1:
		if s.order[methodsPage] == bySecond {
			out += right("TOTAL/ALL", totalWidth+1)
		} else {
			out += right("SELF/ALL", totalWidth+1)
		}
	case 2:
		out += right("SELF/ALL", totalWidth) + right("TOTAL/ALL", totalWidth+1)
	}
	if n := width(s.kind(0, plain)); n > 0 {
		out += "  " + left("KIND", n-2)
	}
	out += "  " + mark(byName, "METHOD")
	if s.folded > 0 {
		out += fmt.Sprintf("  (u: and %d that start threads)", s.folded)
	}
	return out
}

// line returns one line of the table.
func (s *Screen) line(l *line, chosen bool) string {
	var text string
	if l.thread != nil {
		text = s.threadLine(l.thread, chosen)
	} else {
		text = s.methodLine(l, chosen)
	}
	if chosen {
		return paint(reverse, left(text, s.width))
	}
	return cut(text, s.width)
}

func (s *Screen) methodLine(l *line, chosen bool) string {
	t := s.table
	style := styleOf(chosen)
	var out string
	method, kind, rails := l.path[len(l.path)-1], walk.KindUnknown, l.rails
	if l.caller != nil {
		kind = l.caller.Kind
		part := rough(l.caller.Count.Share(t.Shown), t.Shown.Samples)
		out = strings.Repeat(" ", selfWidth) + right(part, totalWidth+1) + strings.Repeat(" ", s.sinceWidth())
		if s.numbers() == onlySelf {
			out = strings.Repeat(" ", selfWidth)
		} else if s.numbers() == onlyTotal {
			out = right(part, totalWidth+1)
		}
		if l.caller.More {
			rails += "+"
		} else {
			rails += " "
		}
	} else {
		r := l.row
		kind = r.Kind
		self, total := r.Self.Share(t.Shown), r.Total.Share(t.Shown)
		selfCell, totalCell := style(heat(self), right(rough(self, t.Shown.Samples), selfWidth)), right(rough(total, t.Shown.Samples), totalWidth+1)
		out = selfCell + totalCell
		if s.numbers() == onlySelf {
			out = selfCell
		} else if s.numbers() == onlyTotal {
			out = totalCell
		}
		sinceSelf, sinceTotal := share(r.SinceSelf.Share(t.Since.Count)), share(r.SinceTotal.Share(t.Since.Count))
		switch s.since() {
		case 1:
			if s.order[methodsPage] == bySecond {
				sinceSelf = sinceTotal
			}
			out += style(dim, right(sinceSelf, totalWidth+1))
		case 2:
			out += style(dim, right(sinceSelf, totalWidth)+right(sinceTotal, totalWidth+1))
		}
	}
	out += s.kind(kind, style) + "  " + style(dim, rails)
	if kind == walk.KindKernel {
		method.Module = "" // the kind says it already
	}
	return out + s.method(method, s.width-width(out), style)
}

func (s *Screen) sinceWidth() int {
	return [...]int{0, totalWidth + 1, 2*totalWidth + 1}[s.since()]
}

// method returns a method's name and, if there is room for both, its module.
func (s *Screen) method(m live.Method, room int, style func(style, text string) string) string {
	text, module := name(m.Name), name(base(m.Module))
	// Without a symbol the name already begins with the module.
	if module == "" || strings.HasPrefix(text, module+"+") || width(text)+2+width(module) > room {
		return tail(text, room)
	}
	return text + "  " + style(dim, module)
}

// heat returns the style for a share; large ones are highlighted.
func heat(part float64) string {
	switch {
	case part >= 0.2:
		return bold + red
	case part >= 0.05:
		return yellow
	}
	return ""
}

// kindColors are those of reports.
var kindColors = [walk.NumKinds]string{
	walk.KindKernel:       "\x1b[31m",
	walk.KindNative:       "\x1b[33m",
	walk.KindInterpreted:  "\x1b[36m",
	walk.KindCompiled:     green,
	walk.KindC1:           green,
	walk.KindC2:           green,
	walk.KindInlined:      "\x1b[34m",
	walk.KindStub:         "\x1b[35m",
	walk.KindNativeMethod: "\x1b[36m",
	walk.KindAOT:          green,
	walk.KindTier0:        green,
	walk.KindInstrumented: green,
	walk.KindOSR:          green,
	walk.KindTier1:        green,
	walk.KindReadyToRun:   green,
}

// detail returns more about the chosen line.
func (s *Screen) detail() string {
	l := s.chosen()
	if l == nil {
		return ""
	}
	unit := event(s.table).Unit
	if th := l.thread; th != nil {
		return fmt.Sprintf("%s (thread %d of process %d): %s since the start", name(th.Name), th.TID, th.PID, report.Amount(th.Since.Weight, unit))
	}
	m := l.path[len(l.path)-1]
	facts := ""
	if l.row != nil && s.thread == nil {
		facts = fmt.Sprintf("  self %s, total %s since the start", report.Amount(l.row.SinceSelf.Weight, unit), report.Amount(l.row.SinceTotal.Weight, unit))
	}
	full := name(m.Name)
	if m.Module != "" {
		full += "  " + name(m.Module)
	}
	return tail(full, s.width-width(facts)) + facts
}

func (s *Screen) footer() string {
	if s.editing {
		wrong := ""
		if s.wrong != "" {
			wrong = "  " + paint(red, s.wrong)
		}
		return cut("filter /"+tail(s.typed, max(s.width-40, 8))+paint(reverse, " ")+wrong+paint(dim, "  enter keeps it, esc drops it"), s.width)
	}
	keys := []string{"q quit", "? help", "/ filter", "space freeze", "tab threads", "enter callers", "s/t/n sort", "w window", "esc back"}
	if s.frozen {
		keys[3] = "space go on"
	}
	if s.page == threadsPage {
		keys[4], keys[5] = "tab methods", "enter its methods"
	}
	out := keys[0]
	for _, k := range keys[1:] {
		if width(out)+3+width(k) > s.width {
			break
		}
		out += " · " + k
	}
	return paint(dim, cut(out, s.width))
}
