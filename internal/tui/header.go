package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/live"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/report"
)

const title = "candid top"

// target describes in a few words what is profiled.
func target(t *live.Table, whole bool) string {
	switch n := len(t.Processes); {
	case whole:
		return fmt.Sprintf("the whole machine: %s", processes(n))
	case n == 0:
		return "nothing has run yet"
	case n == 1:
		return command(t.Processes[0].Command)
	default:
		return fmt.Sprintf("%d processes, the first: %s", n, command(t.Processes[0].Command))
	}
}

// command returns a command line without the directories of its program.
func command(line string) string {
	program, rest, more := strings.Cut(line, " ")
	if program = base(program); more {
		program += " "
	}
	return name(program + rest)
}

// status returns the right end of the first line.
func (s *Screen) status() string {
	at := clock(s.table.Elapsed)
	switch {
	case s.ended != nil && s.ended.Err != nil:
		return paint(reverse+red, " STOPPED at "+at+": q quits ")
	case s.ended != nil && s.ended.Over:
		return paint(reverse, " DONE at "+at+": q quits ")
	case s.ended != nil:
		return paint(reverse, " TARGET ENDED at "+at+": q quits ")
	case s.frozen:
		return paint(reverse, " FROZEN at "+at+" ")
	}
	return at
}

// clock formats a time since the start.
func clock(d time.Duration) string {
	d = d.Truncate(time.Second)
	if d < time.Hour {
		return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
}

// header returns the lines above the table; fewer if there is little room.
func (s *Screen) header() []string {
	t := s.table
	status := s.status()
	first := paint(bold, title) + "  "
	room := s.width - width(title) - 2 - width(status) - 1
	if room < 8 {
		first, room = "", s.width-width(status)-1
	}
	lines := []string{first + left(target(t, s.o.Whole), room) + " " + status}
	if s.height >= 9 {
		lines = append(lines, s.facts())
	}
	if s.ended != nil && s.ended.Err != nil {
		return append(lines, paint(red, cut(name(s.ended.Err.Error()), s.width)))
	}
	lines = append(lines, s.honesty())
	if s.waits() {
		lines = append(lines, cut("waits: "+strings.Join(longest(t), " · "), s.width))
	}
	if s.noted() {
		notes := s.notes()
		text := "note: "
		if n := len(notes) - 1; n > 0 {
			text = fmt.Sprintf("note (%d more): ", n)
		}
		lines = append(lines, paint(yellow, cut(text+name(notes[0]), s.width)))
	}
	return lines
}

// notes returns what was not available.
func (s *Screen) notes() []string {
	notes := s.table.Notes
	if s.ended == nil && event(s.table).Unit == "nanoseconds" && !s.table.CPUTime() {
		notes = append(notes[:len(notes):len(notes)], "a sleep is counted when it is over: threads that sleep on are missing until then")
	}
	return notes
}

// noted reports whether there is a line about what was not available.
func (s *Screen) noted() bool {
	return s.height >= 12 && (s.ended == nil || s.ended.Err == nil) && len(s.notes()) > 0
}

// waits reports whether there is a line about who waits.
func (s *Screen) waits() bool {
	return s.height >= 12 && (s.ended == nil || s.ended.Err == nil) && len(s.table.Waits) > 0
}

// longest returns the longest waits in words.
func longest(t *live.Table) (out []string) {
	for i := range t.Waits[:min(3, len(t.Waits))] {
		out = append(out, report.WaitText(&t.Waits[i]))
	}
	return out
}

// facts returns the target, how it is sampled, and the load.
func (s *Screen) facts() string {
	t := s.table
	var facts []string
	if len(t.Processes) == 1 && !s.o.Whole {
		if r := t.Processes[0].Runtime; r != "" {
			facts = append(facts, name(r))
		}
		facts = append(facts, fmt.Sprint("pid ", t.Processes[0].PID))
	}
	rate := ""
	if t.Window > 0 {
		rate = fmt.Sprintf("%.0f samples/s", float64(t.Recent.Count.Samples)/t.Window.Seconds())
	}
	facts = append(facts, t.Begun.Engine, rate)
	text := strings.Join(slices.DeleteFunc(facts, func(f string) bool { return f == "" }), " · ")
	load, full := s.load()
	text += " · " + load + " "
	line := text + sparkline(t.Load, min(s.width-width(text), len(t.Load)), full)
	return cut(line, s.width)
}

// load returns the weight per second in words, and the value that fills a sparkline.
func (s *Screen) load() (words string, full float64) {
	t := s.table
	e := event(t)
	perSecond := 0.0
	if t.Window > 0 {
		perSecond = float64(t.Recent.Count.Weight) / t.Window.Seconds()
	}
	if len(t.Load) > 0 {
		full = float64(slices.Max(t.Load))
	}
	if e.Unit == "nanoseconds" {
		return fmt.Sprintf("%.2f %s", perSecond/1e9, who(t)), max(full, float64(live.Interval))
	}
	return report.Amount(uint64(perSecond), e.Unit) + " " + name(e.Name) + "/s", full
}

// who returns what time is counted of: CPUs or threads.
func who(t *live.Table) string {
	if t.CPUTime() {
		return "CPUs"
	}
	return "threads (" + name(event(t).Name) + ")"
}

// doing returns what the threads were doing, if that was not always the same, the most frequent
// first.
func doing(t *live.Table, states live.States, all profile.Count) []string {
	if t.CPUTime() || all.Weight == 0 {
		return nil
	}
	var of []int
	for i, w := range states {
		if w > 0 && w < all.Weight {
			of = append(of, i)
		}
	}
	slices.SortFunc(of, func(a, b int) int { return cmp.Compare(states[b], states[a]) })
	facts := make([]string, len(of))
	for i, at := range of {
		facts[i] = share(float64(states[at])/float64(all.Weight)) + " " + profile.State(at).String()
	}
	return facts
}

func event(t *live.Table) profile.Event {
	if len(t.Begun.Events) > 0 {
		return t.Begun.Events[0]
	}
	return profile.Event{}
}

// honesty returns how far the table can be trusted, and what it costs.
func (s *Screen) honesty() string {
	t := s.table
	facts := broken(t.Recent.Quality)
	switch recent := t.Recent.Lost; {
	case recent > 0:
		facts = append(facts, paint(red, share(float64(recent)/float64(recent+t.Recent.Count.Samples))+" lost"))
	case t.Since.Lost > 0:
		facts = append(facts, paint(yellow, fmt.Sprintf("%d lost since the start", t.Since.Lost)))
	default:
		facts = append(facts, "0 lost")
	}
	if text := roughly(t.Shown.Samples); text != "" {
		facts = append(facts, paint(yellow, text))
	}
	facts = append(facts, s.narrowed()...)
	facts = append(facts, doing(t, t.Recent.States, t.Recent.Count)...)
	facts = append(facts, certain(t.Recent.Quality)...)
	if t.Recent.Unkept > 0 {
		facts = append(facts, paint(yellow, fmt.Sprintf("callers of %s not kept", share(float64(t.Recent.Unkept)/float64(max(t.Recent.Count.Samples, 1))))))
	}
	if t.Window > 0 {
		facts = append(facts, fmt.Sprintf("candid %s of a CPU", share(t.Recent.Own.Seconds()/t.Window.Seconds())))
	}
	return cut(strings.Join(facts, " · "), s.width)
}

// narrowed returns what restricts the table.
func (s *Screen) narrowed() []string {
	var facts []string
	if s.page == methodsPage && s.thread != nil {
		facts = append(facts, paint(bold, fmt.Sprintf("only thread %s (%d)", name(s.named), s.thread.TID)))
	}
	if s.filter() != nil && !s.editing {
		facts = append(facts, paint(bold, "only /"+name(s.filter().String())+"/"))
	}
	return facts
}

// broken returns how many stacks are incomplete.
func broken(q profile.Quality) []string {
	facts := []string{"0 broken"}
	if q.Broken > 0 {
		facts[0] = paint(red, partOf(q.Broken, q)+" broken")
	}
	if q.Truncated > 0 {
		facts = append(facts, paint(yellow, partOf(q.Truncated, q)+" truncated"))
	}
	return facts
}

// certain returns how certain the other stacks are.
func certain(q profile.Quality) []string {
	if q.Samples == 0 {
		return nil
	}
	facts := []string{partOf(q.Complete+q.Stitched, q) + " complete"}
	if q.Unnamed > 0 {
		facts = append(facts, partOf(q.Unnamed, q)+" unnamed")
	}
	if q.Heuristic > 0 {
		facts = append(facts, partOf(q.Heuristic, q)+" guessed")
	}
	return facts
}

func partOf(n uint64, q profile.Quality) string {
	return report.Percent(float64(n) / float64(q.Samples))
}

func processes(n int) string {
	if n == 1 {
		return "1 process so far"
	}
	return fmt.Sprintf("%d processes so far", n)
}
