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

// A block of names: the indices of the first string, function and frame, then each list as columns.
func (f *fresh) encodeNames(c counts) []byte {
	if len(f.strings)+len(f.fns)+len(f.frames) == 0 {
		return nil
	}
	var b, texts, lengths []byte
	for _, n := range []uint32{c.strings, c.fns, c.frames} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	b = binary.AppendUvarint(b, uint64(len(f.strings)))
	for _, s := range f.strings {
		lengths = binary.AppendUvarint(lengths, uint64(len(s)))
		texts = append(texts, s...)
	}
	b = appendColumn(appendColumn(b, lengths), texts)
	var columns [9][]byte
	b = binary.AppendUvarint(b, uint64(len(f.fns)))
	before := fn{}
	for _, v := range f.fns {
		delta := func(i int, now, was uint32) {
			columns[i] = binary.AppendUvarint(columns[i], zigzag(int64(now)-int64(was)))
		}
		delta(0, v.name, before.name)
		delta(1, v.raw, 0)
		delta(2, v.signature, 0)
		delta(3, v.module, before.module)
		delta(4, v.file, before.file)
		no := uint64(0)
		if v.noName {
			no = 1
		}
		columns[5] = binary.AppendUvarint(columns[5], zigzag(int64(v.start))<<1|no)
		before = v
	}
	for _, col := range columns[:6] {
		b = appendColumn(b, col)
	}
	b = binary.AppendUvarint(b, uint64(len(f.frames)))
	last := frame{}
	for _, v := range f.frames {
		columns[6] = binary.AppendUvarint(columns[6], zigzag(int64(v.fn)-int64(last.fn)))
		columns[7] = binary.AppendUvarint(columns[7], zigzag(int64(v.line)))
		columns[8] = append(columns[8], byte(v.kind), byte(v.prov), byte(v.flags))
		last = v
	}
	for _, col := range columns[6:] {
		b = appendColumn(b, col)
	}
	return b
}

// decodeNames appends a block of names to f, and returns the indices of its first entries.
func (f *fresh) decodeNames(raw []byte) (first counts, err error) {
	c := cursor{b: raw}
	first = counts{strings: c.index(), fns: c.index(), frames: c.index()}
	n := c.count()
	lengths := c.column()
	texts := string(c.bytes())
	for range n {
		l := lengths.number()
		if l > uint64(len(texts)) || lengths.bad {
			return first, errCut
		}
		f.strings = append(f.strings, texts[:l])
		texts = texts[l:]
	}
	n = c.count()
	var col [6]cursor
	for i := range col {
		col[i] = c.column()
	}
	before := fn{}
	for range n {
		v := fn{
			name: before.name + uint32(col[0].signed()), raw: uint32(col[1].signed()), signature: uint32(col[2].signed()),
			module: before.module + uint32(col[3].signed()), file: before.file + uint32(col[4].signed()),
		}
		start := col[5].number()
		v.start, v.noName = int32(unzigzag(start>>1)), start&1 != 0
		f.fns = append(f.fns, v)
		before = v
	}
	n = c.count()
	fns, lines, what := c.column(), c.column(), c.bytes()
	if c.bad || len(what) != 3*n {
		return first, errCut
	}
	last := uint32(0)
	for i := range n {
		last += uint32(fns.signed())
		v := frame{fn: last, line: int32(lines.signed()), kind: walk.Kind(what[3*i]), prov: walk.Provenance(what[3*i+1]), flags: walk.FrameFlags(what[3*i+2])}
		if v.kind >= walk.NumKinds || v.prov > walk.Heuristic {
			return first, errCut
		}
		f.frames = append(f.frames, v)
	}
	for i := range col {
		c.bad = c.bad || col[i].bad
	}
	if c.bad || fns.bad || lines.bad {
		return first, errCut
	}
	return first, nil
}

// index reads an index.
func (c *cursor) index() uint32 { return uint32(c.below(1 << 32)) }

// A block of nodes: the index of the first, then how far before each its parent is, and its frame.
func (f *fresh) encodeNodes(c counts) []byte {
	if len(f.nodes) == 0 {
		return nil
	}
	b := binary.AppendUvarint(nil, uint64(c.nodes))
	b = binary.AppendUvarint(b, uint64(len(f.nodes)))
	var parents, frames []byte
	last := uint32(0)
	for i, n := range f.nodes {
		parents = binary.AppendUvarint(parents, uint64(c.nodes+uint32(i)-n.Parent-1))
		frames = binary.AppendUvarint(frames, zigzag(int64(n.Frame)-int64(last)))
		last = n.Frame
	}
	return appendColumn(appendColumn(b, parents), frames)
}

func (f *fresh) decodeNodes(raw []byte) (first counts, err error) {
	c := cursor{b: raw}
	first.nodes = c.index()
	n := c.count()
	parents, frames := c.column(), c.column()
	last := uint32(0)
	for i := range n {
		at := uint64(first.nodes) + uint64(i)
		before := parents.number()
		last += uint32(frames.signed())
		if before >= at || at >= 1<<32 || parents.bad || frames.bad {
			return first, errCut
		}
		f.nodes = append(f.nodes, profile.Node{Parent: uint32(at - before - 1), Frame: last})
	}
	if c.bad {
		return first, errCut
	}
	return first, nil
}

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
