package jfr

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
)

// Read reads a recording of size bytes by any profiler: for one of candid's it returns the profile
// that was written, for one of the JDK or of async-profiler its samples. If a file was cut off,
// what follows its last complete part is left out, and a note says so. The result has passed Check.
func Read(in io.ReaderAt, size int64) (*profile.Profile, error) {
	return ReadInto(profile.NewBuilder(), in, size)
}

// ReadInto is Read with an empty Builder of the caller, which may leave samples out or keep them
// differently.
func ReadInto(b *profile.Builder, in io.ReaderAt, size int64) (*profile.Profile, error) {
	r := &reader{in: in, size: size, b: b, window: window{in: in}}
	if err := r.all(); err != nil {
		return nil, fmt.Errorf("read jfr: %w", err)
	}
	p := r.finish()
	if err := cmp.Or(b.Err(), p.Check()); err != nil {
		return nil, fmt.Errorf("read jfr: %w", err)
	}
	return p, nil
}

// Is reports whether a file with this beginning is a recording.
func Is(head []byte) bool { return bytes.HasPrefix(head, magic[:]) }

// reader reads a file into a Builder.
type reader struct {
	in   io.ReaderAt
	size int64
	b    *profile.Builder

	metadata []byte // of the schema
	schema   *schema
	readers  readers
	window   window

	start  int64  // of the first chunk, ns since 1970
	latest uint64 // ns since then
	cut    int64  // bytes that are left out

	bare    bool // some stacks are those for other readers
	own     ownState
	pids    []uint64 // for each observation; 0: none is recorded
	foreign foreignState
	take    func(profile.Sample) // receives candid's samples; nil: the Builder does

	// Memory reused from earlier parts, which are as large as the next ones.
	spare   [2][2][]uint32 // of nodes and of stacks, of the two chunks before
	waiting [2][]byte      // events of a packed chunk, and of the one before
	scratch scratch

	behind chan error // reports when the events of the chunk before are read; nil: they are
	failed error      // of reading these
}

// chunk is one of a file's chunks.
type chunk struct {
	base, size           int64
	checkpoint, metadata int64
	startNanos           int64
	duration             uint64
	startTicks, tickRate uint64
	offset               int64 // ns from the recording's start to the chunk's
	known                int64 // the last checkpoint that was read; 0: none
	limit                int64 // reading ends there; 0: the chunk's end
	cut                  bool  // a part of it is missing
	calls                int   // how many system calls are known

	pools pools
	bare  bool // candid's own stacks are missing
}

var errNoChunk = fmt.Errorf("%w: no chunk begins there", ErrMalformed)

func (r *reader) all() (err error) {
	defer func() {
		// The error is about what comes first in the file.
		if r.wait(); r.failed != nil {
			err = r.failed
		}
	}()
	for base := int64(0); base < r.size; {
		c, err := r.header(base)
		if err != nil {
			if base == 0 || !errors.Is(err, ErrMalformed) {
				return err
			}
			r.cut = r.size - base
			return nil
		}
		if base == 0 {
			r.start = c.startNanos
		}
		c.offset = c.startNanos - r.start
		o := &c.pools.own
		spare := r.spare[0]
		o.nodes.list, o.stacks.list = spare[0][:0], spare[1][:0]
		if err := r.chunk(c); err != nil {
			if base > 0 && errors.Is(err, errShortFile) {
				r.cut = r.size - base
				return nil
			}
			return fmt.Errorf("the chunk at byte %d: %w", base, err)
		}
		r.spare = [2][2][]uint32{r.spare[1], {o.nodes.list, o.stacks.list}}
		base += c.size
	}
	return nil
}

func (r *reader) header(base int64) (*chunk, error) {
	var h [headerSize]byte
	if _, err := r.in.ReadAt(h[:], base); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errNoChunk
		}
		return nil, err
	}
	be := binary.BigEndian
	if !Is(h[:]) {
		return nil, errNoChunk
	}
	if major, minor := be.Uint16(h[atVersion:]), be.Uint16(h[atVersion+2:]); major != majorVersion {
		return nil, fmt.Errorf("it is of version %d.%d: candid reads %d, which JDK 11 and later write", major, minor, majorVersion)
	}
	if h[atFlags+3]&flagCompressed == 0 {
		return nil, errors.New("its integers are not compressed, which no JDK writes and candid does not read")
	}
	number := func(at int) int64 { return int64(be.Uint64(h[at:])) }
	c := &chunk{
		base: base, size: number(atSize), checkpoint: number(atCheckpoint), metadata: number(atMetadata),
		startNanos: number(atStartNanos), duration: be.Uint64(h[atDuration:]),
		startTicks: be.Uint64(h[atStartTicks:]), tickRate: cmp.Or(be.Uint64(h[atTickRate:]), uint64(time.Second)),
	}
	left := r.size - base
	switch {
	case c.size < headerSize || c.metadata < headerSize || c.metadata >= min(c.size, left) || c.checkpoint < 0 || c.checkpoint >= min(c.size, left) && !r.packed():
		return nil, fmt.Errorf("%w: it is cut off, or never was finished", ErrMalformed)
	case c.size > left:
		if _, ok := r.in.(*unzstd); !ok { // its size is what headers claim: more was written in the meantime
			r.cut, c.cut = c.size-left, true
		}
		c.size = left
	}
	return c, nil
}

// packed reports whether the file is read without using its last checkpoint.
func (r *reader) packed() bool {
	_, ok := r.in.(Packed)
	return ok
}

// event returns the event at a position of the chunk, without its size field, at most limit bytes
// of it, and its length.
func (r *reader) event(c *chunk, at int64, limit int64) ([]byte, int64, error) {
	return r.eventIn(func(n int64) []byte { return make([]byte, n) }, c, at, limit)
}

// eventIn is event with memory from room.
func (r *reader) eventIn(room func(n int64) []byte, c *chunk, at int64, limit int64) ([]byte, int64, error) {
	if at < headerSize || at >= c.size {
		return nil, 0, fmt.Errorf("%w: an event at byte %d of %d", ErrMalformed, at, c.size)
	}
	head := cursor{b: make([]byte, min(maxLong, c.size-at))}
	if _, err := r.in.ReadAt(head.b, c.base+at); err != nil {
		return nil, 0, err
	}
	size := int64(head.long())
	if head.err != nil || size <= int64(head.pos) || size > c.size-at {
		return nil, 0, fmt.Errorf("%w: the event at byte %d has %d bytes", ErrMalformed, at, size)
	}
	n := max(min(size, limit)-int64(head.pos), 0)
	if err := r.b.Meter().Room(int(n)); err != nil {
		return nil, 0, err
	}
	b := room(n)
	if _, err := r.in.ReadAt(b, c.base+at+int64(head.pos)); err != nil {
		return nil, 0, err
	}
	return b, size, nil
}

// maxMetadata is the maximum size of the description of a file's types: those of the JDK have 200
// KB.
const maxMetadata = 64 << 20

func (r *reader) chunk(c *chunk) error {
	if any, err := r.types(c); !any {
		return err // no error, if it is a page that candid appended before it was ended
	}
	if p, ok := r.in.(Packed); ok && r.readers.ours {
		return r.packedChunk(p, c)
	}
	if _, ok := r.in.(*unzstd); ok {
		return fmt.Errorf("%w: what is packed is not what candid packs", ErrMalformed)
	}
	if err := r.constants(c); err != nil {
		return fmt.Errorf("its constants: %w", err)
	}
	if r.readers.ours && len(c.pools.own.runs)+len(c.pools.own.stackRuns) == 0 {
		// There are no samples, or the JDK's tools have rewritten the file without what only candid
		// refers to: then the stacks are those for other readers.
		c.pools, c.known, c.bare = pools{}, 0, true
		if err := r.constants(c); err != nil {
			return fmt.Errorf("its constants: %w", err)
		}
	}
	if r.readers.ours {
		if err := r.ownConstants(c); err != nil {
			return err
		}
	}
	if err := r.wait(); err != nil {
		return err
	}
	if r.readers.ours && !c.bare {
		return r.beside(c)
	}
	return r.events(c, headerSize, c.size)
}

// beside reads the events of a chunk whose constants are all read, in parallel with what follows if
// possible.
func (r *reader) beside(c *chunk) error {
	end := cmp.Or(c.limit, c.size)
	if r.b.LooksAtStacks() {
		return r.events(c, headerSize, end)
	}
	r.behind = make(chan error, 1)
	go func() {
		err := r.events(c, headerSize, end)
		if err != nil {
			err = fmt.Errorf("the chunk at byte %d: %w", c.base, err)
		}
		r.behind <- err
	}()
	return nil
}

// wait waits for the events of the chunk before, which are read in parallel with the constants of
// the next one: in candid's own files they share only what neither changes. Functions, frames and
// nodes come from the constants, everything else from the events.
func (r *reader) wait() error {
	if r.behind == nil {
		return nil
	}
	r.failed = <-r.behind
	r.behind = nil
	return r.failed
}

// types reads the description of a chunk's types, and reports whether there are any.
func (r *reader) types(c *chunk) (bool, error) {
	b, size, err := r.event(c, c.metadata, maxMetadata)
	if err != nil {
		return false, fmt.Errorf("its types: %w", err)
	}
	if size > maxMetadata {
		return false, fmt.Errorf("%w: %d bytes of types", ErrMalformed, size)
	}
	if !bytes.Equal(b, r.metadata) {
		schema, err := readMetadata(b, r.b.Meter())
		if err != nil || !schema.hasEvents() { // a page that candid appended
			return false, err
		}
		if err := r.wait(); err != nil {
			return false, err
		}
		r.schema, r.metadata = schema, b
		if r.readers, err = r.schema.readers(); err != nil {
			return false, err
		}
		if !r.readers.ours {
			r.b.Tentative() // see foreignFinal
		}
	}
	return true, nil
}

// maxOfInterest is the maximum size of an event that is examined.
const maxOfInterest = 64 << 20

// events reads the events of a chunk from a position up to another, one after the other.
func (r *reader) events(c *chunk, from, to int64) error {
	limit := cmp.Or(c.limit, c.size)
	r.window.end = c.base + limit
	var cur cursor
	gate := r.b.Meter().Gate()
	for at := from; at < to; {
		head, err := r.window.at(c.base+at, int(min(limit-at, 2*maxLong)))
		if err != nil {
			return err
		}
		cur = cursor{b: head}
		size := int64(cur.long())
		typ := cur.long()
		if cur.err != nil || size < int64(cur.pos) || size > c.size-at {
			if c.cut || r.readers.ours && at > c.checkpoint {
				// The last event, a part of which is missing, or one that was written since the
				// header was read.
				return nil
			}
			return fmt.Errorf("%w: the event at byte %d has %d bytes", ErrMalformed, at, size)
		}
		if h := r.readers.event(typ); h != nil && size <= min(maxOfInterest, limit-at) {
			b, err := r.window.at(c.base+at, int(size))
			if err != nil {
				return err
			}
			pos := cur.pos
			cur = cursor{b: b, pos: pos}
			if err := gate.Pass(); err != nil {
				return err
			}
			if err := h.read(r, c, h, &cur); err != nil {
				if r.readers.ours && at > c.checkpoint && errors.Is(err, errNotThere) {
					return nil
				}
				return fmt.Errorf("the event at byte %d: %w", at, err)
			}
			if cur.err != nil {
				return fmt.Errorf("the event at byte %d: %w", at, cur.err)
			}
		}
		at += size
	}
	return nil
}

// ns converts a time of a chunk to ns since the recording's start.
func (c *chunk) ns(ticks uint64) uint64 {
	var since int64
	if ticks >= c.startTicks {
		since = int64(min(c.span(ticks-c.startTicks), 1<<62))
	} else {
		since = -int64(min(c.span(c.startTicks-ticks), 1<<62))
	}
	return uint64(max(since+min(max(c.offset, -1<<61), 1<<61), 0))
}

// span converts a number of ticks to ns.
func (c *chunk) span(ticks uint64) uint64 {
	if c.tickRate == uint64(time.Second) {
		return ticks
	}
	hi, lo := bits.Mul64(ticks, uint64(time.Second))
	if hi >= c.tickRate {
		return 1<<63 - 1
	}
	ns, _ := bits.Div64(hi, lo, c.tickRate)
	return ns
}

// finish returns the profile.
func (r *reader) finish() *profile.Profile {
	r.finishForeign()
	r.b.Meta().NoteUnlabeled(r.foreign.unlabeled)
	if r.bare {
		m := r.b.Meta()
		m.Notes = append(m.Notes, "another program wrote the file anew, without candid's own stacks: kinds and certainty of frames are gone, and addresses")
	}
	if r.cut > 0 {
		m := r.b.Meta()
		m.Notes = append(m.Notes, fmt.Sprintf("the file is cut off: %d bytes at its end are missing, or belong to nothing", r.cut))
	}
	p := r.b.Finish()
	if r.b.Err() != nil {
		return p // which is not used
	}
	r.placeObservations(p)
	if len(r.own.events) > 0 {
		p.Events, p.Losses, p.Syscalls, p.Labels = r.own.events, r.own.losses, r.own.syscalls, r.own.labels
	}
	if p.Meta.Duration <= 0 {
		p.Meta.Duration = time.Duration(r.latest)
	}
	if len(r.own.events) == 0 {
		r.foreignFinal(p)
	}
	return p
}
