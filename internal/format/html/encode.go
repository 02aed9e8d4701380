package html

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// The page's data is one stream, deflated and then written in base64, whose alphabet has no
// character that is special in HTML:
//
//	uint32   length of the JSON that follows, little endian
//	JSON     flame.Header
//	columns  each: uint32 number of values, then that many unsigned LEB128
//
// in this order: symbols (function, kind, flame.Tree.StartMarks), nodes without the root (depth,
// symbol, line, lines, derived, heuristic, stitched, coarse, virtual), and cells (node, thread,
// event, count, weight). Columns marked with a d below hold the zigzag difference to the value
// before. A missing function is 0, function i is i+1.
//
// The five shares of a node are 0 to 255: 0 only if no sample, 255 only if all.

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

// delta writes the differences between neighbours: marked with d in the description above.
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

// manyNodes is the number of nodes from which on the page is compressed less, so that making it
// does not take long.
const manyNodes = 250_000

// encode writes the page's data to w.
func encode(w io.Writer, p *profile.Profile, t *flame.Tree, o Options) error {
	h, funcs := flame.NewHeader(p, t, title(p, o), o.Split.String())
	h.Coarse = p.CoarseEvents()
	if o.compared != nil {
		h.Compared = o.compared.header()
		h.SidesApart()
	}
	var head bytes.Buffer
	js := json.NewEncoder(&head)
	if err := js.Encode(h); err != nil {
		return fmt.Errorf("encode the page's header: %w", err)
	}
	b64 := base64.NewEncoder(base64.StdEncoding, w)
	// The best compression makes the page a tenth smaller and takes ten times as long, 10 s for two
	// million nodes.
	level := flate.BestCompression
	if len(t.Order) > manyNodes {
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
	c.plain(len(t.Symbols), func(i int) uint64 { return uint64(funcs[i]) })
	c.plain(len(t.Symbols), func(i int) uint64 {
		if t.Symbols[i].Func == flame.NoFunc {
			return uint64(walk.NumKinds)
		}
		return uint64(min(t.Symbols[i].Kind, walk.NumKinds-1))
	})
	marks := t.StartMarks(p.Funcs)
	c.plain(len(t.Symbols), func(i int) uint64 { return uint64(marks[i]) })
	n := len(t.Order) - 1                                          // without the root
	c.delta(n, func(i int) uint64 { return uint64(t.Depth[i+1]) }) // d
	c.plain(n, func(i int) uint64 { return uint64(t.Nodes.At(t.Order[i+1]).Frame) })
	c.plain(n, func(i int) uint64 { return uint64(t.Line[t.Order[i+1]]) })
	c.plain(n, func(i int) uint64 { return uint64(t.Lines[t.Order[i+1]]) })
	for tally := range flame.NumTallies {
		c.plain(n, func(i int) uint64 {
			at := t.Order[i+1]
			return flame.Share(t.Tally(tally, at), uint64(t.Samples[at]))
		})
	}
	c.delta(len(t.Cells), func(i int) uint64 { return uint64(t.Cells[i].Node) }) // d
	c.plain(len(t.Cells), func(i int) uint64 { return uint64(t.Cells[i].Thread) })
	c.plain(len(t.Cells), func(i int) uint64 { return uint64(t.Cells[i].Event) })
	c.plain(len(t.Cells), func(i int) uint64 { return uint64(t.Cells[i].Count) })
	c.plain(len(t.Cells), func(i int) uint64 { return t.Cells[i].Weight })
	if c.err != nil {
		return c.err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return b64.Close()
}
