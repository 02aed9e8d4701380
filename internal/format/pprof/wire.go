package pprof

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// ErrWire is wrapped by the errors for data that is not a profile, or only the beginning of one.
var ErrWire = errors.New("not a profile in protocol buffer form, or it is cut off")

// cursor reads the fields of a message.
type cursor struct {
	rest []byte
	err  error

	field protowire.Number
	wire  protowire.Type
	value uint64 // of a number
	data  []byte // of a string, list or message; part of the input
}

// next moves to the next field; false at the end and after an error.
func (c *cursor) next() bool {
	if c.err != nil || len(c.rest) == 0 {
		return false
	}
	var n int
	if c.field, c.wire, n = protowire.ConsumeTag(c.rest); !c.advance(n) {
		return false
	}
	c.value, c.data = 0, nil
	switch c.wire {
	case protowire.VarintType:
		c.value, n = protowire.ConsumeVarint(c.rest)
	case protowire.BytesType:
		c.data, n = protowire.ConsumeBytes(c.rest)
	case protowire.Fixed32Type, protowire.Fixed64Type:
		n = protowire.ConsumeFieldValue(c.field, c.wire, c.rest)
	default: // profiles contain no groups
		n = -1
	}
	return c.advance(n)
}

// advance moves n bytes on; a negative n means that what was to be read there is malformed.
func (c *cursor) advance(n int) bool {
	if n < 0 {
		c.err = ErrWire
		return false
	}
	c.rest = c.rest[n:]
	return true
}

// numbers appends the field's value, or all of its packed values, to out, which gets no longer than
// most; more reports whether there were further ones.
func (c *cursor) numbers(out []uint64, most int) (all []uint64, more bool) {
	list := c.data
	if c.wire == protowire.VarintType {
		if len(out) == most {
			return out, true
		}
		return append(out, c.value), false
	}
	for len(list) > 0 && len(out) < most {
		v, n := protowire.ConsumeVarint(list)
		if n < 0 {
			c.err = ErrWire
			break
		}
		out, list = append(out, v), list[n:]
	}
	return out, len(list) > 0
}
