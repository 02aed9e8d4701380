package perfdata

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
)

// ErrMalformed is wrapped by the errors for files that are cut off or damaged.
var ErrMalformed = errors.New("not a recording of perf, or a damaged one")

var le = binary.LittleEndian

// cursor reads numbers of a record. After a read beyond the end short is set, and everything it
// returns is 0.
type cursor struct {
	b     []byte
	short bool
}

// take returns the next n bytes, nil if there are fewer.
func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.b, c.short = nil, true
		return nil
	}
	b := c.b[:n]
	c.b = c.b[n:]
	return b
}

func (c *cursor) u64() uint64 {
	if b := c.take(8); b != nil {
		return le.Uint64(b)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if b := c.take(4); b != nil {
		return le.Uint32(b)
	}
	return 0
}

// text reads a string of a feature: its length, and so many bytes with zeros at the end.
func (c *cursor) text() string { return cString(c.take(uint64(c.u32()))) }

// cString returns what comes before the first zero byte.
func cString(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}
