package jfr

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/candid-profiler/candid/internal/memlimit"
	"github.com/candid-profiler/candid/internal/profile"
)

// ErrOthers is the error if a recording was not made by candid, so that it cannot be read while it
// is written: others write only at its end what its events were.
var ErrOthers = errors.New("the recording is not one of candid's")

// Tail reads a recording of candid's while it is written, piece by piece: each byte is read once.
// It must not be used by several goroutines at once.
type Tail struct {
	r     reader
	c     *chunk // the one that is being read; nil before the first
	at    int64  // what comes next in it
	fresh []profile.Sample
}

// NewTail returns a Tail for a file that is being written, which may still be empty.
func NewTail(in io.ReaderAt) *Tail {
	// The header of the chunk that is being written says how much of the file is valid.
	t := &Tail{r: reader{in: in, size: math.MaxInt64 / 2, b: profile.NewBuilder(), window: window{in: in}}}
	t.r.b.Limit(memlimit.Whole())
	t.r.take = func(s profile.Sample) { t.fresh = append(t.fresh, s) }
	return t
}

// OpenTail is NewTail for a file that may be packed. It must exist.
func OpenTail(in io.ReaderAt) (*Tail, error) {
	var head [Sniffed]byte
	if n, _ := in.ReadAt(head[:], 0); !IsPacked(head[:n]) {
		return NewTail(in), nil
	}
	p, err := OpenPacked(in)
	if err != nil {
		return nil, err
	}
	return NewTail(p), nil
}

// Others reports, for a file of which nothing was read yet, whether it is the recording of another
// profiler, which Next refuses. It is false as long as that is not known.
func (t *Tail) Others() bool {
	c, err := t.header(0)
	if err != nil {
		return false
	}
	known, err := t.r.types(c)
	return err == nil && known && !t.r.readers.ours
}

// Start returns when the recording that is in the file now began, ns since 1970; 0 if there is
// none.
func (t *Tail) Start() int64 {
	c, err := t.header(0)
	if err != nil {
		return 0
	}
	return c.startNanos
}

// Began returns when the recording that was read began; 0 if nothing was read.
func (t *Tail) Began() int64 {
	if t.c == nil || t.c.base == 0 && t.at <= headerSize {
		return 0
	}
	return t.r.start
}

// Read returns the least length that the file had when it was last read.
func (t *Tail) Read() int64 {
	if p, ok := t.r.in.(Packed); ok {
		return p.stored()
	}
	if t.c == nil {
		return 0
	}
	return t.c.base + t.at
}

// Builder returns everything except the samples: what they refer to. It belongs to the Tail.
func (t *Tail) Builder() *profile.Builder { return t.r.b }

// Events returns the events of the recording as far as it was read. They change with Next.
func (t *Tail) Events() []profile.Event { return t.r.own.events }

// Losses returns what was lost so far.
func (t *Tail) Losses() profile.Losses { return t.r.own.losses }

// Syscalls returns the names that samples refer to.
func (t *Tail) Syscalls() []string { return t.r.own.syscalls }

// Next reads what was written since the previous call. The samples are valid until the next call;
// there may be none. After an error nothing more can be read.
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

// more reads the rest of the chunk as it is now, or moves to the next one; false if there is
// neither.
func (t *Tail) more() (bool, error) {
	var base int64
	if t.c != nil {
		if more, err := t.read(); more || err != nil {
			return more, err
		}
		base = t.c.base + t.c.size
	}
	c, err := t.header(base)
	if errors.Is(err, ErrMalformed) {
		return false, nil // nothing begins there yet
	}
	if err != nil {
		return false, err
	}
	// A page without types may become a part of the chunk before it.
	if any, err := t.r.types(c); !any {
		return false, err
	}
	if !t.r.readers.ours {
		return false, ErrOthers
	}
	if t.c != nil {
		// The rest of the old chunk, written before this one was begun.
		if more, err := t.read(); more || err != nil {
			return more, err
		}
	}
	if base == 0 {
		t.r.start = c.startNanos
	}
	c.offset = c.startNanos - t.r.start
	t.c, t.at = c, headerSize
	return true, nil
}

// read reads what was added to the chunk; false if nothing was.
func (t *Tail) read() (bool, error) {
	fail := func(err error) (bool, error) {
		return false, fmt.Errorf("the chunk at byte %d: %w", t.c.base, err)
	}
	now, err := t.header(t.c.base)
	if err != nil {
		return fail(err)
	}
	t.c.size = now.size
	if p, ok := t.r.in.(Packed); ok {
		from := t.at
		if t.at = now.size; from == t.at {
			return false, nil
		}
		if err := t.r.packedPart(p, t.c, from); err != nil {
			return fail(err)
		}
		return true, nil
	}
	t.r.window.buf = t.r.window.buf[:0] // it may have changed
	end, err := t.gate()
	if err != nil || end == t.at {
		return false, err
	}
	// The header refers to the constants of an event before the event becomes visible.
	if now, err = t.header(t.c.base); err != nil {
		return fail(err)
	}
	t.c.checkpoint, t.c.metadata, t.c.duration = now.checkpoint, now.metadata, now.duration
	if _, err = t.r.types(t.c); err == nil {
		err = t.r.constants(t.c)
	}
	if err == nil {
		err = t.r.ownConstants(t.c)
	}
	if err == nil {
		err = t.r.events(t.c, t.at, end)
	}
	if err != nil {
		return fail(err)
	}
	t.at = end
	return true, nil
}

// gate finds where the events of the chunk end now: at a shut gate, or at the end of the chunk.
func (t *Tail) gate() (int64, error) {
	r, c := &t.r, t.c
	r.window.end = c.base + c.size
	at := t.at
	for at < c.size {
		head, err := r.window.at(c.base+at, int(min(c.size-at, 2*maxLong)))
		if err != nil {
			return 0, err
		}
		cur := cursor{b: head}
		size, typ := int64(cur.long()), cur.long()
		if cur.err != nil || size < int64(cur.pos) || size > c.size-at {
			return 0, fmt.Errorf("%w: the event at byte %d has %d bytes", ErrMalformed, at, size)
		}
		if size == gateShut && typ == typeMetadata && at > headerSize {
			break
		}
		at += size
	}
	return at, nil
}

// header reads a header that may be written to at the same time.
func (t *Tail) header(base int64) (*chunk, error) {
	const most = 100
	c, err := t.r.header(base)
	for range most {
		if err != nil {
			return nil, err
		}
		before := c
		if c, err = t.r.header(base); err == nil && c.size == before.size && c.checkpoint == before.checkpoint {
			return c, t.there(c)
		}
	}
	return nil, fmt.Errorf("%w: its header changes all the time", ErrMalformed)
}

// there reports whether the file is as long as a chunk's header says: nothing else bounds what is
// read of it.
func (t *Tail) there(c *chunk) error {
	var last [1]byte
	if c.base > math.MaxInt64/4 || c.size > math.MaxInt64/4 {
		return errNoChunk
	}
	if p, ok := t.r.in.(Packed); ok {
		if err := p.grow(); err != nil || c.base+c.size <= p.Size() {
			return err
		}
		return errNoChunk
	}
	_, err := t.r.in.ReadAt(last[:], c.base+c.size-1)
	if errors.Is(err, io.EOF) {
		return errNoChunk
	}
	return err
}

// check is profile.Check for the new samples.
func (t *Tail) check() error {
	for i := range t.fresh {
		if s := &t.fresh[i]; int(s.Event) >= len(t.r.own.events) || int(s.Thread) >= len(t.r.b.Threads()) || int(s.Node) >= t.r.b.Nodes() ||
			int(s.State) >= profile.NumStates || int(s.Syscall) >= max(len(t.r.own.syscalls), 1) {
			return fmt.Errorf("%w: a sample refers to what is not there", ErrMalformed)
		}
	}
	return nil
}
