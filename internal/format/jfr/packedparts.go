package jfr

import (
	"bytes"
	"errors"
	"fmt"
)

// packedPart reads a chunk of a packed file, from a position on, while it is being written, in the
// order in which it was written: constants, and the events that refer to them. So each part is
// unpacked once.
func (r *reader) packedPart(p Packed, c *chunk, from int64) error {
	defer func() { r.window = window{in: p} }()
	end := min(c.base+c.size, p.Size())
	for off := c.base + from; off < end; {
		part, err := p.portion(off, end)
		if err != nil {
			return err
		}
		if off = part.next; part.b == nil {
			continue
		}
		r.b.Meter().Saw(len(part.b))
		at := part.at - c.base
		if part.hint > 0 {
			c.checkpoint, c.known = at+part.hint, at
			if err := r.packedConstants(c); err != nil {
				return err
			}
		}
		r.window = window{in: p, off: part.at, buf: part.b}
		c.limit = at + int64(len(part.b))
		if err := r.events(c, at, c.limit); err != nil {
			return err
		}
	}
	return nil
}

// mostEvents is how many bytes of a chunk's events wait until its constants are read.
const mostEvents = 16 << 20

// packedChunk reads a chunk of a packed file: constants as they come, events after them.
func (r *reader) packedChunk(p Packed, c *chunk) error {
	r.waiting[0], r.waiting[1] = r.waiting[1], r.waiting[0]
	events := r.waiting[0][:0] // what is read in parallel with this chunk is in the other buffer
	// The events are read as if there were nothing else.
	lay := func() error {
		r.waiting[0] = events
		if err := r.wait(); err != nil {
			return err
		}
		r.window = window{in: bytes.NewReader(nil), off: c.base + headerSize, buf: events}
		c.limit = headerSize + int64(len(events))
		return nil
	}
	end := min(c.base+c.size, p.Size())
	for off := c.base + headerSize; off < end; {
		part, err := p.portion(off, end)
		if errors.Is(err, errShortFile) && off > c.base+headerSize {
			r.cut = end - off
			break
		}
		if err != nil {
			return err
		}
		r.b.Meter().Saw(len(part.b))
		off = part.next
		if err := r.b.Meter().Room(len(part.b)); err != nil {
			return err
		}
		events = append(events, part.events()...)
		if part.hint > 0 {
			at := part.at - c.base
			c.checkpoint, c.known = at+part.hint, at
			if err := r.packedConstants(c); err != nil {
				return err
			}
		}
		if len(events) > mostEvents {
			if err := lay(); err != nil {
				return err
			}
			if err := r.events(c, headerSize, c.limit); err != nil {
				return err
			}
			events = events[:0]
		}
	}
	if err := lay(); err != nil {
		return err
	}
	return r.beside(c)
}

// events returns the events of a part. They are followed by candid's constants, and then by the
// stacks for other readers, which may be incomplete.
func (p *portion) events() []byte {
	if p.hint > 0 {
		return p.b[:p.hint]
	}
	at := 0
	for at < len(p.b) {
		c := cursor{b: p.b[at:]}
		size := c.long()
		if c.err != nil || size < uint64(c.pos) || size > uint64(len(p.b)-at) {
			break
		}
		at += int(size)
	}
	return p.b[:at]
}

// packedConstants reads the constants of a part.
func (r *reader) packedConstants(c *chunk) error {
	if err := r.constants(c); err != nil {
		return fmt.Errorf("its constants: %w", err)
	}
	return r.ownConstants(c)
}
