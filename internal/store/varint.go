package store

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// errCut is the error for blocks whose content is not what a Writer writes.
var errCut = errors.New("its content is invalid")

func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// appendText appends a string and its length.
func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendColumn appends bytes and their length.
func appendColumn(b, column []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(column))), column...)
}

// cursor reads numbers. After the first that is not there, everything is 0 and bad is set.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) number() uint64 {
	if len(c.b) > 0 && c.b[0] < 0x80 {
		v := c.b[0]
		c.b = c.b[1:]
		return uint64(v)
	}
	return c.long()
}

func (c *cursor) long() uint64 {
	if b := c.b; len(b) >= 3 {
		if b[1] < 0x80 {
			c.b = b[2:]
			return uint64(b[0]&0x7f) | uint64(b[1])<<7
		}
		if b[2] < 0x80 {
			c.b = b[3:]
			return uint64(b[0]&0x7f) | uint64(b[1]&0x7f)<<7 | uint64(b[2])<<14
		}
	}
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.bad, c.b = true, nil
		return 0
	}
	c.b = c.b[n:]
	return v
}

// skip skips n numbers.
func (c *cursor) skip(n uint64) {
	i := 0
	// Eight bytes at a time, as long as more numbers are to be skipped than end in them.
	for n > 0 && len(c.b)-i >= 8 {
		const last = 0x8080808080808080
		ends := uint64(bits.OnesCount64(^binary.LittleEndian.Uint64(c.b[i:]) & last))
		if ends >= n {
			break
		}
		n -= ends
		i += 8
	}
	for ; n > 0 && i < len(c.b); i++ {
		if c.b[i] < 0x80 {
			n--
		}
	}
	c.b = c.b[i:]
	c.bad = c.bad || n > 0
}

func (c *cursor) signed() int64 { return unzigzag(c.number()) }

// below reads a number that has to be less than n.
func (c *cursor) below(n uint64) uint64 {
	v := c.number()
	if v >= n {
		c.bad = true
		return 0
	}
	return v
}

// count reads how many things follow, each of at least one byte.
func (c *cursor) count() int {
	n := c.number()
	if n > uint64(len(c.b)) {
		c.bad = true
		return 0
	}
	return int(n)
}

func (c *cursor) bytes() []byte {
	n := c.count()
	v := c.b[:n]
	c.b = c.b[n:]
	return v
}

// column returns a cursor of a column.
func (c *cursor) column() cursor { return cursor{b: c.bytes(), bad: c.bad} }

func (c *cursor) text() string { return string(c.bytes()) }
