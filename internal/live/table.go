package live

import (
	"cmp"
	"slices"
	"time"

	"github.com/candid-profiler/candid/internal/attribution"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/record"
	"github.com/candid-profiler/candid/internal/walk"
)

// Query selects what to show.
type Query struct {
	// Window is how far back to look, at most MaxWindow.
	Window time.Duration
	// Thread is the only thread whose methods count; nil for all.
	Thread *ThreadID
	// Threads asks for the thread table.
	Threads bool
	// Open are the methods whose callers are asked for.
	Open map[Method]*Open
}

// ThreadID identifies a thread.
type ThreadID struct{ PID, TID int }

// Table is the answer to a Query. It belongs to the caller.
type Table struct {
	Begun     record.Begun
	Notes     []string
	Processes []profile.Process
	Elapsed   time.Duration // since sampling began
	Window    time.Duration // covered by the counts of the window

	Recent, Since Sums
	// Shown is the sum that Rows are shares of: Recent.Count, or the one thread's.
	Shown profile.Count
	// Load is the weight in each Interval that is over, the oldest first.
	Load []uint64

	Rows    []Row       // unsorted
	Threads []ThreadRow // unsorted
	// Callers are those of the methods asked for, as far as they are in the window.
	Callers map[Method]*Caller
	// Waits are the longest waits in the window, or in the one thread, as far as stacks are kept:
	// none if most of the time was not spent waiting.
	Waits []attribution.Wait
	// Forgotten is the self, since the start, of methods that were dropped because there were too
	// many.
	Forgotten profile.Count
}

// CPUTime reports whether the sampled event is time on a CPU.
func (t *Table) CPUTime() bool { return cpuTime(t.Begun.Events) }

func cpuTime(events []profile.Event) bool {
	return len(events) > 0 && events[0].Unit == "nanoseconds" && events[0].Kind.CPUTime()
}

// Sums are sums over all samples.
type Sums struct {
	Count   profile.Count
	Quality profile.Quality
	Lost    uint64        // samples
	Unkept  uint64        // samples whose callers and threads are not known because there were too many stacks
	Own     time.Duration // candid's own CPU time
	States  States
}

// Row is a method.
type Row struct {
	Method
	Kind walk.Kind // of most of its samples
	// Self and Total are those of the window; see profile.MethodCount.
	Self, Total profile.Count
	// SinceSelf and SinceTotal are since the start; zero for a query of one thread.
	SinceSelf, SinceTotal profile.Count
}

// ThreadRow is a thread.
type ThreadRow struct {
	ThreadID
	Name          string
	State         profile.State // of its latest sample
	Recent, Since profile.Count
	// Hottest is the method with most self in the window; zero if there is none. If the thread
	// mostly waited it is the one that waited longest, and Waits is how it waited.
	Hottest      Method
	HottestShare float64 // of the thread's weight
	Waits        profile.State
	Load         []uint64 // as Table.Load
}

func (t *totals) sums() Sums {
	return Sums{Count: t.count, Quality: t.quality, Lost: t.lost, Unkept: t.unkept, Own: t.own, States: t.states}
}

// Table answers a query for the current state.
func (m *Model) Table(q Query) *Table {
	m.mu.Lock()
	defer m.mu.Unlock()
	in, from := m.window(uint64(min(max(q.Window, 0), MaxWindow)))
	t := &Table{
		Begun: m.begun, Notes: slices.Clone(m.notes), Processes: slices.Clone(m.procs),
		Elapsed: time.Duration(m.now), Window: time.Duration(m.now - min(from, m.now)),
		Since: m.allOf.sums(), Forgotten: m.forgotten, Callers: make(map[Method]*Caller),
	}
	var recent totals
	for _, s := range in {
		recent.add(&s.all)
	}
	t.Recent = recent.sums()
	t.Load = m.load(func(s *slot) uint64 { return s.all.count.Weight })
	all := func(entry) bool { return true }
	if q.Thread == nil {
		t.Rows, t.Shown = m.rows(in), recent.count
	} else {
		id, ok := m.find(*q.Thread)
		all = func(e entry) bool { return ok && e.thread == id }
		if ok {
			t.Rows = m.threadRows(in, id)
			for _, s := range in {
				t.Shown.Add(s.thread[id])
			}
		}
	}
	t.Waits = m.waits(in, all)
	if q.Threads {
		t.Threads = m.threadTable(in)
	}
	if len(q.Open) > 0 {
		stacks := kept(in, all)
		for method, open := range q.Open {
			t.Callers[method] = m.callers(stacks, method, open)
		}
	}
	return t
}

// find returns the latest thread with these numbers.
func (m *Model) find(id ThreadID) (uint32, bool) {
	for i := len(m.threads) - 1; i >= 0; i-- {
		if t := &m.threads[i]; t.tid == id.TID && t.pid == id.PID {
			return uint32(i), true
		}
	}
	return 0, false
}

// load returns the sum of each slot that is over, the oldest first.
func (m *Model) load(of func(*slot) uint64) []uint64 {
	over := int64(m.now / uint64(Interval)) // slots before this one
	n := min(over, int64(MaxWindow/Interval))
	out := make([]uint64, n)
	for i := range m.ring {
		s := &m.ring[i]
		if at := s.number - (over - n); s.used && at >= 0 && at < n {
			out[at] = of(s)
		}
	}
	return out
}

// faceSums are the sums of faces in the window and since the start.
type faceSums struct{ recent, since []selfTotal }

func (m *Model) rows(in []*slot) []Row {
	sums := faceSums{make([]selfTotal, len(m.faces)), make([]selfTotal, len(m.faces))}
	copy(sums.since, m.since)
	for i := range m.ring {
		if s := &m.ring[i]; s.used {
			for _, c := range m.fold(s) {
				sums.since[c.face].add(c.selfTotal)
			}
		}
	}
	for _, s := range in {
		for _, c := range m.fold(s) {
			sums.recent[c.face].add(c.selfTotal)
		}
	}
	return m.merge(sums)
}

func (m *Model) threadRows(in []*slot, thread uint32) []Row {
	sums := faceSums{make([]selfTotal, len(m.faces)), make([]selfTotal, len(m.faces))}
	for _, c := range m.foldThread(in, thread) {
		sums.recent[c.face] = c.selfTotal
	}
	return m.merge(sums)
}

// merge merges sums by face into rows by method.
func (m *Model) merge(sums faceSums) []Row {
	var rows []Row
	at := make([]int, len(m.methods)) // index into rows, plus 1
	most := make([]uint64, len(m.methods))
	for i, f := range m.faces {
		recent, since := sums.recent[i], sums.since[i]
		if recent.total == (profile.Count{}) && since.total == (profile.Count{}) {
			continue
		}
		if at[f.method] == 0 {
			rows = append(rows, Row{Method: m.methods[f.method], Kind: f.kind})
			at[f.method] = len(rows)
		}
		r := &rows[at[f.method]-1]
		r.Self.Add(recent.self)
		r.Total.Add(recent.total)
		r.SinceSelf.Add(since.self)
		r.SinceTotal.Add(since.total)
		// The kind in the window takes precedence over the one before.
		weight := recent.total.Samples<<32 | since.total.Samples&(1<<32-1)
		if weight > most[f.method] {
			most[f.method], r.Kind = weight, f.kind
		}
	}
	return rows
}

func (m *Model) threadTable(in []*slot) []ThreadRow {
	type key struct{ thread, method uint32 }
	self := make(map[key]uint64)
	recent := make([]profile.Count, len(m.threads))
	for _, s := range in {
		for th, c := range s.thread {
			recent[th].Add(c)
		}
		for e, c := range s.stacks {
			if e.node != profile.RootNode {
				self[key{e.thread, m.faces[m.trie.At(e.node).Frame].method}] += c.Weight
			}
		}
	}
	hottest := make([]key, len(m.threads))
	for k, n := range self {
		h := &hottest[k.thread]
		if had := self[*h]; h.method == 0 || n > had || n == had && k.method < h.method {
			*h = k
		}
	}
	rows := make([]ThreadRow, len(m.threads))
	waits := m.waitsBy(in, func(e entry) (uint32, bool) { return e.thread, true })
	for i := range m.threads {
		t := &m.threads[i]
		r := &rows[i]
		*r = ThreadRow{ThreadID: ThreadID{t.pid, t.tid}, Name: t.name, State: t.state, Recent: recent[i], Since: t.since}
		if h := hottest[i]; h.method != 0 {
			r.Hottest = m.methods[h.method]
			r.HottestShare = float64(self[h]) / float64(max(recent[i].Weight, 1))
		}
		if longest := waits[uint32(i)].longest(); len(longest) > 0 {
			w := &longest[0]
			r.Hottest, r.Waits = Method{w.Name, w.Module}, w.State
			r.HottestShare = float64(w.Weight) / float64(max(recent[i].Weight, 1))
		}
	}
	m.threadLoads(rows)
	return rows
}

// threadLoads sets the load over time of threads that were seen lately.
func (m *Model) threadLoads(rows []ThreadRow) {
	over := int64(m.now / uint64(Interval))
	n := min(over, int64(MaxWindow/Interval))
	for i := range m.ring {
		s := &m.ring[i]
		at := s.number - (over - n)
		if !s.used || at < 0 || at >= n {
			continue
		}
		for th, c := range s.thread {
			if rows[th].Load == nil {
				rows[th].Load = make([]uint64, n)
			}
			rows[th].Load[at] = c.Weight
		}
	}
}

// BySelf compares rows in the order of reports: the most self first, then total, then name.
func BySelf(a, b *Row) int {
	return cmp.Or(cmp.Compare(b.Self.Weight, a.Self.Weight), cmp.Compare(b.Self.Samples, a.Self.Samples), ByTotal(a, b))
}

// ByTotal compares rows by total, then name.
func ByTotal(a, b *Row) int {
	return cmp.Or(cmp.Compare(b.Total.Weight, a.Total.Weight), cmp.Compare(b.Total.Samples, a.Total.Samples),
		cmp.Compare(b.SinceTotal.Weight, a.SinceTotal.Weight), ByName(a, b))
}

// ByName compares rows by name, then module.
func ByName(a, b *Row) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Module, b.Module))
}
