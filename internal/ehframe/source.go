package ehframe

import "io"

// wholeLimit is the largest section that is kept in memory, in bytes. Single entries of larger ones
// are read on demand, so the reader of the file should cache what was read last.
const wholeLimit = 32 << 10

// source is the bytes of a section, or of a part of one.
type source struct {
	whole []byte
	r     io.ReaderAt // if not whole
	size  uint64
	buf   []byte
}

func newSource(r io.ReaderAt, size uint64) (source, error) {
	s := source{size: size}
	if size > wholeLimit {
		s.r = r
		return s, nil
	}
	s.whole = make([]byte, size)
	n, err := r.ReadAt(s.whole, 0)
	if n == len(s.whole) {
		return s, nil
	}
	return source{}, err
}

// at returns n bytes at off, valid until the next call.
func (s *source) at(off, n uint64) ([]byte, bool) {
	if s.r == nil {
		if off > uint64(len(s.whole)) || n > uint64(len(s.whole))-off {
			return nil, false
		}
		return s.whole[off : off+n : off+n], true
	}
	if off > s.size || n > s.size-off || n > maxLength {
		return nil, false
	}
	if uint64(len(s.buf)) < n {
		s.buf = make([]byte, max(n, 256))
	}
	got, _ := s.r.ReadAt(s.buf[:n], int64(off))
	return s.buf[:n], uint64(got) == n
}
