package report

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/candid-profiler/candid/internal/attribution"
	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/profile"
)

// Costs are what a recording cost, and where it went. Values of 0 or "" are not known and not
// shown.
type Costs struct {
	Stats       capture.Stats
	Idle        uint64        // samples of no thread: the CPU was idle
	Target      time.Duration // how long the copying took, without the surrounding timer interrupt; 0: not known
	TargetCPU   time.Duration // CPU time of all targets; 0: not known
	OwnCPU      time.Duration // candid's own CPU time
	MaxRSS      uint64        // bytes: candid's peak memory
	FirstWalked time.Duration // from the start of attaching to the first walked sample
	File        string        // what was written
	FileSize    int64         // bytes
	Ended       []Ended       // targets that ended while they were recorded
}

// Summary writes what record prints at its end.
func Summary(w io.Writer, p *profile.Profile, c Costs, o Options) error {
	o = o.withDefaults()
	s := p.Select(o.Filter)
	pg := newPage(w, o)
	threads := 0
	for _, t := range s.Threads {
		if t.Samples > 0 {
			threads++
		}
	}
	facts := []string{plural(s.Chosen.Samples, "sample", "samples")}
	if threads > 0 {
		facts[0] += " of " + plural(uint64(threads), "thread", "threads")
	}
	if p.Meta.Duration > 0 {
		facts[0] += " in " + duration(p.Meta.Duration)
	}
	facts = append(facts, grouped(p.Losses.Lost)+" lost")
	if p.Losses.Throttled > 0 {
		facts = append(facts, plural(p.Losses.Throttled, "period throttled", "periods throttled"))
	}
	if c.Idle > 0 {
		facts = append(facts, grouped(c.Idle)+" idle")
	}
	pg.item("samples", facts)
	if len(p.Events) > 1 {
		pg.item("events", eventCounts(p, o.Filter.Event))
	}
	if s.Quality.Samples > 0 {
		pg.item("stacks", qualityFacts(s.Quality))
	}
	if !o.NoMethods {
		pg.hottest(s)
		pg.otherEvents(s)
	}
	pg.kernel(s)
	pg.costs(c, p.SampleCount())
	// If the report was printed before, its header has the notes.
	for _, n := range p.Meta.Notes {
		if o.NoMethods {
			break
		}
		pg.item("note", []string{clean(n)})
	}
	if hint := waitingHint(p); hint != "" && !o.NoMethods {
		pg.item("hint", []string{hint})
	}
	if c.File != "" {
		name := clean(c.File)
		if c.FileSize > 0 {
			name += " (" + size(uint64(c.FileSize)) + ")"
		}
		pg.item("written", []string{name})
	}
	if err := pg.w.Flush(); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

// eventCounts returns how many samples each event has, and of which one the rest is shown.
func eventCounts(p *profile.Profile, shown int) []string {
	n := p.EventSamples()
	facts := make([]string, len(n))
	for i, e := range p.Events {
		facts[i] = clean(e.Name) + " " + grouped(n[i])
		if i == shown {
			facts[i] += " (shown)"
		}
	}
	return facts
}

const itemWidth = 9

// item writes a label and the facts about it.
func (pg *page) item(name string, facts []string) {
	line := ""
	indent := pg.paint(bold, left(name, itemWidth))
	for i, f := range facts {
		switch {
		case i == 0:
			line = f
		case pg.width > 0 && itemWidth+len([]rune(line))+len([]rune(f))+3 > pg.width:
			pg.line("%s%s", indent, line)
			line, indent = f, left("", itemWidth)
		default:
			line += " · " + f
		}
	}
	pg.line("%s%s", indent, line)
}

// mostHottest is how many methods the summary names.
const mostHottest = 5

func (pg *page) hottest(s *profile.Selection) {
	if s.Chosen.Samples == 0 {
		return
	}
	if waits := attribution.WaitsOf(s); len(waits) > 0 {
		pg.longestWaits(s, waits)
		return
	}
	pg.hottestMethods(s)
}

// otherEvents writes, for a recording of several events, what a recording of one event says: where
// the time went that the event shown does not cover, waits beside CPU time or CPU time beside
// waits.
func (pg *page) otherEvents(s *profile.Selection) {
	p, told := s.Profile, len(attribution.WaitsOf(s)) > 0
	for i, e := range p.Events {
		if i == s.Filter.Event || e.Unit != "nanoseconds" || told != (e.Kind == profile.EventCPU) || !told && e.Kind != profile.EventWall && e.Kind != profile.EventOffCPU {
			continue
		}
		f := s.Filter
		f.Event = i
		other := p.Select(f)
		if other.Chosen.Samples == 0 {
			continue
		}
		waits := attribution.WaitsOf(other)
		if told == (len(waits) > 0) {
			continue
		}
		pg.item("of "+clean(e.Name), []string{plural(other.Chosen.Samples, "sample", "samples"), amount(other.Chosen.Weight, e.Unit) + " in all"})
		if len(waits) > 0 {
			pg.longestWaits(other, waits)
		} else {
			pg.hottestMethods(other)
		}
	}
}

func (pg *page) hottestMethods(s *profile.Selection) {
	rows := s.List()
	label := pg.paint(bold, left("hottest", itemWidth))
	for i := range rows[:min(mostHottest, len(rows))] {
		m := &rows[i]
		if m.Self.Samples == 0 {
			break
		}
		if i == 0 {
			pg.line("%s%s", label, pg.paint(dim, "  self   total"))
			label = left("", itemWidth)
		}
		f := s.Func(m.Method)
		pg.line("%s%s  %s  %s%s", label, right(percent(m.Self.Share(s.Chosen)), 6), right(percent(m.Total.Share(s.Chosen)), 6),
			pg.named(f.Name, f.Module, kindColors[m.Kind()], pg.room(itemWidth+16+len(remark(m)))), pg.paint(dim, remark(m)))
	}
}

// kernel warns if the samples and the kernel's clock disagree, and names the thread with the
// largest difference.
func (pg *page) kernel(s *profile.Selection) {
	n := uint64(0)
	var worst profile.ThreadCount
	gap := func(r profile.ThreadCount) float64 { return math.Abs(float64(r.Samples.Samples) - r.Expected) }
	for _, r := range s.ByThread() {
		if r.Disagrees {
			n++
			if n == 1 || gap(r) > gap(worst) {
				worst = r
			}
		}
	}
	if n > 0 {
		pg.item("warning", []string{
			plural(n, "thread", "threads") + " got another share of samples than of the CPU time that the kernel counted",
			fmt.Sprintf("most of all %s: %s where %s were expected", clean(s.Profile.Threads[worst.Thread].Name),
				plural(worst.Samples.Samples, "sample", "samples"), grouped(uint64(worst.Expected+0.5))),
		})
	}
}

func (pg *page) costs(c Costs, samples uint64) {
	facts := costFacts(profile.Cost{Copying: c.Target, TargetCPU: c.TargetCPU, OwnCPU: c.OwnCPU, Memory: c.MaxRSS, FirstWalked: c.FirstWalked}, samples)
	if len(facts) > 0 {
		pg.item("cost", facts)
	}
}

// costFacts returns what a recording cost, as far as that is known; samples is how many it has.
func costFacts(c profile.Cost, samples uint64) (facts []string) {
	if c.Samples > 0 {
		samples = c.Samples
	}
	if c.Copying > 0 {
		f := "copying " + duration(c.Copying)
		if c.TargetCPU > 0 {
			f += fmt.Sprintf(" (%.2f%% of the CPU time that was recorded)", 100*float64(c.Copying)/float64(c.TargetCPU))
		}
		facts = append(facts, f)
	}
	if c.OwnCPU > 0 {
		f := "candid " + duration(c.OwnCPU) + " of CPU"
		if samples > 0 {
			f += " (" + duration(c.OwnCPU/time.Duration(samples)) + " a sample)"
		}
		facts = append(facts, f)
	}
	if c.Memory > 0 {
		facts = append(facts, size(c.Memory)+" of memory")
	}
	if c.FirstWalked > 0 {
		facts = append(facts, "first sample walked after "+duration(c.FirstWalked))
	}
	if c.Samples > 0 && len(facts) > 0 {
		facts = append(facts, fmt.Sprintf("all that of the whole recording: %s samples in %s", grouped(c.Samples), duration(c.Recorded)))
	}
	return facts
}
