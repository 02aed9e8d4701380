package jfr

import (
	"fmt"
	"io"
	"os"

	"github.com/candid-profiler/candid/internal/profile"
)

// Write writes p, which must have passed Check or come from a Builder. The output depends only on
// p, and on whether w is a file: for other writers chunks are held in memory until they are
// complete, so they are shorter.
func Write(w io.Writer, p *profile.Profile) error { return writeWith(NewStream, w, p) }

// WritePacked is Write in gzip's format.
func WritePacked(w io.Writer, p *profile.Profile) error { return writeWith(NewPackedStream, w, p) }

// WriteZstd is Write in zstd's format.
func WriteZstd(w io.Writer, p *profile.Profile) error { return writeWith(NewZstdStream, w, p) }

type newStream func(Output, Source, func() Info) *Stream

func writeWith(begin newStream, w io.Writer, p *profile.Profile) error {
	write := held
	if f, ok := w.(*os.File); ok && fresh(f) {
		write = direct
	}
	if err := write(begin, w, p); err != nil {
		return fmt.Errorf("write jfr: %w", err)
	}
	return nil
}

// fresh reports whether a file can be written at any position: it is empty, and neither standard
// output nor standard error.
func fresh(f *os.File) bool {
	if f == os.Stdout || f == os.Stderr {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode().IsRegular() && st.Size() == 0
}

// direct writes to a file.
func direct(begin newStream, w io.Writer, p *profile.Profile) error {
	f := w.(*os.File)
	if err := addAll(stream(begin, f, p), p, func(int64) error { return nil }); err != nil {
		return err
	}
	_, err := f.Seek(0, io.SeekEnd)
	return err
}

// heldChunk is the length of chunks that are held in memory until they are complete.
const heldChunk = 64 << 20

// held writes to a writer that cannot seek.
func held(begin newStream, w io.Writer, p *profile.Profile) error {
	out := &chunks{w: w}
	s := stream(begin, out, p)
	s.MaxChunk = heldChunk
	if err := addAll(s, p, out.emit); err != nil {
		return err
	}
	return out.emit(out.base + int64(len(out.b)))
}

func stream(begin newStream, out Output, p *profile.Profile) *Stream {
	s := begin(out, whole{p}, func() Info { return Info{&p.Meta, p.Events, p.Losses} })
	s.careful = false // the file gets its name when it is complete
	return s
}

// addAll adds all samples, and reports up to where the output will not change any more.
func addAll(s *Stream, p *profile.Profile, done func(end int64) error) error {
	var err error
	p.Singly(func(sample *profile.Sample) { // sums have no time, and are in another file (cmd/candid/stream.go)
		if err != nil {
			return
		}
		if err = s.Add(*sample); err == nil {
			err = done(s.settled())
		}
	})
	if err != nil {
		return err
	}
	return s.end()
}

// chunks holds what was written last, and passes on what will not change any more.
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
	if n := int(size - c.base); n > len(c.b) {
		c.b = append(c.b, make([]byte, n-len(c.b))...)
	} else {
		c.b = c.b[:n]
	}
	return nil
}

// emit passes on everything before offset end of the file.
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
func (w whole) Labels() [][]profile.Label    { return w.p.Labels }

func (w whole) Observations() ([]profile.Observation, int) { return w.p.Observations, 0 }
