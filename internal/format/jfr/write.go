package jfr

import (
	"fmt"
	"io"

	"github.com/candid-profiler/candid/internal/profile"
)

// Write writes p, which must have passed Check or come from a Builder. What it
// writes depends only on p.
func Write(w io.Writer, p *profile.Profile) error {
	out := &chunks{w: w}
	s := NewStream(out, whole{p}, func() Info { return Info{&p.Meta, p.Events, p.Losses} })
	s.MaxChunk = heldChunk
	if err := write(s, out, p); err != nil {
		return fmt.Errorf("write jfr: %w", err)
	}
	return nil
}

// heldChunk is how long chunks are that are held in memory until they are whole.
const heldChunk = 32 << 20

func write(s *Stream, out *chunks, p *profile.Profile) error {
	for i := range p.Samples {
		if err := s.Add(p.Samples[i]); err != nil {
			return err
		}
		if err := out.emit(s.base); err != nil {
			return err
		}
	}
	if err := s.Flush(); err != nil {
		return err
	}
	return out.emit(out.base + int64(len(out.b)))
}

// chunks holds what was written last, and hands on what will not change any more.
type chunks struct {
	w    io.Writer
	base int64 // where in the file b begins
	b    []byte
}

// WriteAt implements Output.
func (c *chunks) WriteAt(p []byte, off int64) (int, error) {
	at := int(off - c.base)
	if end := at + len(p); end > len(c.b) {
		c.b = append(c.b, make([]byte, end-len(c.b))...)
	}
	return copy(c.b[at:], p), nil
}

// Truncate implements Output.
func (c *chunks) Truncate(size int64) error {
	c.b = c.b[:size-c.base]
	return nil
}

// emit hands on everything before offset end of the file.
func (c *chunks) emit(end int64) error {
	n := int(end - c.base)
	if n <= 0 {
		return nil
	}
	_, err := c.w.Write(c.b[:n])
	c.b = append(c.b[:0], c.b[n:]...)
	c.base = end
	return err
}

// whole is a profile as a Source.
type whole struct{ p *profile.Profile }

func (w whole) At(node uint32) profile.Node  { return w.p.Nodes[node] }
func (w whole) Frames() []profile.Frame      { return w.p.Frames }
func (w whole) Funcs() []profile.Func        { return w.p.Funcs }
func (w whole) Threads() []profile.Thread    { return w.p.Threads }
func (w whole) Processes() []profile.Process { return w.p.Processes }
func (w whole) Syscalls() []string           { return w.p.Syscalls }
