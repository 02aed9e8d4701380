package report

import (
	"fmt"
	"strings"

	"github.com/candid-profiler/candid/internal/attribution"
	"github.com/candid-profiler/candid/internal/profile"
)

// longCommand is how many bytes of a process's command line record keeps at most. Other profilers
// keep all of it, and a class path may fill pages; JSON has it whole.
const (
	longCommand = 512
	longSuffix  = 128 // for what may follow it, such as: and 12 more processes
)

// cutCommand cuts a command line to the length of record's.
func cutCommand(c string) string {
	if len(c) <= longCommand+longSuffix {
		return c
	}
	return strings.ToValidUTF8(c[:longCommand], "") + "…"
}

// header writes what was recorded and how certain it is.
func (pg *page) header(s *profile.Selection) {
	p := s.Profile
	m := &p.Meta
	title := clean(m.Command)
	if title == "" && len(p.Processes) > 0 {
		title = clean(p.Processes[0].Command)
	}
	if title != "" {
		title = cutCommand(title)
		if r := []rune(title); pg.width > 0 && len(r) > pg.width {
			title = string(r[:pg.width-1]) + "…"
		}
		pg.line("%s", pg.paint(bold, title))
	}
	var facts []string
	if n := len(p.Processes); n == 1 {
		if p.Processes[0].Runtime != "" {
			facts = append(facts, clean(p.Processes[0].Runtime))
		}
		facts = append(facts, fmt.Sprintf("pid %d", p.Processes[0].PID))
	} else if n > 1 {
		facts = append(facts, fmt.Sprintf("%d processes", n))
	}
	if m.Host != "" {
		facts = append(facts, clean(m.Host))
	}
	if !m.Start.IsZero() {
		facts = append(facts, m.Start.Format("2006-01-02 15:04:05 MST"))
	}
	if m.Describe != "" {
		facts = append(facts, clean(m.Describe))
	} else if m.Engine != "" {
		facts = append(facts, "engine "+clean(m.Engine))
	}
	pg.wrapped("  ", facts)
	pg.wrapped("  ", amounts(s))
	if len(p.Events) > 1 {
		var names []string
		for i, e := range p.Events {
			name := clean(e.Name)
			if i == s.Filter.Event {
				name += " (shown)"
			}
			names = append(names, name)
		}
		pg.wrapped("  events: ", names)
	}
	if keys := p.SomeLabelKeys(); len(keys) > 0 {
		for i := range keys {
			keys[i] = clean(keys[i])
		}
		pg.wrapped("  labels: ", keys)
	}
	if s.HasStates() {
		states := s.States()
		pg.line("  states: %s", statesOf(states[:], s.Chosen))
	}
	if rows := attribution.WaitsOf(s); len(rows) > 0 {
		var longest []string
		for i := range rows[:min(headWaits, len(rows))] {
			longest = append(longest, WaitText(&rows[i]))
		}
		pg.wrapped("  longest waits: ", longest)
	}
	if s.Chosen != s.All {
		pg.line("  %s", pg.paint(bold, passing(s)))
	}
	pg.quality(s.Quality)
	if cost := costFacts(m.Cost, p.SampleCount()); len(cost) > 0 {
		pg.wrapped("  cost: ", cost)
	}
	for _, n := range m.Notes {
		pg.line("  note: %s", clean(n))
	}
	if hint := waitingHint(p); hint != "" {
		pg.wrapped("  hint: ", []string{hint})
	}
	pg.line("")
}

func amounts(s *profile.Selection) []string {
	p := s.Profile
	facts := []string{plural(s.All.Samples, "sample", "samples")}
	if s.Filter.Event < len(p.Events) {
		e := p.Events[s.Filter.Event]
		if e.Unit != "count" || e.Kind != profile.EventSamples {
			facts[0] += " of " + clean(e.Name)
			facts = append(facts, amount(s.All.Weight, e.Unit)+" in all")
		}
		if e.Unit == "nanoseconds" {
			each := "one each " + amount(e.Period, e.Unit)
			switch {
			case s.HasStates() && unlike(s.All, e.Period):
				text := "a sample of a wait weighs as long as it was"
				if e.Period > 0 && s.States()[profile.StateRunning].Samples > 0 {
					text = each + " of running, " + text
				}
				facts = append(facts, text)
			case e.Period > 0:
				facts = append(facts, each)
			}
		}
	}
	if d := p.Meta.Duration; d > 0 {
		facts = append(facts, "recorded for "+duration(d))
	}
	facts = append(facts, grouped(p.Losses.Lost)+" lost")
	if n := p.Losses.Throttled; n > 0 {
		facts = append(facts, plural(n, "period throttled", "periods throttled"))
	}
	return facts
}

// unlike reports whether the weight of samples differs from that many samples of the nominal
// weight.
func unlike(all profile.Count, period uint64) bool {
	if period == 0 {
		return true
	}
	each := float64(all.Weight) / float64(max(all.Samples, 1)) / float64(period)
	return each < 0.95 || each > 1.05
}

// passing returns what part of the event's samples the filter leaves.
func passing(s *profile.Selection) string {
	verb := "pass"
	if s.Chosen.Samples == 1 {
		verb = "passes"
	}
	share := percent(float64(s.Chosen.Samples) / float64(max(s.All.Samples, 1)))
	text := fmt.Sprintf("of %s, %s (%s) %s", plural(s.All.Samples, "sample", "samples"), grouped(s.Chosen.Samples), share, verb)
	if w := percent(s.Chosen.Share(s.All)); w != share {
		text += fmt.Sprintf(": %s (%s) of %s", amount(s.Chosen.Weight, unit(s)), w, amount(s.All.Weight, unit(s)))
	}
	return text + unknownKinds(s.Profile.OfUnknownKind(s.Filter), s.All.Samples)
}

// unknownKinds returns how many samples a filter by kind of thread could not judge, "" for none.
func unknownKinds(n, all uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; left out are %s (%s) of threads whose kind is not known (--thread-kind %s)",
		grouped(n), percent(float64(n)/float64(max(all, 1))), profile.UnknownThreadKind)
}

// qualityFacts returns the shares of stacks by how certain they are (profile.CertaintyOf).
func qualityFacts(q profile.Quality) []string {
	share := func(n uint64) string { return finePercent(float64(n) / float64(max(q.Samples, 1))) }
	facts := []string{share(q.Complete) + " complete"}
	for _, f := range []struct {
		n    uint64
		name string
	}{{q.Stitched, "stitched"}, {q.Unnamed, "unnamed"}, {q.Heuristic, "heuristic"}, {q.Truncated, "truncated"}} {
		if f.n > 0 {
			facts = append(facts, share(f.n)+" "+f.name)
		}
	}
	if q.Broken > 0 {
		facts = append(facts, fmt.Sprintf("%s broken (mostly: %s)", share(q.Broken), q.MostFrequentEnd()))
	}
	return facts
}

func (pg *page) quality(q profile.Quality) {
	if q.Samples > 0 {
		pg.line("  stacks: %s", strings.Join(qualityFacts(q), ", "))
	}
}

// wrapped writes facts side by side, as many on a line as fit.
func (pg *page) wrapped(indent string, facts []string) {
	line := ""
	for _, f := range facts {
		next := line + " · " + f
		if line == "" {
			next = indent + f
		} else if pg.width > 0 && len([]rune(next)) > pg.width {
			pg.line("%s", line)
			indent = left("", len([]rune(indent)))
			next = indent + f
		}
		line = next
	}
	if line != "" {
		pg.line("%s", line)
	}
}
