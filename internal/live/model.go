// Package live keeps what `candid top` shows: for each second of the last
// minute which stacks which threads were seen in, and sums since the start.
// Its memory is bounded however long it runs.
package live

import (
	"sync"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/record"
	"github.com/candid-profiler/candid/internal/walk"
)

const (
	// Interval is what one slot holds.
	Interval = time.Second
	// MaxWindow is the longest window that can be asked for.
	MaxWindow = 60 * time.Second

	// A window begins and ends within a slot, and samples may be late.
	slots = int64(MaxWindow/Interval) + 4
)

// limits bound the model's memory. What goes beyond is counted, not kept.
type limits struct {
	entries int // distinct (thread, stack) in one slot
	nodes   int // of stacks
	faces   int // distinct (method, kind)
	threads int
	name    int // bytes
}

var defaultLimits = limits{entries: 1 << 13, nodes: 1 << 20, faces: 1 << 16, threads: 1 << 13, name: 4096}

// Method names a method: what has the same name in the same module is one.
type Method struct{ Name, Module string }

// face is a method as one kind of code.
type face struct {
	method uint32 // index into Model.methods
	kind   walk.Kind
}

// Model takes samples from one goroutine and answers questions from others.
type Model struct {
	mu     sync.Mutex
	limits limits
	begun  record.Begun
	notes  []string
	procs  []profile.Process
	now    uint64 // ns since the start
	state  record.Progress

	names
	ring    [slots]slot
	newest  int64       // number of the newest slot, -1: none
	since   []selfTotal // by face: of slots that have left the ring
	threads []thread
	tids    map[[2]int]uint32 // the latest thread with these numbers
	allOf   totals            // since the start, of everything
	// forgotten is what methods had as self that were given up to save memory.
	forgotten profile.Count

	of      translation
	scratch folder
}

// selfTotal is what a method had: see profile.MethodCount.
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
}

func (t *totals) add(o *totals) {
	t.count.Add(o.count)
	t.quality.Merge(o.quality)
	t.lost += o.lost
	t.unkept += o.unkept
	t.own += o.own
}

// thread is a thread that was seen.
type thread struct {
	pid, tid int
	name     string
	since    profile.Count
	state    profile.State // of its latest sample
	bound    bool          // it has an index in the present Builder
}

// New gives an empty model.
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
}

// Begun is what was said when sampling began.
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
	sl := m.slot(s.Time)
	th := m.thread(b, s.Thread)
	c := profile.Count{Samples: 1, Weight: s.Weight}
	sl.all.count.Add(c)
	sl.all.quality.Add(&s)
	m.allOf.count.Add(c)
	m.allOf.quality.Add(&s)
	m.threads[th].since.Add(c)
	m.threads[th].state = s.State
	sl.addThread(th, c)
	sl.dirty = true
	if node, ok := m.node(b, s.Node); ok {
		if sl.addStack(entry{th, node}, c, m.limits.entries) {
			return
		}
	}
	sl.all.unkept++
	m.allOf.unkept++
	m.scratch.begin(len(m.faces), len(m.methods))
	m.scratch.stack(c, func(yield func(uint32, face) bool) {
		for n := s.Node; n != profile.RootNode; n = b.At(n).Parent {
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

// describe takes what the Builder says of processes and threads, which changes
// in place, and what could not be had.
func (m *Model) describe(b *profile.Builder) {
	const mostNotes, mostProcs = 20, 1000
	notes := b.Meta().Notes
	m.notes = append(m.notes[:0], notes[:min(len(notes), mostNotes)]...)
	procs := b.Processes()
	m.procs = append(m.procs[:0], procs[:min(len(procs), mostProcs)]...)
	threads := b.Threads()
	for i, id := range m.of.threads {
		if id != 0 {
			m.threads[id-1].name = m.cut(threads[i].Name)
		}
	}
}

// Clone gives a model of its own with all that is known now; it takes nothing
// more. The two share only what never changes.
func (m *Model) Clone() *Model {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &Model{
		limits: m.limits, begun: m.begun,
		now: m.now, state: m.state, newest: m.newest, allOf: m.allOf, forgotten: m.forgotten,
	}
	c.notes = append(c.notes, m.notes...)
	c.procs = append(c.procs, m.procs...)
	c.threads = append(c.threads, m.threads...)
	c.since = append(c.since, m.since...)
	// Nodes, faces and methods that exist are never written to again.
	c.names = names{methods: m.methods[:len(m.methods):len(m.methods)], faces: m.faces[:len(m.faces):len(m.faces)]}
	trie := *m.trie
	c.trie = &trie
	for i := range m.ring {
		m.ring[i].copyTo(&c.ring[i])
	}
	return c
}
