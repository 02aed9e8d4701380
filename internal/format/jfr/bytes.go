package jfr

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
)

// ErrMalformed is wrapped by the errors for files that are not recordings, or whose parts do not
// fit together.
var ErrMalformed = errors.New("malformed recording")

// errNotThere is wrapped by the errors for a reference to a constant that does not exist.
var errNotThere = fmt.Errorf("%w: a constant is not there", ErrMalformed)

var errShort = fmt.Errorf("%w: an event ends in the middle of a value", ErrMalformed)

// cursor reads values. After a failure it returns zeros, and keeps the error.
type cursor struct {
	b   []byte
	pos int
	err error
}

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.pos = len(c.b)
}

func (c *cursor) left() int { return len(c.b) - c.pos }

// long reads an integer of any size. A negative int is returned as more than 2^31.
func (c *cursor) long() uint64 {
	if c.pos < len(c.b) && c.b[c.pos] < 0x80 {
		c.pos++
		return uint64(c.b[c.pos-1])
	}
	var v uint64
	for i := range uint(maxLong) {
		if c.pos >= len(c.b) {
			c.fail(errShort)
			return 0
		}
		x := c.b[c.pos]
		c.pos++
		if i == maxLong-1 {
			return v | uint64(x)<<(7*i)
		}
		v |= uint64(x&0x7f) << (7 * i)
		if x < 0x80 {
			return v
		}
	}
	return v
}

// count reads the number of elements that follow, each of which takes at least one byte.
func (c *cursor) count() int {
	n := c.long()
	if n > uint64(c.left()) {
		c.fail(errShort)
		return 0
	}
	return int(n)
}

func (c *cursor) skip(n int) {
	if n > c.left() {
		c.fail(errShort)
		return
	}
	c.pos += n
}

func (c *cursor) byte() byte {
	if c.left() < 1 {
		c.fail(errShort)
		return 0
	}
	c.pos++
	return c.b[c.pos-1]
}

func (c *cursor) bytes() []byte {
	n := c.count()
	c.pos += n
	return c.b[c.pos-n : c.pos]
}

// text is a string, or the number of the constant that holds it.
type text struct {
	s   string
	ref uint64
}

func (c *cursor) text() text {
	switch enc := c.byte(); enc {
	case stringNull, stringEmpty:
		return text{}
	case stringConstant:
		return text{ref: c.long()}
	case stringUTF8:
		return text{s: strings.ToValidUTF8(string(c.bytes()), "\uFFFD")}
	case stringChars:
		units := make([]uint16, c.count())
		for i := range units {
			units[i] = uint16(c.long())
		}
		return text{s: string(utf16.Decode(units))}
	case stringLatin1:
		data := c.bytes()
		runes := make([]rune, len(data))
		for i, x := range data {
			runes[i] = rune(x)
		}
		return text{s: string(runes)}
	default:
		c.fail(fmt.Errorf("%w: a string in an unknown form, %d", ErrMalformed, enc))
		return text{}
	}
}

// skipText skips a string.
func (c *cursor) skipText() {
	switch enc := c.byte(); enc {
	case stringNull, stringEmpty:
	case stringConstant:
		c.long()
	case stringUTF8, stringLatin1:
		c.bytes()
	case stringChars:
		for range c.count() {
			c.long()
		}
	default:
		c.fail(fmt.Errorf("%w: a string in an unknown form, %d", ErrMalformed, enc))
	}
}

// data reads the bytes that appendBytes wrote. They belong to the cursor.
func (c *cursor) data() []byte {
	switch enc := c.byte(); enc {
	case stringNull, stringEmpty:
		return nil
	case stringUTF8, stringLatin1:
		return c.bytes()
	default:
		c.fail(fmt.Errorf("%w: stacks in an unknown form, %d", ErrMalformed, enc))
		return nil
	}
}
