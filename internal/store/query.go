package store

import (
	"fmt"
	"time"

	"github.com/candid-profiler/candid/internal/memlimit"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Query selects what Profile returns.
type Query struct {
	From, To time.Time // To is not included
	Service  string    // exact name; "" is all
	Keep     profile.Keep
	Overflow profile.Overflow // of a Keep that packs samples; nil: none
	// Every is how long samples of a thread in the same stack become one sample with the weight of
	// all; 0: not at all. It makes long ranges small.
	Every time.Duration
}

// Profile returns the samples of a range of time as one profile, whose times count from the
// beginning of the range, or from that of the first samples if it is later. Its Processes are those
// that have samples. Times of samples are those of the beginning of the second in which they were
// taken, but the ends of waits are exact.
func (r *Reader) Profile(q Query) (*profile.Profile, error) {
	q.From, q.To = bounded(q.From), bounded(q.To)
	m := memlimit.Start()
	defer m.Stop()
	b := profile.NewBuilder()
	b.Limit(m)
	if q.Keep != profile.KeepSamples {
		b.Keep(q.Keep)
		if q.Overflow != nil {
			b.Overflow(q.Overflow)
		}
	}
	begin, err := r.begin(q.From, q.To)
	if err != nil {
		return nil, err
	}
	a := &answer{q: q, first: begin, b: b, m: m, events: map[event2]uint16{}, processes: map[processKey]int{}}
	if err := r.blocks(q.From, q.To, q.Service, m, a.add); err != nil {
		return nil, err
	}
	if err := a.leave(); err != nil {
		return nil, err
	}
	p := b.Finish()
	a.describe(p)
	for _, line := range r.Damage() {
		if len(p.Meta.Notes) < mostNotes {
			p.Meta.Notes = append(p.Meta.Notes, line)
		}
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	return p, p.Check()
}

// mostNotes bounds the notes of a profile.
const mostNotes = 100

type event2 struct {
	name, unit string
	kind       profile.EventKind
}

type processKey struct {
	pid                       uint32
	command, runtime, service string
}

// answer is a profile that is being put together from blocks.
type answer struct {
	q         Query
	b         *profile.Builder
	m         *memlimit.Meter
	events    map[event2]uint16
	list      []profile.Event
	processes map[processKey]int

	first, last int64 // the range of time of the blocks, ns since 1970
	covered     time.Duration
	meta        profile.Meta
	notes       noteSet
	losses      profile.Losses
	cost        profile.Cost

	// Indices of the current segment, by index in its tables: the index in the Builder, plus 1.
	seg                         *opened
	fns, frames, nodes, threads []uint32
	wanted                      []int8 // by thread; 0 not known, 1 yes, -1 no
	path                        []uint32
	lost                        uint32 // the Builder's frame of what is lost, plus 1
	sums                        sumTable
	bucket                      int64 // of sums: see bucketOf
}

// add adds a block.
func (a *answer) add(s *opened, k *block) error {
	if a.seg != s {
		if err := a.leave(); err != nil {
			return err
		}
		a.seg = s
		a.fns, a.frames = make([]uint32, len(s.tables.fns)), make([]uint32, len(s.tables.frames))
		a.nodes, a.threads = make([]uint32, len(s.tables.nodes)), make([]uint32, len(s.tables.threads))
		a.wanted = make([]int8, len(s.tables.threads))
		a.nodes[profile.RootNode] = profile.RootNode + 1
	}
	a.note(k)
	if bucket := a.bucketOf(k.header.from); bucket != a.bucket {
		if err := a.leave(); err != nil {
			return err
		}
		a.bucket = bucket
	}
	kinds := make([]profile.Sample, len(k.kinds))
	for i, kd := range k.kinds {
		kinds[i] = profile.Sample{Event: a.event(&k.events[kd.event]), State: kd.state, End: kd.end, Flags: kd.flags}
		if int(kd.syscall) < len(k.syscalls) {
			kinds[i].Syscall = a.b.Syscall(s.text(k.syscalls[kd.syscall]))
		}
	}
	cut := newCut(k, a.q.From, a.q.To)
	start, summed := k.header.from-a.first, a.q.Keep >= profile.KeepSums || a.q.Every > 0
	k.untimed = summed && cut.whole
	return k.each(a.wants, func(e *entry, times []uint32) {
		smp := kinds[e.kind]
		smp.Thread, smp.Node = e.thread, e.node
		if summed && !k.spanning[e.kind] {
			if weight, n := cut.part(e, times); n > 0 {
				a.sums.add(&smp, weight, n)
			}
			return
		}
		smp.Thread, smp.Node = a.thread(e.thread), a.node(e.node)
		if k.spanning[e.kind] {
			smp.Time, smp.Weight = uint64(max(start+int64(e.time), 0)), e.weight
			if w, n := cut.part(e, times); n > 0 {
				if !cut.whole {
					smp.Weight = w
					smp.Time = min(smp.Time, uint64(max(start+int64(cut.to), 0)))
				}
				a.b.Add(smp)
			}
			return
		}
		for i, t := range times {
			at := int64(t) * int64(quantum)
			if cut.whole || uint64(at) >= cut.from && uint64(at) < cut.to {
				smp.Time, smp.Weight = uint64(max(start+at, 0)), e.share(i)
				a.b.Add(smp)
			}
		}
	})
}

// wants reports whether a thread belongs to the service.
func (a *answer) wants(thread uint32) bool {
	if a.q.Service == "" {
		return true
	}
	if int(thread) >= len(a.wanted) {
		return a.q.Service == lostText
	}
	if a.wanted[thread] == 0 {
		a.wanted[thread] = -1
		if a.seg.text(a.seg.process(thread).service) == a.q.Service {
			a.wanted[thread] = 1
		}
	}
	return a.wanted[thread] > 0
}

// leave hands the sums of a segment to the Builder.
func (a *answer) leave() error {
	a.sums.each(func(s *profile.Sample, n uint64) {
		smp := *s
		smp.Thread, smp.Node = a.thread(s.Thread), a.node(s.Node)
		if a.q.Every > 0 {
			smp.Time = uint64(max(a.bucket*int64(a.q.Every)-a.first, 0))
			a.b.Add(smp)
			return
		}
		a.b.AddSum(smp, n)
	})
	a.sums = sumTable{}
	return a.m.Check()
}

// bucketOf returns which of the times of Query.Every a block belongs to.
func (a *answer) bucketOf(ns int64) int64 {
	if a.q.Every <= 0 {
		return 0
	}
	return ns / int64(a.q.Every)
}

// note takes over what a block says of all its samples.
func (a *answer) note(k *block) {
	s := a.seg
	if a.covered == 0 {
		a.meta = profile.Meta{Host: s.text(k.host), Engine: s.text(k.engine), Describe: s.text(k.describe), Command: s.text(k.command), Version: s.text(k.candid)}
	}
	from, to := max(k.header.from, a.q.From.UnixNano()), min(k.header.to, a.q.To.UnixNano())
	a.covered += time.Duration(max(to-from, 1))
	a.last = max(a.last, to)
	for _, n := range k.notes {
		a.notes.add(s.text(n))
	}
	a.losses.Lost += k.losses.Lost
	a.losses.Throttled += k.losses.Throttled
	a.cost.Copying += k.cost.Copying
	a.cost.TargetCPU += k.cost.TargetCPU
	a.cost.OwnCPU += k.cost.OwnCPU
	a.cost.Memory = max(a.cost.Memory, k.cost.Memory)
}

// describe completes the profile.
func (a *answer) describe(p *profile.Profile) {
	notes := p.Meta.Notes
	p.Meta = a.meta
	p.Meta.Notes = append(a.notes.texts(), notes...)
	p.Meta.Start, p.Meta.Duration = a.q.From, 0
	if a.covered > 0 {
		p.Meta.Start = time.Unix(0, a.first)
		p.Meta.Duration = time.Duration(a.last - a.first)
	}
	if a.q.Every > 0 {
		p.Meta.Notes = append(p.Meta.Notes, fmt.Sprintf("the range is long: what a thread did in one stack in %v is one sample here, with the time of all", a.q.Every))
	}
	if gap := p.Meta.Duration - a.covered; gap > 2*time.Second {
		p.Meta.Notes = append(p.Meta.Notes, fmt.Sprintf("of %v the store has %v: nothing was stored in the rest", p.Meta.Duration.Round(time.Second), a.covered.Round(time.Second)))
	}
	p.Meta.Cost, p.Losses, p.Events = a.cost, a.losses, a.list
}

func (a *answer) event(e *event) uint16 {
	k := event2{a.seg.text(e.name), a.seg.text(e.unit), e.kind}
	i, ok := a.events[k]
	if !ok && len(a.list) < 1<<16-1 {
		i = uint16(len(a.list))
		a.events[k] = i
		a.list = append(a.list, profile.Event{Name: k.name, Kind: k.kind, Unit: k.unit, Period: e.period})
	}
	return i
}

func (a *answer) fn(i uint32) uint32 {
	if int(i) >= len(a.fns) || a.seg.tables.fns[i].name == lostEntry {
		return a.b.Func(profile.Func{Name: lostText, NoName: true})
	}
	if a.fns[i] == 0 {
		s, f := a.seg, &a.seg.tables.fns[i]
		a.fns[i] = 1 + a.b.Func(profile.Func{
			Name: s.text(f.name), Raw: s.text(f.raw), Signature: s.text(f.signature), Module: s.text(f.module), File: s.text(f.file), Start: f.start, NoName: f.noName,
		})
	}
	return a.fns[i] - 1
}

// lostFrame returns the frame that stands for what was in a damaged block.
func (a *answer) lostFrame() uint32 {
	return a.b.Frame(profile.Frame{Func: a.fn(lostEntry), BCI: -1, Kind: walk.KindUnknown, Prov: walk.Heuristic})
}

func (a *answer) frame(i uint32) uint32 {
	if int(i) >= len(a.frames) || a.seg.tables.frames[i].fn == lostEntry {
		return a.lostFrame()
	}
	if a.frames[i] == 0 {
		f := &a.seg.tables.frames[i]
		a.frames[i] = 1 + a.b.Frame(profile.Frame{Func: a.fn(f.fn), Line: f.line, BCI: -1, Kind: f.kind, Prov: f.prov, Flags: f.flags})
	}
	return a.frames[i] - 1
}

// node returns the Builder's node of a stack, whose parents have lower indices.
func (a *answer) node(i uint32) uint32 {
	if int(i) >= len(a.nodes) {
		return a.b.Node(profile.RootNode, a.lostFrame())
	}
	nodes := a.seg.tables.nodes
	a.path = a.path[:0]
	for a.nodes[i] == 0 {
		a.path = append(a.path, i)
		if nodes[i].Frame == lostEntry {
			break
		}
		i = nodes[i].Parent
	}
	at := uint32(profile.RootNode)
	if a.nodes[i] != 0 {
		at = a.nodes[i] - 1
	}
	for k := len(a.path) - 1; k >= 0; k-- {
		at = a.b.Node(at, a.frame(nodes[a.path[k]].Frame))
		a.nodes[a.path[k]] = at + 1
	}
	return at
}

func (a *answer) thread(i uint32) uint32 {
	if int(i) >= len(a.threads) {
		return a.b.NamedThread(0, 0, lostText)
	}
	if a.threads[i] != 0 {
		return a.threads[i] - 1
	}
	s, t := a.seg, &a.seg.tables.threads[i]
	p := s.process(i)
	k := processKey{p.pid, s.text(p.command), s.text(p.runtime), s.text(p.service)}
	if _, ok := a.processes[k]; !ok {
		a.processes[k] = a.b.AddProcess(profile.Process{PID: int(p.pid), Command: k.command, Runtime: k.runtime})
	}
	at := a.b.NamedThread(int(p.pid), int(t.tid), s.text(t.name))
	th := &a.b.Threads()[at]
	th.OSName, th.Kind = s.text(t.osName), s.text(t.kind)
	if t.kind == lostEntry {
		th.Kind = ""
	}
	a.threads[i] = at + 1
	return at
}
