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
	// mostWindow is how large a window may be that is unpacked.
	mostWindow = 8 << 20
	// mostBlock is how large a block of zstd's is.
	mostBlock = 128 << 10
	// mostEmpty is how many empty blocks may follow each other: more than a piece has that
	// is filled up with them.
	mostEmpty = maxEvent / mostZstd
	// mostHeld is how much of a piece is made room for before it is there.
	mostHeld = 1 << 20
	// mostAgain is how often, and for each chunk how often more, what was unpacked is
	// unpacked again because it is asked for out of order: followers may do so.
	mostAgain = 16
	// mostChunk bounds what a header says of its chunk.
	mostChunk = 1 << 32
)

// errShortFile says that a packed file was cut off.
var errShortFile = fmt.Errorf("%w: it is cut off", ErrMalformed)

// isZstd reports whether a file that begins like that is a recording of candid's in zstd's
// form.
func isZstd(head []byte) bool {
	return len(head) >= headerFrames && bytes.HasPrefix(head, plainFrame[:]) && Is(head[plainHead:]) && string(head[atMark:atFirst]) == zstdMark
}

// unzstd is such a file as what it unpacks to, piece by piece: the last one is held.
type unzstd struct {
	in     io.ReaderAt
	chunks []zchunk
	at     int64 // the first block of the last chunk that was not stepped over
	empty  int   // blocks in front of it

	z       *zstd.Decoder // has room for a window, which each chunk needs
	reading *unpacking    // what unpacks the chunk that is read; nil: none does
	held    zpiece        // what was asked for last
	spare   []byte        // room for the next one
	ahead   chan zpiece   // the piece behind what is held; nil: nobody unpacks it
	again   int           // how often a chunk was begun anew, out of order
}

// zchunk is where a chunk is.
type zchunk struct {
	at   int64 // in the file
	base int64 // in what it unpacks to
}

// zpiece is what a piece unpacks to.
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
		return last.base + headerSize // whoever reads it is told
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
			failed++ // a gate may be opened just now
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

// next goes on to the chunk that follows the block that ends the last one; false if
// there is none, or the chunk goes on meanwhile.
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

// begin adds the chunk that begins at a place of the file; false if none does.
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

// find gives the index of the chunk that holds a byte, or of the last one.
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

// piece unpacks the piece of a chunk that holds a byte. The one behind it is unpacked
// meanwhile. It is io.EOF if the chunk does not hold that byte.
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

// after unpacks the piece behind the one that was unpacked last, or the first one of the
// chunk if the byte at a place of that comes before.
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

// unpacking is a chunk that is unpacked.
type unpacking struct {
	chunk  int
	from   zchunk
	at     int64  // in the chunk, of the next piece
	size   int64  // of the chunk
	first  int64  // of its first piece
	sum    uint32 // of the pieces that were unpacked
	want   uint32 // of all that there are up to size
	end    int64  // in the file: there is nothing of the chunk from there on
	blocks blocks
	z      *zstd.Decoder
}

// unpack begins to unpack a chunk.
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

// look asks how long the chunk is now.
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

// read unpacks the next piece, into room if it is large enough.
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
