package jfr

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sort"

	"github.com/klauspost/compress/zstd"
)

const (
	// mostWindow is the maximum window size that is accepted.
	mostWindow = 8 << 20
	// mostBlock is the maximum size of a zstd block.
	mostBlock = 128 << 10
	// mostEmpty is how many empty blocks may follow each other: more than the padding of any piece.
	mostEmpty = maxEvent / mostZstd
	// mostHeld is how many bytes of a piece are allocated before they are read.
	mostHeld = 1 << 20
	// mostAgain is how often, and for each chunk how often more, unpacking may start again because
	// data was read out of order: readers that follow a file may do so.
	mostAgain = 16
	// mostChunk bounds the size of a chunk according to its header.
	mostChunk = 1 << 32
)

// errShortFile is the error if a packed file was cut off.
var errShortFile = fmt.Errorf("%w: it is cut off", ErrMalformed)

// isZstd reports whether a file with this beginning is a recording of candid's in zstd's format.
func isZstd(head []byte) bool {
	return len(head) >= headerFrames && bytes.HasPrefix(head, plainFrame[:]) && Is(head[plainHead:]) && string(head[atMark:atFirst]) == zstdMark
}

// unzstd presents such a file unpacked, piece by piece: it holds the last one.
type unzstd struct {
	in     io.ReaderAt
	chunks []zchunk
	at     int64 // the first block of the last chunk that was not passed yet
	empty  int   // blocks before it

	z       *zstd.Decoder // has memory for a window, which each chunk needs
	reading *unpacking    // unpacks the chunk that is being read; nil: none is
	held    zpiece        // the last piece that was read
	spare   []byte        // memory for the next one
	ahead   chan zpiece   // the piece after held; nil: it is not being unpacked
	again   int           // how often a chunk was begun again, out of order
}

// zchunk is the position of a chunk.
type zchunk struct {
	at   int64 // in the file
	base int64 // in the unpacked file
}

// zpiece is an unpacked piece.
type zpiece struct {
	chunk    int
	from, to int64 // in the chunk; to is 0: there is none
	b        []byte
	err      error
}

// Size implements Packed.
func (u *unzstd) Size() int64 {
	if len(u.chunks) == 0 {
		return 0
	}
	last := &u.chunks[len(u.chunks)-1]
	h, err := u.header(last)
	if err != nil {
		return last.base + headerSize // the error is reported when that is read
	}
	return last.base + h.size
}

func (u *unzstd) stored() int64 { return u.at }

// grow finds what was added.
func (u *unzstd) grow() error {
	if len(u.chunks) == 0 {
		if _, err := u.begin(0, 0); err != nil {
			return err
		}
	}
	const most = 100
	failed := 0
	for {
		b, err := blockAt(u.in, u.at)
		switch {
		case errors.Is(err, errShortFile):
			return nil
		case errors.Is(err, errNoBlock) && failed < most:
			failed++ // a gate may be opened at this moment
			continue
		case err != nil:
			return fmt.Errorf("at byte %d: %w", u.at, err)
		case b.last:
			if more, err := u.next(); !more {
				return err
			}
		case b.empty:
			if u.at, err = skipEmpty(u.in, u.at, &u.empty); err != nil {
				return err
			}
		default:
			var last [1]byte
			end := u.at + blockHead + b.stored
			if _, err := u.in.ReadAt(last[:], end-1); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			u.at, u.empty, failed = end, 0, 0
		}
	}
}

// next moves to the chunk that follows the block that ends the last one; false if there is none, or
// the chunk has grown in the meantime.
func (u *unzstd) next() (bool, error) {
	var head [skippedHead]byte
	at := u.at + blockHead
	if _, err := u.in.ReadAt(head[:], at); err != nil {
		return false, noEOF(err)
	}
	le := binary.LittleEndian
	if le.Uint32(head[:]) == skippableMagic {
		at += skippedHead + int64(le.Uint32(head[4:]))
	}
	last := &u.chunks[len(u.chunks)-1]
	before := u.at
	if more, err := u.begin(at, last.base); !more {
		return false, err
	}
	b, err := blockAt(u.in, before)
	h, err2 := u.header(last)
	if err = errors.Join(err, err2); err != nil || !b.last {
		u.at, u.chunks = before, u.chunks[:len(u.chunks)-1]
		return false, err
	}
	u.chunks[len(u.chunks)-1].base += h.size
	return true, nil
}

// begin adds the chunk that begins at a position of the file; false if none does.
func (u *unzstd) begin(at, base int64) (bool, error) {
	b := make([]byte, headerFrames+frameHead)
	if _, err := u.in.ReadAt(b, at); err != nil {
		return false, noEOF(err)
	}
	if !isZstd(b) {
		return false, nil
	}
	if f := b[headerFrames:]; binary.LittleEndian.Uint32(f) != frameMagic || f[4] != 0 {
		return false, nil
	}
	u.chunks = append(u.chunks, zchunk{at, base})
	u.at, u.empty = at+headerFrames+frameHead, 0
	return true, nil
}

// find returns the index of the chunk that holds a byte, or of the last one.
func (u *unzstd) find(off int64) int {
	return sort.Search(len(u.chunks), func(i int) bool { return u.chunks[i].base > off }) - 1
}

// ReadAt implements io.ReaderAt.
func (u *unzstd) ReadAt(b []byte, off int64) (n int, err error) {
	for n < len(b) {
		at := off + int64(n)
		i := u.find(at)
		if i < 0 {
			return n, io.EOF
		}
		c := &u.chunks[i]
		if at -= c.base; at < headerSize {
			h, err := u.header(c)
			if err != nil {
				return n, err
			}
			n += copy(b[n:], h.h[at:])
			continue
		}
		p, err := u.piece(i, at)
		if errors.Is(err, io.EOF) && u.find(off+int64(n)) > i {
			continue // another chunk was found there
		}
		if err != nil {
			return n, err
		}
		n += copy(b[n:], p.b[at-p.from:])
	}
	return n, nil
}

// portion implements Packed.
func (u *unzstd) portion(off, end int64) (portion, error) {
	i := u.find(off)
	if i < 0 {
		return portion{}, io.EOF
	}
	base := u.chunks[i].base
	p, err := u.piece(i, off-base)
	if err != nil {
		return portion{}, err
	}
	if base+p.from != off || base+p.to > end {
		return portion{}, fmt.Errorf("%w: no piece begins at byte %d of what is packed, or it is too long", ErrMalformed, off)
	}
	out := portion{at: off, next: base + p.to, b: p.b}
	out.hint, err = hintOf(p.b, p.from == headerSize)
	return out, err
}

// piece unpacks the piece of a chunk that holds a byte. The next piece is unpacked in parallel. It
// returns io.EOF if the chunk does not hold that byte.
func (u *unzstd) piece(chunk int, at int64) (*zpiece, error) {
	p := &u.held
	for p.to == 0 || p.chunk != chunk || at < p.from || at >= p.to {
		next, err := u.after(chunk, at)
		if errors.Is(err, io.EOF) {
			return nil, err
		}
		if err != nil {
			u.reading, u.held = nil, zpiece{}
			return nil, err
		}
		u.spare, u.held = p.b, next
		if r := u.reading; r.chunk == chunk && u.look(r) == nil && r.at < r.size {
			room, ahead := u.spare, make(chan zpiece, 1)
			u.spare, u.ahead = nil, ahead
			go func() { ahead <- r.read(room) }()
		}
	}
	return p, nil
}

// after unpacks the piece after the one that was unpacked last, or the first one of the chunk if at
// comes before that.
func (u *unzstd) after(chunk int, at int64) (zpiece, error) {
	if u.ahead != nil {
		p := <-u.ahead
		u.ahead = nil
		if p.chunk == chunk || p.err == nil {
			return p, p.err
		}
		u.reading = nil
	}
	r := u.reading
	if r == nil || r.chunk != chunk || r.at > at {
		if r != nil && r.chunk >= chunk {
			if u.again++; u.again > mostAgain+len(u.chunks) {
				return zpiece{}, fmt.Errorf("%w: its parts are not in the order of what refers to them", ErrMalformed)
			}
		}
		var err error
		if r, err = u.unpack(chunk); err != nil {
			return zpiece{}, err
		}
		u.reading = r
	}
	if err := u.look(r); err != nil {
		return zpiece{}, err
	}
	if at >= r.size {
		return zpiece{}, io.EOF
	}
	p := r.read(u.spare)
	u.spare = nil
	return p, p.err
}

// unpacking is the state of unpacking a chunk.
type unpacking struct {
	chunk  int
	from   zchunk
	at     int64  // in the chunk, of the next piece
	size   int64  // of the chunk
	first  int64  // of its first piece
	sum    uint32 // of the pieces that were unpacked
	want   uint32 // of all pieces up to size
	end    int64  // in the file: the chunk ends before it
	blocks blocks
	z      *zstd.Decoder
}

// unpack starts unpacking a chunk.
func (u *unzstd) unpack(chunk int) (*unpacking, error) {
	c := u.chunks[chunk]
	r := &unpacking{chunk: chunk, at: headerSize, from: c, blocks: blocks{in: u.in, at: c.at + headerFrames + frameHead}}
	r.blocks.b = make([]byte, frameHead)
	if _, err := u.in.ReadAt(r.blocks.b, c.at+headerFrames); err != nil {
		return nil, err
	}
	if u.z == nil {
		var err error
		if u.z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(mostWindow)); err != nil {
			return nil, err
		}
	}
	r.z = u.z
	return r, r.z.Reset(&r.blocks)
}

// look reads the current length of the chunk.
func (u *unzstd) look(r *unpacking) error {
	h, err := u.header(&r.from)
	if err != nil {
		return err
	}
	r.size, r.first, r.want = h.size, h.first, h.sum
	if r.end = u.at; r.chunk+1 == len(u.chunks) {
		err = u.grow()
		r.end = u.at
	}
	return err
}

// read unpacks the next piece, into room if that is large enough.
func (r *unpacking) read(room []byte) zpiece {
	p := zpiece{chunk: r.chunk, from: r.at, b: room[:0]}
	if err := r.piece(&p); err != nil {
		if !errors.Is(err, ErrMalformed) {
			err = fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		p.err = fmt.Errorf("unpack what is packed at byte %d: %w", r.blocks.at, err)
	}
	return p
}

func (r *unpacking) piece(p *zpiece) error {
	begun := r.blocks.at
	length := r.first
	if r.at == headerSize {
		begun = r.from.at
	} else {
		if r.size-r.at < pieceHead {
			return io.ErrUnexpectedEOF
		}
		if err := r.fill(p, pieceHead); err != nil {
			return err
		}
		if !Is(p.b) {
			return errNoChunk
		}
		length = max(sizeOf(p.b), pieceHead)
	}
	if length == 0 || length > min(maxEvent, r.size-r.at) {
		return fmt.Errorf("%w: a piece of %d bytes at byte %d of %d", ErrMalformed, length, r.at, r.size)
	}
	if most := mostZstd * (r.end - begun); length > most {
		return fmt.Errorf("%w: a piece of %d bytes, and no more than %d can be packed there", ErrMalformed, length, most)
	}
	if err := r.fill(p, int(length)); err != nil {
		return err
	}
	if most := mostZstd * (r.blocks.at - begun); length > most {
		return fmt.Errorf("%w: %d bytes are packed in %d, as nothing recorded is", ErrMalformed, length, r.blocks.at-begun)
	}
	r.at += length
	r.sum = crc32.Update(r.sum, crc32.IEEETable, p.b)
	if r.at == r.size && r.sum != r.want {
		return fmt.Errorf("%w: the checksum of the chunk is wrong", ErrMalformed)
	}
	p.to = r.at
	return nil
}

// fill unpacks until a piece has n bytes.
func (r *unpacking) fill(p *zpiece, n int) error {
	for len(p.b) < n {
		from := len(p.b)
		to := min(n, from+mostHeld)
		if cap(p.b) < to {
			p.b = append(make([]byte, 0, min(n, max(to, 2*cap(p.b)))), p.b...)
		}
		p.b = p.b[:to]
		got, err := io.ReadFull(r.z, p.b[from:])
		p.b = p.b[:from+got]
		if r.blocks.err != nil {
			return r.blocks.err
		}
		if err != nil {
			return err
		}
	}
	return nil
}
