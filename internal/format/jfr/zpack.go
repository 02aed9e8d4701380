package jfr

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/zstd"
)

// A file in zstd's format grows so that any program that unpacks it gets a complete recording
// whenever candid is ended. Its unpacked content is the same pieces as in a file in gzip's format
// (pack.go).
//
// A chunk is two frames. One holds its header, which is not compressed, so that it can be changed
// in place, followed by a skippable frame with its checksum and candid's mark. The other holds
// everything else, so that each step is compressed with what came before it.
//
// No system call both extends a file and changes its content. So the last block in use is followed
// by a gate: a block that ends the frame, and the head of a skippable frame, which reaches to the
// end of the file:
//
//	     … blocks | 01 00 00 | 50 2a 4d 18 and the size | what is not used yet
//	gate shut      an end     a frame to be skipped      …
//	gate open      four empty blocks, 00 00 00 each      | blocks …
//
// A step writes its blocks, followed by another gate, into the unused part; then it opens the gate,
// by one call within a page; then it updates the header to include the piece. If there is not
// enough room the file is first extended by pages, each a skippable frame, which the size in the
// gate then includes. A chunk begins with its frames in the unused part of the one before; then the
// gate of that chunk is changed to skip only up to there, also by one call.
const (
	frameMagic     = 0xfd2fb528
	skippableMagic = 0x184d2a50

	// The head of a frame, and of its only block, of as many bytes as a chunk's header.
	plainHead = 4 + 2 + blockHead
	// After that header: a skippable frame with a mark, the length of the chunk's first piece, a
	// checksum of all pieces that the header includes, and one of header, length and that checksum.
	atSkipped    = plainHead + headerSize
	atMark       = atSkipped + skippedHead
	atFirst      = atMark + 4
	atContent    = atFirst + 4
	atChecksum   = atContent + 4
	headerFrames = atChecksum + 4

	blockHead   = 3
	skippedHead = 8
	gateLength  = 4 * blockHead // the first byte of the unused part is its last one
	atGateSize  = blockHead + 4
	frameHead   = 4 + 1 + 1 // of a frame without a content size and a checksum

	zstdMark = "CDz2"
	// zstdWindow is the maximum distance of a match. A smaller one takes less memory.
	zstdWindow = 4 << 20
	// mostZstd bounds the ratio of unpacked to packed size. Uniform data is padded with empty
	// blocks to keep within it.
	mostZstd = 256
)

var (
	plainFrame = [plainHead]byte{0x28, 0xb5, 0x2f, 0xfd, 0x20, headerSize, headerSize<<3&0xff | 1, headerSize >> 5}
	endBlock   = [blockHead]byte{1}
)

// zpacker writes zstd's format.
type zpacker struct {
	base   int64  // where in the file the chunk begins
	first  uint32 // the length of the first piece of the chunk
	sum    uint32 // the checksum of its pieces
	end    int64  // the position of the block that ends its frame
	size   int64  // of the file, if it is to be complete at any time
	b      bytes.Buffer
	z      *zstd.Encoder
	packed []byte // scratch
}

// NewZstdStream is NewStream for a file in zstd's format.
func NewZstdStream(out Output, src Source, info func() Info) *Stream {
	return newPacked(&zpacker{}, out, src, info)
}

// put implements packing.
func (p *zpacker) put(out Output, piece *piece) error {
	blocks, err := p.compress(piece)
	if err != nil {
		return err
	}
	length := len(piece.head) + len(piece.events) + len(piece.traces)
	at := p.end
	switch {
	case !piece.first && piece.careful:
		at += gateLength
	case piece.first && piece.careful && at > 0:
		at = inPage(at + gateLength)
	case piece.first && at > 0:
		at += blockHead
	}
	b, first, sum := p.packed[:0], p.first, p.sum
	if piece.first {
		first, sum = uint32(length), 0
	}
	for _, part := range [][]byte{piece.head, piece.events, piece.traces} {
		sum = crc32.Update(sum, crc32.IEEETable, part)
	}
	h := frames(piece.header, first, sum)
	if piece.first {
		b = append(b, h...)
		b = append(b, blocks[:frameHead]...)
		blocks = blocks[frameHead:]
		length += headerSize
	}
	for fill := (length+mostZstd-1)/mostZstd - len(b) - len(blocks); fill > 0; fill -= blockHead {
		b = append(b, 0, 0, 0)
	}
	b = append(b, blocks...)
	p.packed = again(b)
	if piece.careful {
		err = p.grow(out, at, b, piece.first)
	} else {
		_, err = out.WriteAt(append(b, endBlock[:]...), at)
		p.end = at + int64(len(b))
	}
	if err != nil {
		return err
	}
	p.sum = sum
	if piece.first {
		p.base, p.first = at, first
		return nil
	}
	_, err = out.WriteAt(h[plainHead:], p.base+plainHead)
	return err
}

// compress returns the blocks of a piece; those of a first piece begin with the head of their
// frame.
func (p *zpacker) compress(piece *piece) ([]byte, error) {
	p.b.Reset()
	if p.b.Cap() > 4*keepRoom {
		p.b = bytes.Buffer{}
	}
	if p.z == nil {
		var err error
		p.z, err = zstd.NewWriter(&p.b, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithWindowSize(zstdWindow),
			zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
		if err != nil {
			return nil, err
		}
	} else if piece.first {
		p.z.Reset(&p.b)
	}
	for _, b := range [][]byte{piece.head, piece.events, piece.traces} {
		if _, err := p.z.Write(b); err != nil {
			return nil, err
		}
	}
	if err := p.z.Flush(); err != nil {
		return nil, err
	}
	b := p.b.Bytes()
	if piece.first && (len(b) < frameHead || b[4] != 0) {
		return nil, fmt.Errorf("zstd begins a frame with % x, which candid does not know", b[:min(len(b), frameHead)])
	}
	return b, nil
}

// grow writes b, which is blocks of the chunk or the frames of another one, at a position after the
// gate, and makes readers continue there.
func (p *zpacker) grow(out Output, at int64, b []byte, chunk bool) error {
	end := at + int64(len(b))
	for end%pageSize > pageSize-gateLength {
		b = append(b, 0, 0, 0)
		end += blockHead
	}
	size := (end + gateLength + pageSize - 1) &^ (pageSize - 1)
	if p.size > 0 && size > p.size {
		if err := p.lengthen(out, size); err != nil {
			return err
		}
	}
	size = max(size, p.size)
	b = append(b, p.shut(end, size)...)
	if p.size == 0 { // the file has no name yet
		b = append(b, make([]byte, size-end-gateLength+1)...)
	}
	if _, err := out.WriteAt(b, at); err != nil {
		return err
	}
	if p.size > 0 {
		open, to := make([]byte, gateLength), p.end
		if chunk {
			open, to = p.shut(p.end, at)[atGateSize:], p.end+atGateSize
		}
		if _, err := out.WriteAt(open, to); err != nil {
			return err
		}
	}
	p.end, p.size = end, size
	return nil
}

// shut returns a gate up to the beginning of the unused part, which ends at to.
func (p *zpacker) shut(at, to int64) []byte {
	b := append(make([]byte, 0, gateLength), endBlock[:]...)
	b = binary.LittleEndian.AppendUint32(b, skippableMagic)
	return binary.LittleEndian.AppendUint32(b, uint32(to-at-gateLength+1))
}

// lengthen extends the file by pages.
func (p *zpacker) lengthen(out Output, size int64) error {
	page := make([]byte, pageSize)
	binary.LittleEndian.PutUint32(page, skippableMagic)
	binary.LittleEndian.PutUint32(page[4:], pageSize-skippedHead)
	for at := p.size; at < size; at += pageSize {
		if _, err := out.WriteAt(page, at); err != nil {
			return err
		}
	}
	if _, err := out.WriteAt(p.shut(p.end, size)[atGateSize:], p.end+atGateSize); err != nil {
		return err
	}
	p.size = size
	return nil
}

// inPage returns the first position from at on where one write can change the frames of a chunk's
// header.
func inPage(at int64) int64 {
	if from := (at + plainHead) % pageSize; from > pageSize-(headerFrames-plainHead) {
		at += pageSize - from
	}
	return at
}

// frames returns the frames of a chunk's header. Its pieces have the checksum sum.
func frames(h [headerSize]byte, first, sum uint32) []byte {
	le := binary.LittleEndian
	b := make([]byte, 0, headerFrames)
	b = append(b, plainFrame[:]...)
	b = append(b, h[:]...)
	b = le.AppendUint32(b, skippableMagic)
	b = le.AppendUint32(b, headerFrames-atMark)
	b = append(b, zstdMark...)
	b = le.AppendUint32(b, first)
	b = le.AppendUint32(b, sum)
	return le.AppendUint32(b, frameChecksum(b))
}

// frameChecksum returns the checksum of the variable parts of the frames of a chunk's header.
func frameChecksum(b []byte) uint32 {
	return crc32.Update(crc32.ChecksumIEEE(b[plainHead:atSkipped]), crc32.IEEETable, b[atFirst:atChecksum])
}

func (p *zpacker) used() int64 {
	if p.size > 0 {
		return p.size
	}
	return p.end
}

func (p *zpacker) settled(begun bool) int64 {
	switch {
	case begun:
		return p.base
	case p.end > 0:
		return p.end + blockHead
	}
	return 0
}

// finish cuts off the unused part. The file is also complete with it.
func (p *zpacker) finish(out Output) error {
	if p.size == 0 {
		return nil
	}
	p.size = p.end + blockHead
	return out.Truncate(p.size)
}
