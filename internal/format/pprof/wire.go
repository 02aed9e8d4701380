package pprof

import (
	"encoding/binary"
	"errors"
)

// The wire types of protocol buffers that profile.proto uses.
// https://protobuf.dev/programming-guides/encoding/
const (
	wireVarint = 0
	wireI64    = 1
	wireBytes  = 2
	wireI32    = 5
)

// ErrWire is wrapped by the errors for what is no profile at all, or the beginning of one.
var ErrWire = errors.New("not a profile in protocol buffer form, or it is cut off")

// cursor reads the fields of a message.
type cursor struct {
	rest []byte
	err  error

	field int
	wire  int
	value uint64 // of a number
	data  []byte // of a string, list or message; part of the input
}

// next goes to the next field; false at the end and after an error.
func (c *cursor) next() bool {
	if c.err != nil || len(c.rest) == 0 {
		return false
	}
	key := c.varint()
	c.field, c.wire, c.value, c.data = int(key>>3), int(key&7), 0, nil
	if key>>3 == 0 || key>>3 > 1<<29-1 {
		c.err = ErrWire
	}
	if c.err != nil {
		return false
	}
	switch c.wire {
	case wireVarint:
		c.value = c.varint()
	case wireI64:
		c.skip(8)
	case wireI32:
		c.skip(4)
	case wireBytes:
		n := c.varint()
		if c.err == nil && n > uint64(len(c.rest)) {
			c.err = ErrWire
		}
		if c.err == nil {
			c.data, c.rest = c.rest[:n], c.rest[n:]
		}
	default: // groups are in no profile
		c.err = ErrWire
	}
	return c.err == nil
}

func (c *cursor) varint() uint64 {
	v, n := binary.Uvarint(c.rest)
	if n <= 0 {
		c.err = ErrWire
		return 0
	}
	c.rest = c.rest[n:]
	return v
}

func (c *cursor) skip(n int) {
	if n > len(c.rest) {
		c.err = ErrWire
		return
	}
	c.rest = c.rest[n:]
}

// numbers appends the field's value, or all of its packed values, to out.
func (c *cursor) numbers(out []uint64) []uint64 {
	if c.wire == wireVarint {
		return append(out, c.value)
	}
	list := cursor{rest: c.data}
	for len(list.rest) > 0 {
		v := list.varint()
		if list.err != nil {
			c.err = list.err
			break
		}
		out = append(out, v)
	}
	return out
}
