package jfr

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Output is where a Stream writes, such as an *os.File.
type Output interface {
	io.WriterAt
	Truncate(size int64) error
}

// Info is what is known of a recording as a whole.
type Info struct {
	Meta   *profile.Meta
	Events []profile.Event
	Losses profile.Losses
}

// firstTick is the tick at the beginning of a recording. A tick is one nanosecond since then. None
// is ever 0, which readers take for no time.
const firstTick = 1

func tick(ns uint64) uint64 { return firstTick + ns }

// Stream writes a recording while it is made. From the first Flush on the output is a complete file
// at any time, however candid ends, and holds what was flushed.
type Stream struct {
	out   Output
	info  func() Info
	c     *constants
	start int64 // of the recording, ns since 1970

	base, size int64 // of the chunk: where it begins, and its length including unused space
	begun      bool  // the chunk exists
	gate       int64 // where its events end so far, relative to base
	metadata   int64 // relative to base; 0: it has none of its own yet
	checkpoint int64 // the last one, relative to base; 0: none
	from       uint64
	latest     uint64

	pending []profile.Sample
	b       []byte // events and checkpoints that are not written yet
	page    []byte // scratch
	told    told
	types   []byte // eventType of each event
	waits   waits
	// observed is how many observations are in the file: unlike the state in told they are written
	// once, not in each chunk.
	observed int
	// MaxChunk is how many bytes a chunk has before the next one is begun.
	MaxChunk int64
	careful  bool    // the file is complete between any two writes
	last     bool    // nothing follows the pending samples
	pack     packing // the format in which the file is packed; nil: it is not
	err      error
}

// told is what the events of this chunk already contain.
type told struct {
	meta      profile.Meta
	notes     int
	events    int
	processes []profile.Process
	threads   []profile.Thread
	losses    *profile.Losses
	cost      profile.Cost
}

// Limits of a Stream.
const (
	// maxChunk is small enough for readers that hold a whole chunk in memory.
	maxChunk = 128 << 20
	// maxPending is how many samples wait for Flush at most, and maxConstants how many bytes of
	// constants do.
	maxPending   = 1 << 15
	maxConstants = 8 << 20
)

// NewStream begins a recording: out must be empty. info is called at each Flush.
func NewStream(out Output, src Source, info func() Info) *Stream {
	return &Stream{out: out, info: info, c: newConstants(src), MaxChunk: maxChunk, careful: true}
}

// Add adds a sample, whose indices refer to the Source. It is in the file after the next Flush.
func (s *Stream) Add(sample profile.Sample) error {
	if s.err != nil {
		return s.err
	}
	s.pending = append(s.pending, sample)
	if len(s.pending) >= maxPending {
		return s.Flush()
	}
	return nil
}

// Flush writes everything that was added. If it fails the file is as it was after the Flush before,
// and every later call returns the same error.
func (s *Stream) Flush() error {
	if s.err != nil {
		return s.err
	}
	if s.err = s.flush(); s.err != nil {
		s.pending, s.b = nil, nil
	}
	return s.err
}

// Finish flushes the rest of a recording that has become the profile p, which has the Source's
// indices and replaces it.
func (s *Stream) Finish(p *profile.Profile) error {
	_, gone := s.c.src.Observations()
	s.observed -= gone // p does not have these
	s.c.src = whole{p}
	s.info = func() Info { return Info{&p.Meta, p.Events, p.Losses} }
	return s.end()
}

// end flushes the end of the recording.
func (s *Stream) end() error {
	s.last = true
	if err := s.Flush(); err != nil || s.pack == nil {
		return err
	}
	return s.pack.finish(s.out)
}

func (s *Stream) flush() error {
	info := s.info()
	s.tell(&info)
	s.arrange(info.Events, s.last)
	for i := range s.pending {
		s.sample(i, info.Events)
		if i%1024 == 0 && s.c.size() > maxConstants {
			if err := s.write(&info); err != nil {
				return err
			}
		}
	}
	s.pending = s.pending[:0]
	return s.write(&info)
}

// write appends the events and the new constants to the chunk.
func (s *Stream) write(info *Info) error {
	if !s.begun && !info.Meta.Start.IsZero() {
		s.start = info.Meta.Start.UnixNano()
	}
	rest, traces := s.c.take()
	if len(s.b)+len(rest)+len(traces) == 0 {
		return nil
	}
	step, used := s.step, s.base+s.size
	if s.pack != nil {
		step, used = s.packedStep, s.pack.used()
	}
	if err := step(info, rest, traces); err != nil {
		// Readers need not see what is not in use yet.
		if cut := s.out.Truncate(used); cut != nil {
			err = fmt.Errorf("%w; and cut off what was written of it: %w", err, cut)
		}
		return err
	}
	s.b = again(s.b)
	if s.size > s.MaxChunk {
		s.next()
	}
	return nil
}

// step does the writes of write; only its last one makes them visible.
func (s *Stream) step(info *Info, rest, traces []pool) error {
	if !s.begun {
		if err := s.begin(); err != nil {
			return err
		}
	}
	events := len(s.b)
	metadata, checkpoint, err := s.lay(rest, traces)
	if err != nil {
		return err
	}
	if !s.room(int64(len(s.b))) {
		if err := s.grow(int64(len(s.b))); err != nil {
			return err
		}
		// The gate may have moved.
		s.b = s.b[:events]
		if metadata, checkpoint, err = s.lay(rest, traces); err != nil {
			return err
		}
	}
	at := s.gate + gateOpen
	end := at + int64(len(s.b))
	g := gate(end, s.size)
	if _, err := s.out.WriteAt(append(s.b, g[:]...), s.base+at); err != nil {
		return err
	}
	h := s.header(s.size, metadata, checkpoint, info)
	if _, err := s.out.WriteAt(h[:], s.base); err != nil {
		return err
	}
	s.metadata, s.checkpoint = metadata, checkpoint
	return s.open(end)
}

// lay appends to the events what else belongs behind the gate, and returns where in the chunk the
// metadata and the last checkpoint are then.
func (s *Stream) lay(rest, traces []pool) (metadata, checkpoint int64, err error) {
	at := s.gate + gateOpen
	metadata, checkpoint = s.metadata, s.checkpoint
	if metadata == 0 {
		metadata = at + int64(len(s.b))
		s.b = append(s.b, metadataEvent()...)
	}
	for _, pools := range [][]pool{traces, rest} {
		if len(pools) > 0 {
			here := at + int64(len(s.b))
			if err := s.constants(pools, here, checkpoint); err != nil {
				return 0, 0, err
			}
			checkpoint = here
		}
	}
	return metadata, checkpoint, nil
}

// next makes the next write begin another chunk.
func (s *Stream) next() {
	s.base += s.size
	s.begun, s.size = false, 0
	s.metadata, s.checkpoint = 0, 0
	s.from = s.latest
	s.c.renew()
	s.told = told{}
}

// settled returns the end of the part of the output that will not change any more.
func (s *Stream) settled() int64 {
	if s.pack == nil {
		return s.base
	}
	return s.pack.settled(s.begun)
}

func (s *Stream) header(size, metadata, checkpoint int64, info *Info) (h [headerSize]byte) {
	end := max(s.latest, s.from, uint64(max(info.Meta.Duration, 0)))
	copy(h[:], magic[:])
	be := binary.BigEndian
	be.PutUint16(h[atVersion:], majorVersion)
	be.PutUint64(h[atSize:], uint64(size))
	be.PutUint64(h[atCheckpoint:], uint64(checkpoint))
	be.PutUint64(h[atMetadata:], uint64(metadata))
	be.PutUint64(h[atStartNanos:], uint64(s.start)+s.from)
	be.PutUint64(h[atDuration:], end-s.from)
	be.PutUint64(h[atStartTicks:], tick(s.from))
	be.PutUint64(h[atTickRate:], uint64(time.Second))
	be.PutUint32(h[atFlags:], flagCompressed)
	return h
}

// constants appends a checkpoint event at position here of the chunk.
func (s *Stream) constants(pools []pool, here, before int64) error {
	from := len(s.b)
	s.b = reserveSize(s.b)
	s.b = appendLong(s.b, typeCheckpoint)
	s.b = appendLong(s.b, tick(s.latest))
	s.b = appendLong(s.b, 0) // duration
	if before == 0 {
		s.b = appendLong(s.b, 0)
	} else {
		s.b = appendLong(s.b, uint64(before-here))
	}
	s.b = append(s.b, 0) // no special kind
	s.b = binary.AppendUvarint(s.b, uint64(len(pools)))
	for _, p := range pools {
		s.b = appendLong(s.b, uint64(p.typ))
		s.b = binary.AppendUvarint(s.b, uint64(p.n))
		s.b = append(s.b, p.b...)
	}
	if len(s.b)-from > maxEvent {
		return fmt.Errorf("%d bytes of names and stacks at once, more than %d", len(s.b)-from, maxEvent)
	}
	putSize(s.b, from)
	return nil
}

func executing(e profile.Event) bool { return e.Kind.Executing() }

// eventType returns the type of event that other readers expect for the samples of events[i]. They
// add up all ExecutionSamples, so only the first of several similar events has that type.
func eventType(events []profile.Event, i int) byte {
	if i >= len(events) {
		return typeSample
	}
	switch {
	case events[i].Kind == profile.EventWall:
		return typeWallClockSample
	case i == slices.IndexFunc(events, executing):
		return typeExecutionSample
	}
	return typeSample
}

// typeOf is eventType for an event that is already in the file.
func (s *Stream) typeOf(i uint16, events []profile.Event) byte {
	for len(s.types) < len(events) {
		s.types = append(s.types, eventType(events, len(s.types)))
	}
	if int(i) >= len(s.types) {
		return typeSample
	}
	return s.types[i]
}

// sample writes the pending sample at a position of the writing order.
func (s *Stream) sample(turn int, events []profile.Event) {
	i := turn
	if order := s.waits.order; len(order) > 0 {
		i = int(order[turn])
	}
	p := &s.pending[i]
	s.latest = max(s.latest, p.Time)
	typ := s.typeOf(p.Event, events)
	thread := s.c.thread(p.Thread)
	node := s.c.node(p.Node)
	trace := s.c.trace(p.Node, p.End != walk.EndComplete)
	node = s.c.stack(trace, node)
	kind := s.c.kind(kind{p.Event, p.Syscall, p.State, p.End, p.Flags}, events)
	from := len(s.b)
	b := append(s.b, 0, typ)
	b = appendLong(b, tick(p.Time))
	b = appendLong(b, thread)
	b = appendLong(b, trace)
	if typ == typeWallClockSample {
		b = binary.AppendUvarint(append(b, threadState(p.State)), uint64(s.waits.told[i]))
	} else {
		b = append(b, stateDefault) // by this, other readers distinguish CPU time from wall time
	}
	rest := len(b)
	b = append(b, 0)
	b = appendLong(b, kind)
	b = appendLong(b, p.Weight)
	b = appendLong(b, uint64(node))
	b[rest] = byte(len(b) - rest)
	b[from] = byte(len(b) - from) // always less than 128
	s.b = b
}
