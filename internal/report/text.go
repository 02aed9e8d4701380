package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/profile"
)

// Text writes the report for people. p must have passed Check or come from a
// Builder.
func Text(w io.Writer, p *profile.Profile, o Options) error {
	top := o.Top
	o = o.withDefaults()
	s, err := selection(p, o)
	if err != nil {
		return err
	}
	pg := newPage(w, o)
	pg.header(s)
	pg.services(o.Services, top)
	switch {
	case s.Chosen.Samples == 0 && s.All.Samples > 0:
		pg.line("No sample is left: the filter matches none of the %s.", grouped(s.All.Samples))
	case s.Chosen.Samples == 0:
		pg.line("No samples.")
	case o.View == ViewThreads:
		pg.threads(s, o)
	case o.View == ViewStates && !o.ByThread:
		pg.states(s, o)
	case o.View == ViewLabels && !o.ByThread:
		pg.labels(s, o)
	case o.ByThread:
		pg.eachThread(s, o)
	default:
		pg.view(s, o)
	}
	if err := pg.w.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func (pg *page) view(s *profile.Selection, o Options) {
	switch o.View {
	case ViewTree:
		pg.tree(s, s.Calls(), "CALL TREE", "", o)
	case ViewCallers:
		pg.callers(s, o)
	case ViewStates:
		pg.states(s, o)
	case ViewLabels:
		pg.labels(s, o)
	default:
		pg.methods(s, o)
	}
}

// eachThread writes the view of each thread, the one with most weight first.
func (pg *page) eachThread(s *profile.Selection, o Options) {
	between := ""
	for _, row := range s.ByThread() {
		if row.Samples.Samples == 0 {
			continue
		}
		f := o.Filter
		f.OneThread = &row.Thread
		t := s.Profile.Threads[row.Thread]
		pg.line("%s%s", between, pg.paint(bold, fmt.Sprintf("%s  tid %d  %s", clean(t.Name), t.TID, strings.TrimLeft(cells(row.Samples, s), " "))))
		pg.view(s.Profile.Select(f), o)
		between = "\n"
	}
}

func (s shares) String() string { return right(percent(s.shown), 6) }

// shares are a count's share of what is shown and of all.
type shares struct{ shown, all float64 }

func sharesOf(c profile.Count, s *profile.Selection) shares {
	return shares{c.Share(s.Chosen), c.Share(s.All)}
}

// unit returns the unit of the selection's weights.
func unit(s *profile.Selection) string {
	if s.Filter.Event < len(s.Profile.Events) {
		return s.Profile.Events[s.Filter.Event].Unit
	}
	return "count"
}

// cells returns the columns of one count: its share, if filtered also the share of all, and the
// amount.
func cells(c profile.Count, s *profile.Selection) string {
	sh := sharesOf(c, s)
	out := sh.String()
	if s.Chosen != s.All {
		out += right(percent(sh.all), 8)
	}
	return out + right(amount(c.Weight, unit(s)), 9)
}

func cellsHead(name string, s *profile.Selection) string {
	out := right(name, 6)
	if s.Chosen != s.All {
		out += right("of all", 8)
	}
	return left(out, len(out)+9)
}

// methodList returns the method list in the order that is asked for.
func methodList(s *profile.Selection, o Options) []profile.MethodCount {
	rows := s.List()
	if o.ByTotal {
		slices.SortStableFunc(rows, func(a, b profile.MethodCount) int {
			return cmp.Or(cmp.Compare(b.Total.Weight, a.Total.Weight), cmp.Compare(b.Total.Samples, a.Total.Samples))
		})
	}
	return rows
}

func (pg *page) methods(s *profile.Selection, o Options) {
	rows := methodList(s, o)
	shown := rows
	if o.Top > 0 && len(rows) > o.Top {
		shown = rows[:o.Top]
	}
	kindWidth := len("KIND")
	for i := range shown {
		kindWidth = max(kindWidth, len(profile.KindName(shown[i].Kind())))
	}
	head := cellsHead("SELF", s) + "  " + cellsHead("TOTAL", s) + "  " + left("KIND", kindWidth) + "  "
	pg.line("%s", pg.paint(bold, head+"METHOD"))
	for i := range shown {
		m := &shown[i]
		f := s.Func(m.Method)
		kind := m.Kind()
		pg.line("%s  %s  %s  %s%s", cells(m.Self, s), cells(m.Total, s),
			pg.paint(kindColors[kind], left(profile.KindName(kind), kindWidth)),
			pg.named(s.Name(m.Method), f.Module, "", pg.room(len(head)+len(remark(m)))), pg.paint(dim, remark(m)))
	}
	if n := len(rows) - len(shown); n > 0 {
		var rest profile.Count
		for _, m := range rows[len(shown):] {
			rest.Add(m.Self)
		}
		pg.line("%s", pg.paint(dim, fmt.Sprintf("%s  and %s more", cells(rest, s), plural(uint64(n), "method", "methods"))))
	}
	pg.legend(shown)
}

// legend explains the remarks that occur in rows.
func (pg *page) legend(rows []profile.MethodCount) {
	var guessed, coarse bool
	for i := range rows {
		guessed = guessed || remark(&rows[i]) == remarkGuessed
		coarse = coarse || remark(&rows[i]) == remarkCoarse
	}
	if guessed || coarse {
		pg.line("")
	}
	if guessed {
		pg.line("%s", pg.paint(dim, "(guessed): by frame pointers or a search of the stack, which can be wrong"))
	}
	if coarse {
		pg.line("%s", pg.paint(dim, "(coarse): samples are placed at the next safepoint or call: shares inside inlined code are rough;"))
		pg.line("%s", pg.paint(dim, "          a JVM launched with -XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints places them exactly"))
	}
}

const (
	remarkGuessed = "  (guessed)"
	remarkCoarse  = "  (coarse)"
)

// remark returns the remark for a row that is less certain than it looks.
func remark(m *profile.MethodCount) string {
	switch {
	case m.Guessed*2 > m.Total.Samples:
		return remarkGuessed
	case m.Coarse*2 > m.Self.Samples && m.Self.Samples > 0:
		return remarkCoarse
	}
	return ""
}

func (pg *page) threads(s *profile.Selection, o Options) {
	rows := s.ByThread()
	shown := rows
	if o.Top > 0 && len(rows) > o.Top {
		shown = rows[:o.Top]
	}
	compared := false
	for i := range rows {
		compared = compared || rows[i].KernelShare >= 0
	}
	head := cellsHead("SHARE", s)
	if compared {
		head += "   KERNEL"
	}
	kinds := slices.ContainsFunc(rows, func(r profile.ThreadCount) bool { return s.Profile.Threads[r.Thread].Kind != "" })
	head += "  SAMPLES  COMPLETE      TID  "
	if kinds {
		head += "KIND      "
	}
	pg.line("%s", pg.paint(bold, head+"THREAD"))
	disagree := 0
	states := s.HasStates()
	for i := range shown {
		r := &shown[i]
		t := s.Profile.Threads[r.Thread]
		line := cells(r.Samples, s)
		mark := ""
		if compared {
			switch {
			case r.KernelShare < 0:
				line += right("-", 9)
			default:
				line += right(percent(r.KernelShare), 9)
			}
		}
		if r.Disagrees {
			mark = fmt.Sprintf("  ! %s samples expected", grouped(uint64(r.Expected+0.5)))
		}
		complete := "-"
		if q := r.Quality; q.Samples > 0 {
			complete = percent(float64(q.Complete+q.Stitched) / float64(q.Samples))
		}
		doing := ""
		if states {
			doing = "  " + statesOf(s.ThreadStates(r.Thread), r.Samples)
		}
		line += right(grouped(r.Samples.Samples), 9) + right(complete, 10) + right(fmt.Sprint(t.TID), 9)
		if line += "  "; kinds {
			line += fmt.Sprintf("%-10s", clean(cmp.Or(t.Kind, "-")))
		}
		pg.line("%s%s%s", line, shorten(clean(t.Name), pg.room(len(head)+len(mark)+len(doing))), pg.paint(dim, doing)+pg.paint("\x1b[31m", mark))
	}
	if n := len(rows) - len(shown); n > 0 {
		var rest profile.Count
		for _, r := range rows[len(shown):] {
			rest.Add(r.Samples)
		}
		pg.line("%s", pg.paint(dim, fmt.Sprintf("%s  in %s more", cells(rest, s), plural(uint64(n), "thread", "threads"))))
	}
	for i := range rows {
		if rows[i].Disagrees {
			disagree++
		}
	}
	switch {
	case disagree > 0:
		pg.line("\n%s", pg.disagreement(disagree))
	case compared:
		pg.line("\nEvery thread's share agrees with the CPU time that the kernel counted for it.")
	}
}

func (pg *page) disagreement(n int) string {
	return fmt.Sprintf("! %s got more or fewer samples than the CPU time that the kernel counted explains by chance (three standard deviations).",
		plural(uint64(n), "thread", "threads"))
}
