package store

import (
	"time"

	"github.com/candid-profiler/candid/internal/profile"
)

// string returns the index of a text.
func (s *segment) string(text string) uint32 {
	i, ok := s.strings[text]
	if !ok {
		i = s.on.strings + uint32(len(s.fresh.strings))
		s.fresh.strings = append(s.fresh.strings, text)
		s.strings[text] = i
		s.bytes += len(text)
	}
	return i
}

// intern enters what a profile refers to in the tables of a segment, each at its first use.
type intern struct {
	s       *segment
	p       *profile.Profile
	service func(process int) string
	// By index in p: the index in the tables, plus 1.
	fns, frames, nodes, threads []uint32
	processOf                   map[int]int // by PID: the last process of p with it
	path                        []uint32
}

func newIntern(s *segment, p *profile.Profile, service func(process int) string) *intern {
	in := &intern{
		s: s, p: p, service: service,
		fns: make([]uint32, len(p.Funcs)), frames: make([]uint32, len(p.Frames)), nodes: make([]uint32, len(p.Nodes)), threads: make([]uint32, len(p.Threads)),
		processOf: make(map[int]int, len(p.Processes)),
	}
	for i := range p.Processes {
		in.processOf[p.Processes[i].PID] = i
	}
	in.nodes[profile.RootNode] = profile.RootNode + 1
	return in
}

func (in *intern) fn(i uint32) uint32 {
	if in.fns[i] == 0 {
		s, f := in.s, &in.p.Funcs[i]
		name, module := lasting(f.Name), lasting(f.Module)
		v := fn{name: s.string(name), raw: s.string(lasting(f.Raw)), signature: s.string(f.Signature), module: s.string(module), file: s.string(f.File), start: f.Start, noName: f.NoName}
		at, ok := s.fns[v]
		if !ok {
			at = s.on.fns + uint32(len(s.fresh.fns))
			s.fresh.fns = append(s.fresh.fns, v)
			s.fns[v] = at
		}
		in.fns[i] = at + 1
	}
	return in.fns[i] - 1
}

func (in *intern) frame(i uint32) uint32 {
	if in.frames[i] == 0 {
		s, f := in.s, &in.p.Frames[i]
		v := frame{fn: in.fn(f.Func), line: f.Line, kind: f.Kind, prov: f.Prov, flags: f.Flags}
		at, ok := s.frames[v]
		if !ok {
			at = s.on.frames + uint32(len(s.fresh.frames))
			s.fresh.frames = append(s.fresh.frames, v)
			s.frames[v] = at
		}
		in.frames[i] = at + 1
	}
	return in.frames[i] - 1
}

// node enters a stack, the outermost frame first.
func (in *intern) node(i uint32) uint32 {
	in.path = in.path[:0]
	for in.nodes[i] == 0 {
		in.path = append(in.path, i)
		i = in.p.Nodes[i].Parent
	}
	s, at := in.s, in.nodes[i]-1
	for k := len(in.path) - 1; k >= 0; k-- {
		before := s.trie.Len()
		parent, frame := at, in.frame(in.p.Nodes[in.path[k]].Frame)
		if at = s.trie.Child(parent, frame); s.trie.Len() > before {
			s.fresh.nodes = append(s.fresh.nodes, profile.Node{Parent: parent, Frame: frame})
		}
		in.nodes[in.path[k]] = at + 1
	}
	return at
}

func (in *intern) thread(i uint32) uint32 {
	if in.threads[i] == 0 {
		s, t := in.s, &in.p.Threads[i]
		v := process{pid: uint32(t.PID)}
		if k, ok := in.processOf[t.PID]; ok {
			p := &in.p.Processes[k]
			v.command, v.runtime, v.service = s.string(p.Command), s.string(p.Runtime), s.string(in.service(k))
		}
		of, added := s.processes.place(v, s.on.processes+uint32(len(s.fresh.processes)))
		if added {
			s.fresh.processes = append(s.fresh.processes, v)
		}
		w := thread{process: of, tid: uint32(t.TID), name: s.string(t.Name), osName: s.string(t.OSName), kind: s.string(t.Kind)}
		at, added := s.threads.place(w, s.on.threads+uint32(len(s.fresh.threads)))
		if added {
			s.fresh.threads = append(s.fresh.threads, w)
		}
		s.serviceOf[at] = v.service
		in.threads[i] = at + 1
	}
	return in.threads[i] - 1
}

// encode returns the content of a block of samples of a profile that began at from.
func (s *segment) encode(p *profile.Profile, service func(process int) string, from time.Time) content {
	in := newIntern(s, p, service)
	m := &p.Meta
	a := about{
		host: s.string(m.Host), engine: s.string(m.Engine), describe: s.string(m.Describe), command: s.string(m.Command), candid: s.string(m.Version),
		losses: p.Losses, cost: m.Cost,
	}
	for _, n := range m.Notes {
		a.notes = append(a.notes, s.string(n))
	}
	for _, name := range p.Syscalls {
		a.syscalls = append(a.syscalls, s.string(name))
	}
	for _, e := range p.Events {
		a.events = append(a.events, event{name: s.string(e.Name), unit: s.string(e.Unit), kind: e.Kind, period: e.Period})
	}
	in.enter()
	s.serviceOf = make(map[uint32]uint32)
	kinds := make(map[kind]uint32)
	entries := make([]entry, 0, p.SampleCount())
	// The clock may have been stepped between the two moments: samples keep their distances.
	shift := int64(0)
	if !m.Start.IsZero() {
		if d := m.Start.Sub(from); d > 0 && d < time.Hour {
			shift = int64(d)
		}
	}
	p.Each(func(sm *profile.Sample, n uint64) {
		k := kind{event: uint32(sm.Event), syscall: uint32(sm.Syscall), state: sm.State, end: sm.End, flags: sm.Flags}
		ki, ok := kinds[k]
		if !ok {
			ki = uint32(len(a.kinds))
			a.kinds = append(a.kinds, k)
			kinds[k] = ki
		}
		e := entry{thread: in.thread(sm.Thread), kind: ki, node: in.node(sm.Node), n: n, weight: sm.Weight, time: sm.Time + uint64(shift)}
		if !k.spans(p.Events) {
			e.time /= uint64(quantum)
		}
		entries = append(entries, e)
	})
	a.needs = s.total()
	s.processes.forget()
	s.threads.forget()
	return content{about: a.append(nil), parts: in.divide(&a, entries)}
}
