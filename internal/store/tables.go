package store

import (
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Names, stacks and threads that samples refer to are in tables, one set for each segment of a day, which only grow. Texts are
// indices into the table of strings, whose first is "".

// fn is a profile.Func.
type fn struct {
	name, raw, signature, module, file uint32 // strings
	start                              int32
	noName                             bool
}

// frame is a profile.Frame without its address and its index of bytecode: a line is enough to say
// where time went, and stacks that differ only in them are one.
type frame struct {
	fn    uint32
	line  int32
	kind  walk.Kind
	prov  walk.Provenance
	flags walk.FrameFlags
}

// process is a process and the service that it belongs to.
type process struct {
	pid                       uint32
	command, runtime, service uint32 // strings
}

// thread is a thread of a process.
type thread struct {
	process            uint32
	tid                uint32
	name, osName, kind uint32 // strings
}

// fresh are entries of tables that are not on disk.
type fresh struct {
	strings   []string
	fns       []fn
	frames    []frame
	nodes     []profile.Node
	processes []process
	threads   []thread
}

// counts are how many entries the tables have on disk.
type counts struct{ strings, fns, frames, nodes, processes, threads uint32 }

// index reads an index.
func (c *cursor) index() uint32 { return uint32(c.below(1 << 32)) }

// A block of processes: the indices of the first process and thread, then both lists as columns.
func (f *fresh) encodeProcesses(c counts) []byte {
	if len(f.processes)+len(f.threads) == 0 {
		return nil
	}
	b := binary.AppendUvarint(nil, uint64(c.processes))
	b = binary.AppendUvarint(b, uint64(c.threads))
	var col [9][]byte
	add := func(i int, now, was uint32) {
		col[i] = binary.AppendUvarint(col[i], zigzag(int64(now)-int64(was)))
	}
	b = binary.AppendUvarint(b, uint64(len(f.processes)))
	last := process{}
	for _, p := range f.processes {
		add(0, p.pid, last.pid)
		add(1, p.command, last.command)
		add(2, p.runtime, last.runtime)
		add(3, p.service, last.service)
		last = p
	}
	b = binary.AppendUvarint(b, uint64(len(f.threads)))
	before := thread{}
	for _, t := range f.threads {
		add(4, t.process, before.process)
		add(5, t.tid, before.tid)
		add(6, t.name, before.name)
		add(7, t.osName, t.name)
		add(8, t.kind, before.kind)
		before = t
	}
	for _, c := range col {
		b = appendColumn(b, c)
	}
	return b
}

func (f *fresh) decodeProcesses(raw []byte) (first counts, err error) {
	c := cursor{b: raw}
	first.processes, first.threads = c.index(), c.index()
	np := c.count()
	// The columns follow both counts, which are written before them.
	if c.bad {
		return first, errCut
	}
	nt := c.count()
	var col [9]cursor
	for i := range col {
		col[i] = c.column()
	}
	last := process{}
	for range np {
		last = process{
			pid: last.pid + uint32(col[0].signed()), command: last.command + uint32(col[1].signed()),
			runtime: last.runtime + uint32(col[2].signed()), service: last.service + uint32(col[3].signed()),
		}
		f.processes = append(f.processes, last)
	}
	before := thread{}
	for range nt {
		before = thread{
			process: before.process + uint32(col[4].signed()), tid: before.tid + uint32(col[5].signed()),
			name: before.name + uint32(col[6].signed()), osName: uint32(col[7].signed()), kind: before.kind + uint32(col[8].signed()),
		}
		before.osName += before.name
		f.threads = append(f.threads, before)
	}
	for i := range col {
		c.bad = c.bad || col[i].bad
	}
	if c.bad {
		return first, errCut
	}
	return first, nil
}
