package record

import (
	"os"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/hostinfo"
	"github.com/candid-profiler/candid/internal/profile"
)

// Live takes samples as they come: as Options.Live in place of the profile, which
// then has none. Everything is called from one goroutine, and what is handed over
// may only be read before the call returns.
type Live interface {
	// Begin says that sampling begins now, at time 0 of all samples.
	Begin(Begun)
	// Sample takes one sample. Its indices are b's: another b has others. Beside a
	// profile there is one b only, and the profile has the same indices.
	Sample(b *profile.Builder, s profile.Sample)
	// Batch is called after each batch of samples, also after an empty one, a
	// few times a second.
	Batch(b *profile.Builder, now Progress)
}

// Keeper is a Live beside a profile that may be all that keeps single samples.
type Keeper interface {
	// Kept reports whether it has all samples so far in safety, so that the profile need
	// not have them: of these it has only what they come to (profile.Builder.SumUp).
	// It is asked now and then after a batch.
	Kept() bool
}

// sumEvery is how many samples, or observations, a profile beside a Keeper has before it
// is asked: summing up goes over all that was summed up before.
const (
	sumEvery    = 1 << 16
	forgetEvery = 1 << 13
)

// SumUp sums up what a profile has, where it is much and live is a Keeper that has it.
func SumUp(b *profile.Builder, live Live) {
	k, ok := live.(Keeper)
	if !ok {
		return
	}
	if seen, _ := b.Observations(); (b.Unsummed() >= sumEvery || len(seen) >= forgetEvery) && k.Kept() {
		b.SumUp()
	}
}

// Begun is what is known of a recording when it begins.
type Begun struct {
	Start    time.Time
	Engine   string // its name
	Describe string // one line on how it samples
	Events   []profile.Event
}

// Progress is how far a recording has come.
type Progress struct {
	Elapsed time.Duration // since Begin
	Stats   capture.Stats // of the engine, up to half a second old
	OwnCPU  time.Duration // candid's own CPU time since before attaching, as old
}

// liveLimits are how large the tables behind samples may get before they are
// begun anew: names and stacks that a program once had come to more over days
// than those that it has.
var liveLimits = struct{ nodes, frames, keys, threads, processes int }{1 << 18, 1 << 17, 1 << 18, 1 << 14, 1 << 12}

// liveEvery is how often Stats are asked for: that costs system calls.
const liveEvery = 500 * time.Millisecond

// weighEvery is how often candid asks for its own memory, which costs more than all of
// those: a recording that is killed tells what it was a few seconds before.
const weighEvery = 5 * time.Second

const (
	// tellEvery is how long whoever takes the samples waits for a sleep that goes on: it
	// is what of the sleeps is missing in a recording that is killed.
	tellEvery = time.Second
	// tellMost is of how many of them a file is told in a second: 21 bytes each.
	tellMost = 1000
)

// add hands a sample to whoever wants it.
func (s *session) add(out profile.Sample) {
	if out.State == profile.StateSleeping {
		out.State = s.waiting(out.Node)
	}
	switch {
	case s.o.Live != nil:
		s.o.Live.Sample(s.b, out)
	case s.o.Beside != nil:
		s.b.Add(out)
		s.o.Beside.Sample(s.b, out)
	default:
		s.b.Add(out)
	}
	s.samples++
}

// begin tells the taker that sampling begins.
func (s *session) begin(engine capture.Engine, start time.Time) {
	s.pace.stir(start)
	m := s.b.Meta()
	m.Start, m.Engine, m.Describe = start, engine.Name(), engine.Describe()
	m.Version, m.Command = s.o.Version, s.what()
	m.Host, _ = os.Hostname()
	s.stats, s.copying = engine.Stats, copyingOf(engine)
	s.sparing, _ = engine.(capture.GoHinter)
	s.waking, _ = engine.(capture.WakeupFilter)
	s.follower, _ = engine.(capture.Follower)
	for _, p := range s.procs {
		s.spare(p)
		s.follow(p)
	}
	if t := s.consumer(); t != nil {
		t.Begin(Begun{start, engine.Name(), engine.Describe(), s.events})
	}
}

// copyingOf gives what asks an engine how long it was in the targets' way, which
// only the BPF engine knows.
func copyingOf(engine capture.Engine) func() time.Duration {
	c, ok := engine.(interface {
		ProgramCost() (runs, ns uint64, err error)
	})
	return func() time.Duration {
		if !ok {
			return 0
		}
		_, ns, err := c.ProgramCost()
		if err != nil {
			return 0
		}
		return time.Duration(ns)
	}
}

// consumer is who takes the samples as they come, nil if nobody does.
func (s *session) consumer() Live {
	if s.o.Live != nil {
		return s.o.Live
	}
	return s.o.Beside
}

// liveBatch ends a batch for the taker.
func (s *session) liveBatch() {
	taker := s.consumer()
	if taker == nil {
		return
	}
	if now := time.Now(); now.Sub(s.told) >= liveEvery {
		s.told = now
		s.progressed.Stats, s.progressed.OwnCPU = s.stats(), hostinfo.OwnCPU()-s.usage
		cost := &s.b.Meta().Cost
		*cost = profile.Cost{Copying: s.copying(), TargetCPU: s.targetSoFar(), OwnCPU: s.progressed.OwnCPU, Memory: cost.Memory, FirstWalked: s.first}
		if now.Sub(s.weighed) >= weighEvery {
			s.weighed, cost.Memory = now, PeakMemory()
		}
	}
	s.progressed.Elapsed = time.Duration(monotonic() - s.start)
	taker.Batch(s.b, s.progressed)
	SumUp(s.b, taker)
	if s.o.Live != nil && s.outgrown() {
		s.renew()
	}
}

func (s *session) outgrown() bool {
	l := &liveLimits
	if s.b.Nodes() > l.nodes || len(s.b.Frames()) > l.frames || len(s.b.Threads()) > l.threads || len(s.b.Processes()) > l.processes {
		return true
	}
	keys := len(s.kernelIn.keys)
	for _, p := range s.procs {
		keys += len(p.in.keys)
	}
	return keys > l.keys
}

// renew begins the tables behind samples anew. What lives on is entered again as
// it is met.
func (s *session) renew() {
	s.name(true)
	old := s.b
	s.b, s.waits = profile.NewBuilder(), nil
	clear(s.sleeps)
	*s.b.Meta() = *old.Meta()
	s.kernelIn = newInterner(s.b, s.kernel)
	for _, p := range s.procs {
		p.index = s.b.AddProcess(old.Processes()[p.index])
		p.in = p.in.anew(s.b)
		for tid, i := range p.threads {
			t := old.Threads()[i]
			p.threads[tid] = s.b.NewThread(t.PID, t.TID, t.Name)
			now := &s.b.Threads()[p.threads[tid]]
			now.OSName, now.Kind = t.OSName, t.Kind
		}
	}
}
