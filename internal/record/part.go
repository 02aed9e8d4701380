package record

import (
	"fmt"
	"slices"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/hostinfo"
	"github.com/candid-profiler/candid/internal/profile"
)

// origin is where the part of a recording began that is being recorded.
type origin struct {
	day     time.Time     // by the time of day
	stats   capture.Stats // the engine's until then
	copying time.Duration // likewise
	usage   time.Duration // candid's own CPU time until then; before attaching for the first part
	first   time.Duration // from the start of attaching to the first walked sample; 0 for later parts
}

// sinceThen returns what an engine has done in the part.
func (o *origin) sinceThen(now capture.Stats) capture.Stats {
	less := func(now, before uint64) uint64 { return now - min(before, now) }
	now.Samples, now.Lost = less(now.Samples, o.stats.Samples), less(now.Lost, o.stats.Lost)
	now.Throttled, now.Bytes = less(now.Throttled, o.stats.Throttled), less(now.Bytes, o.stats.Bytes)
	return now
}

// part is what was recorded from Start, or a Rotate, to the next Rotate or Stop. It no longer belongs
// to the session.
type part struct {
	b        *profile.Builder
	start    uint64 // ns, CLOCK_MONOTONIC
	length   time.Duration
	describe string
	command  string
	events   []profile.Event
	costs    Costs
	losses   []capture.Loss
	skids    skids
	ghosts   vanished
	ends     []End
}

// endPart ends the part that is being recorded. ended is the engine if it has ended, else nil.
func (s *session) endPart(ended capture.Engine) *part {
	s.name(true)
	for _, p := range s.procs {
		s.flushNames(p)
		s.noteMaps(p)
		s.accountCPU(p, s.cpuTimes(p, ended))
	}
	s.endBranches()
	s.observe(true)
	s.out.told = time.Time{}
	s.liveBatch()
	if n, ok := ended.(capture.Noter); ok {
		for _, line := range n.Notes() {
			s.note(line)
		}
	}
	targetCPU, copying, stats := s.targetCPU(), s.engine.copying()-s.from.copying, s.engine.Stats()
	p := &part{b: s.b, start: s.start, length: time.Since(s.from.day), describe: s.engine.Describe(), command: s.what(), events: s.events, skids: s.skids, ghosts: s.ghosts}
	if stats.Ended > s.start { // walking what was left may have taken a while
		p.length = min(p.length, time.Duration(stats.Ended-s.start))
	}
	if l, ok := s.engine.Engine.(capture.Losing); ok {
		for _, l := range l.Losses() {
			if l.From >= s.start || s.parts == 0 {
				p.losses = append(p.losses, l)
			}
		}
	}
	p.costs = Costs{
		Stats: s.from.sinceThen(stats), Target: copying, OwnCPU: hostinfo.OwnCPU() - s.from.usage, TargetCPU: targetCPU, MaxRSS: PeakMemory(),
		FirstWalked: s.from.first,
	}
	p.ends, s.ends.seen = s.ends.seen, nil
	return p
}

// nextPart ends the part that is being recorded and begins the next one, whose samples go to beside
// too.
func (s *session) nextPart(beside Live) *part {
	p := s.endPart(nil)
	s.parts++
	old := s.b
	s.b = profile.NewBuilder()
	m := s.b.Meta()
	*m = *old.Meta()
	m.Notes, m.Cost = slices.Clone(s.lasting), profile.Cost{}
	s.start, m.Start = moment()
	s.from = origin{day: m.Start, stats: s.engine.Stats(), copying: s.engine.copying(), usage: hostinfo.OwnCPU()}
	// The time between the two moments belongs to the part that ends.
	p.length = time.Duration(s.start - p.start)
	s.carryOn(old)
	clear(s.services.bare)
	s.sleeps.carryOn(old, s.b)
	s.samples, s.unseen, s.skids = 0, 0, skids{}
	s.ghosts.next()
	s.account.ended, s.account.uncounted = 0, false
	for _, p := range s.procs {
		p.markCPU(s.cpuTimes(p, nil))
	}
	s.observer = observer{}
	for _, p := range s.procs {
		if p.able.tells != nil {
			p.able.tells.Redescribe()
		}
	}
	s.o.Beside, s.out = beside, delivery{}
	if beside != nil {
		beside.Begin(Begun{m.Start, m.Engine, m.Describe, s.events})
	}
	return p
}

// result returns what was recorded. It is called without the session's goroutine, which may be
// recording the next part.
func (p *part) result(s *session) *Result {
	prof := p.b.Finish()
	m := &prof.Meta
	m.Duration, m.Describe, m.Command = p.length, p.describe, p.command
	prof.Events = p.events
	note := func(line string) { addNote(m, line) }
	if t := s.late.Load(); t != nil {
		note(t.String())
	}
	for _, line := range lossNotes(p.losses, p.start) {
		note(line)
	}
	if err := s.kernel.Err(); err != nil {
		note(fmt.Sprintf("kernel functions have no names: %v", err))
	}
	prof.Losses = profile.Losses{Lost: p.costs.Stats.Lost, Throttled: p.costs.Stats.Throttled}
	m.Cost = p.costs.kept()
	for _, line := range []string{unseen(prof, p.costs.TargetCPU), p.skids.note(), p.ghosts.note(), s.room.note(), s.budget.Note()} {
		if line != "" {
			note(line)
		}
	}
	prof.Clean()
	res := &Result{Profile: prof, Costs: p.costs, Ends: p.ends}
	res.filter(s.o.Filter)
	return res
}

// mostNotes bounds the notes of a recording.
const mostNotes = 100

// addNote keeps a line about what was not available, once.
func addNote(m *profile.Meta, line string) {
	if len(m.Notes) < mostNotes && !slices.Contains(m.Notes, line) {
		m.Notes = append(m.Notes, line)
	}
}
