package format

import (
	"fmt"
	"io"
)

const (
	// freelyUnpacked is how many bytes a packed file may unpack to whatever its size is.
	freelyUnpacked = 1 << 30
	// maxRatio is how many times its size a file may unpack to beyond that. Recordings are packed to a
	// third to a twentieth; zeros to a thousandth by gzip, and to much less by zstd.
	maxRatio = 200
)

// counted counts the bytes that are read from a file.
type counted struct {
	in io.Reader
	n  int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n += int64(n)
	return n, err
}

// proportionate reads what a file unpacks to, as long as that is in proportion to its size. What is
// unpacked goes to a file for temporary data, which a few bytes could fill otherwise.
type proportionate struct {
	in     io.Reader
	packed *counted
	free   int64 // freelyUnpacked
	n      int64
}

func (p *proportionate) Read(b []byte) (int, error) {
	n, err := p.in.Read(b)
	p.n += int64(n)
	if p.n > p.free && p.n/maxRatio > p.packed.n {
		return 0, fmt.Errorf("it unpacks to more than %d times its size, which no recording does: unpack it first (gunzip, zstd -d) if it is one", maxRatio)
	}
	return n, err
}
