package jfr

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// sizeOf returns the size of a chunk according to its header.
func sizeOf(h []byte) int64 {
	return int64(min(binary.BigEndian.Uint64(h[atSize:]), mostChunk))
}

// zheader is a chunk's header and the data after it.
type zheader struct {
	h     []byte
	size  int64  // of the chunk
	first int64  // of its first piece
	sum   uint32 // of all its pieces
}

// header reads a chunk's header, which may be changed at the same time.
func (u *unzstd) header(c *zchunk) (zheader, error) {
	const most = 100
	le := binary.LittleEndian
	b := make([]byte, headerFrames)
	for range most {
		if _, err := u.in.ReadAt(b, c.at); err != nil {
			if errors.Is(err, io.EOF) {
				err = errShortFile
			}
			return zheader{}, err
		}
		if !isZstd(b) {
			break
		}
		if frameChecksum(b) == le.Uint32(b[atChecksum:]) {
			h := b[plainHead:atSkipped]
			return zheader{
				h: h, size: sizeOf(h),
				first: int64(le.Uint32(b[atFirst:])), sum: le.Uint32(b[atContent:]),
			}, nil
		}
	}
	return zheader{}, fmt.Errorf("%w: the header that is packed at byte %d has a wrong checksum", ErrMalformed, c.at)
}

// block is the head of a block.
type block struct {
	last   bool
	empty  bool
	stored int64 // bytes after its head
}

var errNoBlock = fmt.Errorf("%w: no packed block begins there", ErrMalformed)

// blockAt reads the head of a block.
func blockAt(in io.ReaderAt, at int64) (block, error) {
	var b [blockHead]byte
	if _, err := in.ReadAt(b[:], at); err != nil {
		if errors.Is(err, io.EOF) {
			err = errShortFile
		}
		return block{}, err
	}
	n := int64(b[0]) | int64(b[1])<<8 | int64(b[2])<<16
	d := block{last: n&1 != 0, stored: n >> 3}
	switch n >> 1 & 3 {
	case 0:
		d.empty = n>>3 == 0
	case 1:
		d.stored = 1
	case 3:
		return d, errNoBlock
	}
	if n>>3 > mostBlock || d.last && !d.empty {
		return d, errNoBlock
	}
	return d, nil
}

// skipEmpty skips empty blocks; n counts consecutive ones.
func skipEmpty(in io.ReaderAt, at int64, n *int) (int64, error) {
	var b [1000 * blockHead]byte
	for {
		got, err := in.ReadAt(b[:], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return at, err
		}
		empty := 0
		for (empty+1)*blockHead <= got && [blockHead]byte(b[empty*blockHead:]) == [blockHead]byte{} {
			empty++
		}
		at += int64(empty) * blockHead
		if *n += empty; *n > mostEmpty {
			return at, fmt.Errorf("%w: nothing but empty blocks in front of byte %d", ErrMalformed, at)
		}
		if empty*blockHead < len(b) {
			return at, nil
		}
	}
}
