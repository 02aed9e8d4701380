// Package live keeps what `candid top` shows: for each second of the last minute the stacks in
// which each thread was seen, and sums since the start. Its memory is bounded however long it runs.
package live

import (
	"sync"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/record"
	"github.com/candid-profiler/candid/internal/walk"
)

const (
	// Interval is the time that one slot covers.
	Interval = time.Second
	// MaxWindow is the longest window that can be asked for.
	MaxWindow = 60 * time.Second

	// A window begins and ends within a slot, and samples may be late.
	slots = int64(MaxWindow/Interval) + 4
)

// limits bound the model's memory. Data that exceeds them is counted, not kept.
type limits struct {
	entries int // distinct (thread, stack) in one slot
	nodes   int // of stacks
	faces   int // distinct (method, kind)
	threads int
	name    int // bytes
}

var defaultLimits = limits{entries: 1 << 13, nodes: 1 << 20, faces: 1 << 16, threads: 1 << 13, name: 4096}

// Method identifies a method: those with the same name in the same module are one.
type Method struct{ Name, Module string }

// face is a method as one kind of code.
type face struct {
	method uint32 // index into Model.methods
	kind   walk.Kind
}

// Model takes samples from one goroutine and answers queries from others.
type Model struct {
	mu     sync.Mutex
	limits limits
	begun  record.Begun
	notes  []string
	procs  []profile.Process
	now    uint64 // ns since the start
	state  record.Progress
	spans  bool // a sample's weight is the time before it, which may be long

	names
	ring    [slots]slot
	newest  int64       // number of the newest slot, -1: none
	since   []selfTotal // by face: sums of slots that have left the ring
	threads []thread
	tids    map[[2]int]uint32 // the latest thread with these numbers
	allOf   totals            // since the start, of everything
	// forgotten is the self of methods that were dropped to save memory.
	forgotten profile.Count

	of      translation
	scratch folder
}

// selfTotal is the self and total of a method: see profile.MethodCount.
type selfTotal struct{ self, total profile.Count }

func (a *selfTotal) add(b selfTotal) {
	a.self.Add(b.self)
	a.total.Add(b.total)
}

// totals are the sums that a header shows.
type totals struct {
	count   profile.Count
	quality profile.Quality
	lost    uint64
	unkept  uint64 // samples of which only the methods are known: no callers
	own     time.Duration
	states  States
}

// States is weight by profile.State.
type States [16]uint64

func (t *totals) add(o *totals) {
	t.count.Add(o.count)
	t.quality.Merge(o.quality)
	t.lost += o.lost
	t.unkept += o.unkept
	t.own += o.own
	for i, w := range o.states {
		t.states[i] += w
	}
}

// thread is a thread that was seen.
type thread struct {
	pid, tid int
	name     string
	kind     string // as in profile.Thread
	since    profile.Count
	state    profile.State // of its latest sample
	bound    bool          // it has an index in the present Builder
}

// New returns an empty model.
func New() *Model {
	m := &Model{limits: defaultLimits, newest: -1, tids: make(map[[2]int]uint32)}
	m.names = newNames()
	return m
}

// Begin implements record.Live.
func (m *Model) Begin(b record.Begun) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begun = b
	m.spans = len(b.Events) > 0 && b.Events[0].Unit == "nanoseconds" && !cpuTime(b.Events)
}

// Begun returns what was passed to Begin.
func (m *Model) Begun() record.Begun {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.begun
}

// Sample implements record.Live.
func (m *Model) Sample(b *profile.Builder, s profile.Sample) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.follow(b)
	th := m.thread(b, s.Thread)
	c := profile.Count{Samples: 1, Weight: s.Weight}
	m.allOf.add(totalsOf(&s, c))
	m.threads[th].since.Add(c)
	m.threads[th].state = s.State
	sl := m.slot(s.Time)
	sl.all.quality.Add(&s)
	if !m.spans || s.Weight <= uint64(Interval)/4 {
		m.put(sl, b, &s, th, c)
		return
	}
	// The sample stands for the time up to now, which is divided among slots; what is older than
	// the ring goes to its oldest slot.
	at, left := s.Time, s.Weight
	for n := sl.number; left > 0; n-- {
		part := left
		if begin := uint64(n) * uint64(Interval); n > 0 && n > m.newest-slots+1 && at >= begin {
			part = min(left, at-begin)
			at = begin
		} else {
			left = part
		}
		m.put(m.slot(uint64(n)*uint64(Interval)), b, &s, th, profile.Count{Samples: c.Samples, Weight: part})
		left -= part
		c.Samples = 0
		if n == 0 {
			break
		}
	}
}

func totalsOf(s *profile.Sample, c profile.Count) *totals {
	t := &totals{count: c}
	t.quality.Add(s)
	t.states[int(s.State)%len(t.states)] = c.Weight
	return t
}

// put adds a sample's count to a slot.
func (m *Model) put(sl *slot, b *profile.Builder, s *profile.Sample, th uint32, c profile.Count) {
	sl.all.count.Add(c)
	sl.all.states[int(s.State)%len(States{})] += c.Weight
	sl.addThread(th, c)
	sl.dirty = true
	if node, ok := m.node(b, s.Node); ok && sl.addStack(entry{th, node, s.State}, c, m.limits.entries) {
		return
	}
	sl.all.unkept += c.Samples
	m.allOf.unkept += c.Samples
	m.scratch.begin(len(m.faces), len(m.methods))
	m.scratch.stack(c, func(yield func(uint32, face) bool) {
		for n := s.Node; n != profile.RootNode; n = b.At(n).Parent {
			if b.Frames()[b.At(n).Frame].Flags&walk.Skid != 0 {
				continue
			}
			f := m.face(b, b.At(n).Frame)
			m.scratch.grow(len(m.faces), len(m.methods))
			if !yield(f, m.faces[f]) {
				return
			}
		}
	})
	sl.addExtra(m.scratch.take(nil))
}

// Batch implements record.Live.
func (m *Model) Batch(b *profile.Builder, p record.Progress) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.follow(b)
	now := uint64(max(p.Elapsed, 0))
	sl := m.slot(now)
	if lost := p.Stats.Lost; lost > m.state.Stats.Lost {
		sl.all.lost += lost - m.state.Stats.Lost
		m.allOf.lost = lost
	}
	sl.all.own += p.OwnCPU - m.state.OwnCPU
	m.allOf.own = p.OwnCPU
	m.now, m.state = max(m.now, now), p
	m.describe(b)
}

// describe copies what the Builder says of processes and threads, which changes in place, and what
// was not available.
func (m *Model) describe(b *profile.Builder) {
	const mostNotes, mostProcs = 20, 1000
	notes := b.Meta().Notes
	m.notes = append(m.notes[:0], notes[:min(len(notes), mostNotes)]...)
	procs := b.Processes()
	m.procs = append(m.procs[:0], procs[:min(len(procs), mostProcs)]...)
	threads := b.Threads()
	for i, id := range m.of.threads {
		if id != 0 {
			m.threads[id-1].name, m.threads[id-1].kind = m.cut(threads[i].Name), threads[i].Kind
		}
	}
}

// Clone returns a separate model with everything that is known now, to which nothing more is added.
// The two share only what never changes.
func (m *Model) Clone() *Model {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &Model{
		limits: m.limits, begun: m.begun,
		now: m.now, state: m.state, newest: m.newest, allOf: m.allOf, forgotten: m.forgotten, spans: m.spans,
	}
	c.notes = append(c.notes, m.notes...)
	c.procs = append(c.procs, m.procs...)
	c.threads = append(c.threads, m.threads...)
	c.since = append(c.since, m.since...)
	// Existing faces and methods are never written again.
	c.names = names{methods: m.methods[:len(m.methods):len(m.methods)], faces: m.faces[:len(m.faces):len(m.faces)], trie: m.trie.Sealed()}
	for i := range m.ring {
		m.ring[i].copyTo(&c.ring[i])
	}
	return c
}
