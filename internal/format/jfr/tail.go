package jfr

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/candid-profiler/candid/internal/profile"
)

// ErrOthers says that a recording was not made by candid, so that it cannot be
// read while it is written: others say only at its end what its events were.
var ErrOthers = errors.New("the recording is not one of candid's")

// Tail reads a recording of candid's while it is written, a piece after the other:
// each byte is read once. It is not for use by several goroutines.
type Tail struct {
	r     reader
	c     *chunk // the one that is read; nil before the first
	base  int64  // where the next one begins
	fresh []profile.Sample
}

// NewTail reads what is written to a file, which may be empty still.
func NewTail(in io.ReaderAt) *Tail {
	// The header of the chunk that is written says how much of the file counts.
	t := &Tail{r: reader{in: in, size: math.MaxInt64 / 2, b: profile.NewBuilder(), window: window{in: in}}}
	t.r.take = func(s profile.Sample) { t.fresh = append(t.fresh, s) }
	return t
}

// Builder has everything but the samples: what they refer to. It is the Tail's.
func (t *Tail) Builder() *profile.Builder { return t.r.b }

// Events, Losses and Syscalls are those of the recording as far as it was read.
// They change with Next.
func (t *Tail) Events() []profile.Event { return t.r.own.events }

// Losses are what was lost until now.
func (t *Tail) Losses() profile.Losses { return t.r.own.losses }

// Syscalls are the names that samples refer to.
func (t *Tail) Syscalls() []string { return t.r.own.syscalls }

// Next reads what was written since the call before. The samples are valid until
// the next call; there may be none. After an error nothing more can be read.
func (t *Tail) Next() ([]profile.Sample, error) {
	t.fresh = t.fresh[:0]
	for {
		more, err := t.more()
		if err != nil {
			return t.fresh, fmt.Errorf("read jfr while it is written: %w", err)
		}
		if !more {
			return t.fresh, t.check()
		}
	}
}

// more reads the rest of the chunk as it is now, or goes on to the next one; false
// if there is neither.
func (t *Tail) more() (bool, error) {
	if t.c != nil {
		now, err := t.header(t.c.base)
		if err != nil {
			return false, err
		}
		if now.size > t.c.size {
			from := t.c.size
			t.c.size, t.c.checkpoint, t.c.duration = now.size, now.checkpoint, now.duration
			t.base = t.c.base + t.c.size
			return true, t.read(from)
		}
	}
	c, err := t.header(t.base)
	if errors.Is(err, ErrMalformed) {
		return false, nil // nothing begins there, until now
	}
	if err != nil {
		return false, err
	}
	var last [1]byte
	if _, err := t.r.in.ReadAt(last[:], t.base+c.size-1); errors.Is(err, io.EOF) {
		return false, nil // a chunk's first part is written in one go with its header
	}
	if t.base == 0 {
		t.r.start = c.startNanos
	}
	c.offset = c.startNanos - t.r.start
	t.base += c.size
	if err := t.r.chunk(c); err != nil {
		return false, fmt.Errorf("the chunk at byte %d: %w", c.base, err)
	}
	if !t.r.readers.ours {
		return false, ErrOthers
	}
	t.c = c
	return true, nil
}

// read reads what was added to the chunk.
func (t *Tail) read(from int64) error {
	// What the window holds may end in the middle of what has come since.
	t.r.window.buf = t.r.window.buf[:0]
	err := t.r.constants(t.c)
	if err == nil {
		err = t.r.ownConstants(t.c)
	}
	if err == nil {
		err = t.r.events(t.c, from)
	}
	if err != nil {
		return fmt.Errorf("the chunk at byte %d: %w", t.c.base, err)
	}
	return nil
}

// header reads a header that may be written to meanwhile.
func (t *Tail) header(base int64) (*chunk, error) {
	const most = 100
	c, err := t.r.header(base)
	for range most {
		if err != nil {
			return nil, err
		}
		before := c
		if c, err = t.r.header(base); err == nil && c.size == before.size && c.checkpoint == before.checkpoint {
			return c, nil
		}
	}
	return nil, fmt.Errorf("%w: its header changes all the time", ErrMalformed)
}

// check is profile.Check for the samples that are new.
func (t *Tail) check() error {
	for i := range t.fresh {
		if s := &t.fresh[i]; int(s.Event) >= len(t.r.own.events) || int(s.Thread) >= len(t.r.b.Threads()) || int(s.Node) >= t.r.b.Nodes() ||
			int(s.State) >= profile.NumStates || int(s.Syscall) >= max(len(t.r.own.syscalls), 1) {
			return fmt.Errorf("%w: a sample refers to what is not there", ErrMalformed)
		}
	}
	return nil
}
