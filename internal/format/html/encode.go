package html

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// The page's data is one stream, deflated and then written in base64, whose
// alphabet has nothing that HTML gives a meaning to:
//
//	uint32   length of the JSON that follows, little endian
//	JSON     header, below
//	columns  each: uint32 number of values, then that many unsigned LEB128
//
// in this order: symbols (function, kind), nodes without the root (depth, symbol,
// line, lines, derived, heuristic, stitched, coarse, virtual), cells (node,
// thread, event, count, weight). Columns marked with a d below hold the zigzag
// difference to the value before. A missing function is 0, function i is i+1.
//
// The five shares of a node are 0 to 255: 0 only if no sample, 255 only if all.
type header struct {
	Version  int             `json:"version"` // of this format
	Title    string          `json:"title"`
	Command  string          `json:"command"`
	Host     string          `json:"host"`
	Start    string          `json:"start"`    // RFC 3339, "" if unknown
	Duration float64         `json:"duration"` // seconds
	Engine   string          `json:"engine"`
	Describe string          `json:"describe"`
	Candid   string          `json:"candid"` // version of candid
	Notes    []string        `json:"notes"`
	Events   []headerEvent   `json:"events"`
	Process  []headerProcess `json:"processes"`
	Threads  []headerThread  `json:"threads"`
	Quality  headerQuality   `json:"quality"`
	Lost     uint64          `json:"lost"`
	Throttle uint64          `json:"throttled"`
	Kinds    []string        `json:"kinds"`
	Strings  []string        `json:"strings"`
	// Funcs holds six indices into Strings for each function: name, raw name,
	// signature, module, file, and whether it has no name (0 or 1).
	Funcs []uint32 `json:"funcs"`
	Split string   `json:"split"`
}

type headerEvent struct {
	Name   string `json:"name"`
	Unit   string `json:"unit"`
	Period uint64 `json:"period"`
}

type headerProcess struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
	Runtime string `json:"runtime"`
}

type headerThread struct {
	PID  int    `json:"pid"`
	TID  int    `json:"tid"`
	Name string `json:"name"`
	OS   string `json:"os"`
}

type headerQuality struct {
	Samples   uint64         `json:"samples"`
	Complete  uint64         `json:"complete"`
	Stitched  uint64         `json:"stitched"`
	Heuristic uint64         `json:"heuristic"`
	Truncated uint64         `json:"truncated"`
	Broken    uint64         `json:"broken"`
	Reasons   []headerReason `json:"reasons"` // most frequent first
}

type headerReason struct {
	Name    string `json:"name"`
	Samples uint64 `json:"samples"`
}

// kindNames are the names of the legend, by walk.Kind. The last is for frames
// that stand for the missing part of a stack.
var kindNames = [walk.NumKinds + 1]string{
	walk.KindUnknown:      "unknown",
	walk.KindKernel:       "kernel",
	walk.KindNative:       "native",
	walk.KindInterpreted:  "interpreted",
	walk.KindCompiled:     "compiled",
	walk.KindC1:           "C1",
	walk.KindC2:           "C2",
	walk.KindInlined:      "inlined",
	walk.KindStub:         "stub",
	walk.KindNativeMethod: "native method",
	walk.KindAOT:          "AOT",
	walk.NumKinds:         "no stack",
}

// stringTable stores each string once.
type stringTable struct {
	list  []string
	index map[string]uint32
}

func (t *stringTable) add(s string) uint32 {
	i, ok := t.index[s]
	if !ok {
		i = uint32(len(t.list))
		t.list = append(t.list, visible(s))
		t.index[s] = i
	}
	return i
}

func newHeader(p *profile.Profile, t *tree, o Options) (*header, []uint32) {
	h := &header{
		Version: 1, Title: visible(title(p, o)), Command: visible(p.Meta.Command), Host: visible(p.Meta.Host),
		Duration: p.Meta.Duration.Seconds(), Engine: visible(p.Meta.Engine), Describe: visible(p.Meta.Describe),
		Candid: visible(p.Meta.Version), Notes: []string{}, Lost: p.Losses.Lost, Throttle: p.Losses.Throttled,
		Kinds: kindNames[:], Split: o.Split.String(),
		Events: []headerEvent{}, Process: []headerProcess{}, Threads: []headerThread{},
	}
	if !p.Meta.Start.IsZero() {
		h.Start = p.Meta.Start.Format("2006-01-02T15:04:05Z07:00")
	}
	for _, n := range p.Meta.Notes {
		h.Notes = append(h.Notes, visible(n))
	}
	for _, e := range p.Events {
		h.Events = append(h.Events, headerEvent{visible(e.Name), visible(e.Unit), e.Period})
	}
	for _, x := range p.Processes {
		h.Process = append(h.Process, headerProcess{x.PID, visible(x.Command), visible(x.Runtime)})
	}
	for _, x := range p.Threads {
		h.Threads = append(h.Threads, headerThread{x.PID, x.TID, visible(x.Name), visible(x.OSName)})
	}
	h.Quality = newQuality(p.Quality())

	// Only functions that are in the graph are written, in the order of the symbols.
	table := &stringTable{index: make(map[string]uint32)}
	table.add("")
	funcs := make([]uint32, len(t.symbols)) // per symbol, 1-based
	known := make(map[uint32]uint32)
	for i, s := range t.symbols {
		if s.fn == noFunc {
			h.Funcs = append(h.Funcs, table.add(endName(s.end)), 0, 0, 0, 0, 0)
			funcs[i] = uint32(len(h.Funcs) / 6)
			continue
		}
		if known[s.fn] == 0 {
			f := &p.Funcs[s.fn]
			noName := uint32(0)
			if f.NoName {
				noName = 1
			}
			h.Funcs = append(h.Funcs, table.add(f.Name), table.add(f.Raw), table.add(f.Signature),
				table.add(f.Module), table.add(f.File), noName)
			known[s.fn] = uint32(len(h.Funcs) / 6)
		}
		funcs[i] = known[s.fn]
	}
	h.Strings = table.list
	return h, funcs
}

func newQuality(q profile.Quality) headerQuality {
	h := headerQuality{Samples: q.Samples, Complete: q.Complete, Stitched: q.Stitched, Heuristic: q.Heuristic,
		Truncated: q.Truncated, Broken: q.Broken, Reasons: []headerReason{}}
	for e, n := range q.Reasons {
		if n > 0 {
			h.Reasons = append(h.Reasons, headerReason{walk.End(e).String(), n})
		}
	}
	slices.SortStableFunc(h.Reasons, func(a, b headerReason) int {
		switch {
		case a.Samples > b.Samples:
			return -1
		case a.Samples < b.Samples:
			return 1
		}
		return 0
	})
	return h
}

// columns writes columns of numbers and keeps the first error.
type columns struct {
	w   io.Writer
	buf []byte
	err error
}

func (c *columns) plain(n int, at func(i int) uint64) {
	c.start(n)
	for i := range n {
		c.put(at(i))
	}
	c.flush()
}

// delta writes the differences between neighbours: d in the description above.
func (c *columns) delta(n int, at func(i int) uint64) {
	c.start(n)
	last := uint64(0)
	for i := range n {
		v := at(i)
		d := int64(v - last)
		c.put(uint64(d)<<1 ^ uint64(d>>63))
		last = v
	}
	c.flush()
}

func (c *columns) start(n int) { c.buf = binary.LittleEndian.AppendUint32(c.buf[:0], uint32(n)) }

func (c *columns) put(v uint64) {
	c.buf = binary.AppendUvarint(c.buf, v)
	if len(c.buf) > 1<<16 {
		c.flush()
	}
}

func (c *columns) flush() {
	if c.err == nil {
		_, c.err = c.w.Write(c.buf)
	}
	c.buf = c.buf[:0]
}

func share(part, all uint64) uint64 {
	switch {
	case part == 0 || all == 0:
		return 0
	case part >= all:
		return 255
	}
	return min(254, max(1, uint64(float64(part)/float64(all)*255)))
}

// manyNodes is from how many nodes on making the page should not take long.
const manyNodes = 250_000

// encode writes the page's data to w.
func encode(w io.Writer, p *profile.Profile, t *tree, o Options) error {
	h, funcs := newHeader(p, t, o)
	var head bytes.Buffer
	js := json.NewEncoder(&head)
	if err := js.Encode(h); err != nil {
		return fmt.Errorf("encode the page's header: %w", err)
	}
	b64 := base64.NewEncoder(base64.StdEncoding, w)
	// The best compression makes the page a tenth smaller and takes ten times as
	// long, 10 s for two million nodes.
	level := flate.BestCompression
	if len(t.order) > manyNodes {
		level = flate.DefaultCompression
	}
	z, err := flate.NewWriter(b64, level)
	if err != nil {
		return fmt.Errorf("start compression: %w", err)
	}
	if _, err := z.Write(binary.LittleEndian.AppendUint32(nil, uint32(head.Len()))); err != nil {
		return err
	}
	if _, err := z.Write(head.Bytes()); err != nil {
		return err
	}
	c := &columns{w: z}
	c.plain(len(t.symbols), func(i int) uint64 { return uint64(funcs[i]) })
	c.plain(len(t.symbols), func(i int) uint64 {
		if t.symbols[i].fn == noFunc {
			return uint64(walk.NumKinds)
		}
		return uint64(min(t.symbols[i].kind, walk.NumKinds-1))
	})
	n := len(t.order) - 1                                          // without the root
	c.delta(n, func(i int) uint64 { return uint64(t.depth[i+1]) }) // d
	c.plain(n, func(i int) uint64 { return uint64(t.nodes.At(t.order[i+1]).Frame) })
	c.plain(n, func(i int) uint64 { return uint64(t.line[t.order[i+1]]) })
	c.plain(n, func(i int) uint64 { return uint64(t.lines[t.order[i+1]]) })
	for tally := range numTallies {
		c.plain(n, func(i int) uint64 {
			at := t.order[i+1]
			return share(t.tally(tally, at), uint64(t.samples[at]))
		})
	}
	c.delta(len(t.cells), func(i int) uint64 { return uint64(t.cells[i].node) }) // d
	c.plain(len(t.cells), func(i int) uint64 { return uint64(t.cells[i].thread) })
	c.plain(len(t.cells), func(i int) uint64 { return uint64(t.cells[i].event) })
	c.plain(len(t.cells), func(i int) uint64 { return uint64(t.cells[i].count) })
	c.plain(len(t.cells), func(i int) uint64 { return t.cells[i].weight })
	if c.err != nil {
		return c.err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return b64.Close()
}
