package speedscope

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// ErrMalformed is wrapped by the errors for files that are not in speedscope's format, or damaged.
var ErrMalformed = errors.New("not a speedscope profile, or a damaged one")

// Limits of what a file can make the scanner hold.
const (
	maxString = 1 << 20
	maxDepth  = 64 // of nested objects that are skipped
)

// scanner reads JSON as a stream, without building values. After an error everything that it
// returns is empty.
type scanner struct {
	in   *bufio.Reader
	err  error
	at   int64
	text []byte // the string or number that was read last
}

func (s *scanner) fail(what string) {
	if s.err == nil {
		s.err = fmt.Errorf("%w: %s at byte %d", ErrMalformed, what, s.at)
	}
}

func (s *scanner) byte() byte {
	if s.err != nil {
		return 0
	}
	b, err := s.in.ReadByte()
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		s.err = err
		return 0
	}
	s.at++
	return b
}

func (s *scanner) back() {
	if s.err == nil {
		s.in.UnreadByte()
		s.at--
	}
}

// next returns the next byte that is not white space.
func (s *scanner) next() byte {
	for {
		switch b := s.byte(); b {
		case ' ', '\n', '\r', '\t':
		default:
			return b
		}
	}
}

func (s *scanner) expect(want byte) {
	if got := s.next(); got != want {
		s.fail(fmt.Sprintf("%q where %q belongs", got, want))
	}
}

// list calls each for every element between two brackets.
func (s *scanner) list(open, end byte, each func()) {
	s.expect(open)
	if s.next() == end || s.err != nil {
		return
	}
	s.back()
	for s.err == nil {
		each()
		switch got := s.next(); got {
		case ',':
		case end:
			return
		default:
			s.fail(fmt.Sprintf("%q in a list", got))
		}
	}
}

// array calls each for every element, which it must read.
func (s *scanner) array(each func()) { s.list('[', ']', each) }

// object calls each with every key; it must read the value.
func (s *scanner) object(each func(key string)) {
	s.list('{', '}', func() {
		key := s.string()
		s.expect(':')
		if s.err == nil {
			each(key)
		}
	})
}

// string reads a string; null is "".
func (s *scanner) string() string {
	switch s.next() {
	case '"':
	case 'n':
		s.back()
		s.word()
		return ""
	default:
		s.fail("no string")
		return ""
	}
	s.text = append(s.text[:0], '"')
	escaped := false
	for s.err == nil {
		b := s.byte()
		s.text = append(s.text, b)
		switch {
		case escaped:
			escaped = false
			continue
		case b == '\\':
			escaped = true
		case b == '"':
			var out string
			if err := json.Unmarshal(s.text, &out); err != nil {
				s.fail("a string that is none")
			}
			return out
		}
		if len(s.text) > maxString {
			s.fail("a string of more than a megabyte")
		}
	}
	return ""
}

// word reads a number, true, false or null into text.
func (s *scanner) word() {
	s.text = s.text[:0]
	b := s.next()
	for s.err == nil && len(s.text) < 64 {
		switch {
		case b >= '0' && b <= '9', b >= 'a' && b <= 'z', b == '-', b == '+', b == '.', b == 'E':
			s.text = append(s.text, b)
		default:
			s.back()
			if len(s.text) == 0 {
				s.fail(fmt.Sprintf("%q", b))
			}
			return
		}
		// Numbers occur only inside of an object, so the end of the file is an error here.
		b = s.byte()
	}
	s.fail("a long number")
}

// number reads a number; null is 0.
func (s *scanner) number() float64 {
	s.word()
	if s.err != nil || string(s.text) == "null" {
		return 0
	}
	f, err := strconv.ParseFloat(string(s.text), 64)
	if err != nil || f != f {
		s.fail("no number")
		return 0
	}
	return f
}

// index reads a non-negative integer.
func (s *scanner) index() uint32 {
	s.word()
	var n uint64
	for _, b := range s.text {
		if b < '0' || b > '9' || n > 1<<32 {
			s.fail("no index")
			return 0
		}
		n = 10*n + uint64(b-'0')
	}
	if n > 1<<32-1 {
		s.fail("no index")
	}
	return uint32(n)
}

// skip skips a value.
func (s *scanner) skip() { s.skipTo(maxDepth) }

func (s *scanner) skipTo(depth int) {
	if depth == 0 {
		s.fail("lists in lists without end")
		return
	}
	b := s.next()
	s.back()
	switch b {
	case '{':
		s.object(func(string) { s.skipTo(depth - 1) })
	case '[':
		s.array(func() { s.skipTo(depth - 1) })
	case '"':
		s.string()
	default:
		s.word()
	}
}
