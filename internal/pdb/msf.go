// Package pdb reads program databases, the separate debug information of Windows programs: functions,
// public symbols, source lines and inlined functions. Nothing is read before it is needed, and every
// size that a file states is bounded, because files may be hostile.
//
// Sources: LLVM, "The PDB File Format" and "CodeView Symbol Records"; microsoft/microsoft-pdb,
// cvinfo.h.
package pdb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrFormat means that the file is not a program database that can be read, or is damaged.
var ErrFormat = errors.New("not a usable program database")

// Bounds on what a file may state. The largest real files have some gigabytes.
const (
	maxBlocks    = 1 << 24
	maxDirectory = 64 << 20
	maxStreams   = 1 << 17
	maxStream    = 512 << 20
	absent       = 0xffff // as the number of a stream
)

const magic = "Microsoft C/C++ MSF 7.00\r\n\x1aDS\x00\x00\x00"

// container is a file of streams, each of which is a list of blocks (MSF 7.00).
type container struct {
	r       io.ReaderAt
	block   uint32 // size of a block, bytes
	streams []stream
}

type stream struct {
	size   uint32
	blocks []byte // numbers of blocks, 4 bytes each
}

func openContainer(r io.ReaderAt) (*container, error) {
	var head [56]byte
	if _, err := r.ReadAt(head[:], 0); err != nil || string(head[:32]) != magic {
		return nil, fmt.Errorf("%w: no MSF 7.00", ErrFormat)
	}
	le := binary.LittleEndian
	c := &container{r: r, block: le.Uint32(head[32:])}
	count, size, at := le.Uint32(head[40:]), le.Uint32(head[44:]), le.Uint32(head[52:])
	switch c.block {
	case 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536:
	default:
		return nil, fmt.Errorf("%w: blocks of %d bytes", ErrFormat, c.block)
	}
	if count > maxBlocks || size > maxDirectory || size < 4 {
		return nil, fmt.Errorf("%w: %d blocks, a directory of %d bytes", ErrFormat, count, size)
	}
	// The directory's blocks are listed in blocks of their own.
	list := make([]byte, 4*c.blocks(size))
	if _, err := r.ReadAt(list, int64(at)*int64(c.block)); err != nil {
		return nil, fmt.Errorf("%w: read the list of the directory's blocks: %v", ErrFormat, err)
	}
	dir, err := c.read(stream{size, list}, maxDirectory)
	if err != nil {
		return nil, err
	}
	n := le.Uint32(dir)
	if n > maxStreams || uint64(len(dir)) < 4+4*uint64(n) {
		return nil, fmt.Errorf("%w: %d streams", ErrFormat, n)
	}
	sizes, rest := dir[4:4+4*n], dir[4+4*n:]
	for ; len(sizes) > 0; sizes = sizes[4:] {
		s := stream{size: le.Uint32(sizes)}
		if s.size == 0xffffffff {
			s.size = 0
		}
		need := 4 * uint64(c.blocks(s.size))
		if need > uint64(len(rest)) {
			return nil, fmt.Errorf("%w: the directory ends early", ErrFormat)
		}
		s.blocks, rest = rest[:need], rest[need:]
		c.streams = append(c.streams, s)
	}
	return c, nil
}

// blocks returns how many blocks n bytes take.
func (c *container) blocks(n uint32) uint32 {
	return uint32((uint64(n) + uint64(c.block) - 1) / uint64(c.block))
}

// read reads a stream, which may have at most limit bytes.
func (c *container) read(s stream, limit uint32) ([]byte, error) {
	if s.size > limit {
		return nil, fmt.Errorf("%w: a stream of %d bytes", ErrFormat, s.size)
	}
	var out []byte // grows with the data, so that a false size costs nothing
	for left := s.size; left > 0; {
		if len(s.blocks) < 4 {
			return nil, fmt.Errorf("%w: a stream ends early", ErrFormat)
		}
		n := min(left, c.block)
		at := len(out)
		out = append(out, make([]byte, n)...)
		if _, err := c.r.ReadAt(out[at:], int64(binary.LittleEndian.Uint32(s.blocks))*int64(c.block)); err != nil {
			return nil, fmt.Errorf("%w: read a block: %v", ErrFormat, err)
		}
		left, s.blocks = left-n, s.blocks[4:]
	}
	return out, nil
}

// stream reads the stream with a number; it is empty if there is none.
func (c *container) stream(n int) ([]byte, error) {
	if n < 0 || n >= len(c.streams) || n == absent {
		return nil, nil
	}
	return c.read(c.streams[n], maxStream)
}
