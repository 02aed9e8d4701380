package tui

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/candid-profiler/candid/internal/live"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/report"
)

// Style is how Once prints.
type Style struct {
	Width int  // columns; 0: unlimited
	Color bool // and other attributes
	Whole bool // the target is the whole machine
	Rows  int  // of methods, and of threads
}

// Once prints a table of everything since the start, methods and then threads. The query for the
// table must have set Threads.
func Once(w io.Writer, t *live.Table, style Style) error {
	out := bufio.NewWriter(w)
	put := func(line string) {
		if style.Width > 0 {
			line = cut(line, style.Width)
		}
		if !style.Color {
			line = ansi.Strip(line)
		}
		fmt.Fprintln(out, strings.TrimRight(line, " "))
	}
	room := func(used int) int {
		if style.Width == 0 {
			return 1 << 16
		}
		return max(style.Width-used, 12)
	}
	all := t.Since.Count
	put(paint(bold, target(t, style.Whole)))
	facts := []string{}
	if len(t.Processes) == 1 && !style.Whole {
		if r := t.Processes[0].Runtime; r != "" {
			facts = append(facts, name(r))
		}
		facts = append(facts, fmt.Sprint("pid ", t.Processes[0].PID))
	}
	facts = append(facts, "engine "+t.Begun.Engine, fmt.Sprintf("%d samples in %.1fs", all.Samples, t.Elapsed.Seconds()))
	unit := event(t).Unit
	if unit == "nanoseconds" && t.Elapsed > 0 {
		facts = append(facts, fmt.Sprintf("%.2f %s", float64(all.Weight)/float64(t.Elapsed), who(t)))
	} else {
		facts = append(facts, report.Amount(all.Weight, unit)+" "+name(event(t).Name))
	}
	put("  " + strings.Join(facts, " · "))
	facts = append(broken(t.Since.Quality), fmt.Sprintf("%d lost", t.Since.Lost))
	facts = append(facts, certain(t.Since.Quality)...)
	if t.Since.Unkept > 0 {
		facts = append(facts, fmt.Sprintf("threads' methods of %d not kept", t.Since.Unkept))
	}
	put("  " + strings.Join(facts, " · "))
	if states := doing(t, t.Since.States, all); len(states) > 0 {
		put("  " + strings.Join(states, " · "))
	}
	if waits := longest(t); len(waits) > 0 {
		when := ""
		if t.Elapsed > t.Window {
			when = " of the last minute"
		}
		put("  longest waits" + when + ": " + strings.Join(waits, " · "))
	}
	for _, n := range t.Notes {
		put("  note: " + name(n))
	}
	if text := roughly(all.Samples); text != "" {
		put("  " + paint(yellow, text+"; -d or -F takes more"))
	}
	put("")

	s := &Screen{table: t}
	put(paint(bold, right("SELF", 7)+right("TOTAL", 8)+"  "+left("KIND", kindWidth)+"  METHOD"))
	rows := slices.Clone(t.Rows)
	for i := range rows { // the window covers everything
		rows[i].Self, rows[i].Total = rows[i].SinceSelf, rows[i].SinceTotal
	}
	slices.SortFunc(rows, func(a, b live.Row) int { return live.BySelf(&a, &b) })
	for i := range rows[:min(len(rows), style.Rows)] {
		r := &rows[i]
		head := right(rough(r.Self.Share(all), all.Samples), 7) + right(rough(r.Total.Share(all), all.Samples), 8) + "  " +
			paint(kindColors[r.Kind], left(profile.KindName(r.Kind), kindWidth)) + "  "
		put(head + s.method(r.Method, room(width(head)), plain))
	}
	if n := len(rows) - style.Rows; n > 0 {
		put(paint(dim, fmt.Sprintf("  and %d more; --json has all", n)))
	}
	put("")
	threads := slices.Clone(t.Threads)
	slices.SortFunc(threads, func(a, b live.ThreadRow) int { return compareThreads(&a, &b, bySecond) })
	first := "PART"
	if t.CPUTime() {
		first = "CPU"
	} else if unit == "nanoseconds" {
		first = "TIME"
	}
	put(paint(bold, right(first, 7)+right("TID", 9)+"  "+left("THREAD", 24)+"  HOTTEST METHOD"))
	for i := range threads[:min(len(threads), style.Rows)] {
		th := &threads[i]
		part := th.Since.Share(all)
		if unit == "nanoseconds" && t.Elapsed > 0 {
			part = float64(th.Since.Weight) / float64(t.Elapsed)
		}
		head := right(rough(part, all.Samples), 7) + right(itoa(th.TID), 9) + "  " + left(name(th.Name), 24) + "  "
		if th.Hottest != (live.Method{}) {
			head += right(rough(th.HottestShare, all.Samples), 7) + "  " + doingIn(th)
			head += s.method(th.Hottest, room(width(head)), plain)
		}
		put(head)
	}
	if n := len(threads) - style.Rows; n > 0 {
		put(paint(dim, fmt.Sprintf("  and %d more; --json has all", n)))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}
