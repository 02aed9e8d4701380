package jfr

import (
	"errors"
	"fmt"
	"io"
)

// blocks reads the blocks of a frame, except empty ones and the one that ends it: that one may be
// replaced by more.
type blocks struct {
	in    io.ReaderAt
	at    int64 // of the next one
	empty int
	room  []byte
	b     []byte // the rest of the last one
	err   error
}

// Read implements io.Reader.
func (r *blocks) Read(b []byte) (int, error) {
	for len(r.b) == 0 && r.err == nil {
		r.err = r.next()
	}
	if len(r.b) == 0 {
		return 0, r.err
	}
	n := copy(b, r.b)
	r.b = r.b[n:]
	return n, nil
}

func (r *blocks) next() error {
	b, err := blockAt(r.in, r.at)
	switch {
	case err != nil:
		return err
	case b.last:
		return fmt.Errorf("%w: it ends before its header says", ErrMalformed)
	case b.empty:
		r.at, err = skipEmpty(r.in, r.at, &r.empty)
		return err
	}
	n := int(blockHead + b.stored)
	if cap(r.room) < n {
		r.room = make([]byte, blockHead+mostBlock)
	}
	r.b = r.room[:n]
	if _, err := r.in.ReadAt(r.b, r.at); err != nil {
		r.b = nil
		if errors.Is(err, io.EOF) {
			err = errShortFile
		}
		return err
	}
	r.at += int64(n)
	r.empty = 0
	return nil
}

// hintOf skips the events of a piece and returns the position of the checkpoint with the constants
// that candid refers to; 0: there is none.
func hintOf(b []byte, first bool) (int64, error) {
	at := 0
	if !first {
		none, _ := bare()
		at = pieceHead + len(none)
	}
	for at < len(b) {
		c := cursor{b: b[at:]}
		size := c.long()
		if c.err != nil || size < uint64(c.pos) || size > uint64(len(b)-at) {
			return 0, fmt.Errorf("%w: the event at byte %d of a piece has %d bytes", ErrMalformed, at, size)
		}
		if c.pos < len(c.b) && c.b[c.pos] == typeCheckpoint {
			checkpointHead(&c)
			pools, typ := c.long(), c.long()
			if c.err == nil && (pools != 1 || typ != typeStackTrace) {
				return int64(at), nil
			}
		}
		at += int(size)
	}
	return 0, nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
