package jfr

import (
	"io"
)

// scratch is memory that is reused.
type scratch struct {
	blocks [][]byte
	next   int    // index of the next block
	left   []byte // rest of the block before
}

const scratchBlock = 1 << 20

// take returns n bytes, valid until reset, with arbitrary content.
func (s *scratch) take(n int64) []byte {
	if n > scratchBlock {
		return make([]byte, n)
	}
	if n > int64(len(s.left)) {
		if s.next == len(s.blocks) {
			s.blocks = append(s.blocks, make([]byte, scratchBlock))
		}
		s.left = s.blocks[s.next]
		s.next++
	}
	b := s.left[:n:n]
	s.left = s.left[n:]
	return b
}

func (s *scratch) reset() { s.next, s.left = 0, nil }

// window is a part of the file.
type window struct {
	in  io.ReaderAt
	off int64 // position of buf in the file
	buf []byte
	end int64 // reading ends there
}

const windowSize = 1 << 20

// at returns n bytes of the file, which must lie before the window's end. They are valid until the
// next call.
func (w *window) at(off int64, n int) ([]byte, error) {
	if off >= w.off && off+int64(n) <= w.off+int64(len(w.buf)) {
		i := int(off - w.off)
		return w.buf[i : i+n], nil
	}
	size := int(min(int64(max(n, windowSize)), w.end-off))
	if cap(w.buf) < size {
		w.buf = make([]byte, size)
	}
	w.buf, w.off = w.buf[:size], off
	if _, err := w.in.ReadAt(w.buf, off); err != nil {
		w.buf = w.buf[:0]
		return nil, err
	}
	return w.buf[:n], nil
}
