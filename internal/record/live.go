package record

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/hostinfo"
	"github.com/candid-profiler/candid/internal/profile"
)

// Live receives samples as they come. As Options.Live it replaces the profile, which then has no
// samples. Everything is called from one goroutine, and arguments may only be read until the call
// returns.
type Live interface {
	// Begin says that sampling begins now, at time 0 of all samples.
	Begin(Begun)
	// Sample receives one sample. Its indices refer to b and have no meaning in another b. Beside a
	// profile there is only one b, and the profile has the same indices.
	Sample(b *profile.Builder, s profile.Sample)
	// Batch is called after each batch of samples, also after an empty one, a
	// few times a second.
	Batch(b *profile.Builder, now Progress)
}

// Keeper is a Live beside a profile that may be the only place where single samples are kept.
type Keeper interface {
	// Kept reports whether it has safely stored all samples so far, so that the profile need only
	// keep their sums (profile.Builder.SumUp). It is called now and then after a batch.
	Kept() bool
}

// sumEvery is how many samples, or observations, a profile beside a Keeper holds before Kept is
// called: summing up goes over everything that was summed up before.
const (
	sumEvery    = 1 << 16
	forgetEvery = 1 << 13
)

// SumUp sums up a profile's samples if there are many and live is a Keeper that has stored them.
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

// Progress is how far a recording has got.
type Progress struct {
	Elapsed time.Duration // since Begin
	Stats   capture.Stats // up to half a second old
	OwnCPU  time.Duration // candid's own CPU time since before attaching, equally old
}

// liveLimits are how large the tables behind samples may get before they are rebuilt: over days,
// the names and stacks that a program once had add up to more than those that it has now.
var liveLimits = struct{ nodes, frames, keys, threads, processes int }{1 << 18, 1 << 17, 1 << 18, 1 << 14, 1 << 12}

// liveEvery is how often Stats is called, which costs system calls.
const liveEvery = 500 * time.Millisecond

// weighEvery is how often candid reads its own memory use, which costs more than all of those: a
// recording that is killed contains the value of a few seconds before.
const weighEvery = 5 * time.Second

const (
	// tellEvery is how long a sleep that goes on is held back from the receiver of the samples:
	// that much of the sleeps is missing in a recording that is killed.
	tellEvery = time.Second
	// tellMost is how many of them are written to a file in a second: 21 bytes each.
	tellMost = 1000
)

// delivery is how far the receiver of the samples was told of a recording.
type delivery struct {
	told     time.Time // when progress was last read
	weighed  time.Time // when candid's own memory use was
	progress Progress
}

// add hands a sample to its receivers.
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

// begin tells the receiver that sampling begins.
func (s *session) begin(engine capture.Engine, start time.Time) {
	s.pace.wantSoon(start)
	m := s.b.Meta()
	m.Start, m.Engine, m.Describe = start, engine.Name(), engine.Describe()
	m.Version, m.Command = s.o.Version, s.what()
	m.Host, _ = os.Hostname()
	s.engine = samplerOf(engine)
	s.from.day = start
	for _, p := range s.procs {
		s.spare(p)
		s.follow(p)
	}
	if t := s.consumer(); t != nil {
		t.Begin(Begun{start, engine.Name(), engine.Describe(), s.events})
	}
}

// samplerOf returns an engine with what it can do besides.
func samplerOf(engine capture.Engine) sampler {
	e := sampler{Engine: engine, copying: copyingOf(engine)}
	e.hints, _ = engine.(capture.GoHinter)
	e.wakeups, _ = engine.(capture.WakeupFilter)
	e.follower, _ = engine.(capture.Follower)
	return e
}

// copyingOf returns a function that returns how long an engine has interrupted the targets, which
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

// consumer returns the receiver of samples as they come, nil if there is none.
func (s *session) consumer() Live {
	if s.o.Live != nil {
		return s.o.Live
	}
	return s.o.Beside
}

// liveBatch ends a batch for the receiver.
func (s *session) liveBatch() {
	taker := s.consumer()
	if taker == nil {
		return
	}
	if now := time.Now(); now.Sub(s.out.told) >= liveEvery {
		s.out.told = now
		s.out.progress.Stats, s.out.progress.OwnCPU = s.from.sinceThen(s.engine.Stats()), hostinfo.OwnCPU()-s.from.usage
		cost := &s.b.Meta().Cost
		*cost = profile.Cost{Copying: s.engine.copying() - s.from.copying, TargetCPU: s.targetSoFar(), OwnCPU: s.out.progress.OwnCPU, Memory: cost.Memory, FirstWalked: s.from.first}
		if now.Sub(s.out.weighed) >= weighEvery {
			s.out.weighed, cost.Memory = now, PeakMemory()
		}
	}
	s.out.progress.Elapsed = time.Duration(monotonic() - s.start)
	taker.Batch(s.b, s.out.progress)
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
	keys := len(s.kernelOnly.in.keys)
	for _, p := range s.procs {
		keys += len(p.in.keys)
	}
	return keys > l.keys
}

// renew rebuilds the tables behind samples. Entries that are still in use are added again as they
// occur.
func (s *session) renew() {
	s.name(true)
	old := s.b
	s.b = profile.NewBuilder()
	*s.b.Meta() = *old.Meta()
	clear(s.sleeps)
	s.carryOn(old)
}

// carryOn adds what samples refer to, as far as it still exists, to a Builder that takes the place of
// an old one.
func (s *session) carryOn(old *profile.Builder) {
	s.waits = nil
	s.kernelOnly.in = newInterner(s.b, s.kernel)
	procs := slices.SortedFunc(maps.Values(s.procs), func(a, b *process) int { return cmp.Compare(a.index, b.index) })
	for _, p := range procs {
		p.index = s.b.AddProcess(old.Processes()[p.index])
		p.in = p.in.anew(s.b)
		for _, tid := range slices.Sorted(maps.Keys(p.threads)) {
			t := old.Threads()[p.threads[tid]]
			p.threads[tid] = s.b.NewThread(t.PID, t.TID, t.Name)
			now := &s.b.Threads()[p.threads[tid]]
			now.OSName, now.Kind = t.OSName, t.Kind
		}
	}
}
