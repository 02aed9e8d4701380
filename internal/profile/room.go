package profile

import (
	"io"
	"sync/atomic"
)

// Overflow takes the packed samples that exceed what memory may hold: a file that nobody else uses.
// It is only appended to, and what was written does not change.
type Overflow interface {
	io.ReaderAt
	io.WriterAt
}

// Overflow sets, before the first Add, where packed samples go that exceed what memory may hold. If
// it accepts no more, they stay in memory. The profile needs it as long as it is used: see
// Profile.Err.
func (b *Builder) Overflow(to Overflow) {
	b.room = &room{to: to, most: maxHeld}
	b.log.room = b.room
}

// Err returns why some of the profile's samples were not visited: what was kept elsewhere could not
// be read again.
func (p *Profile) Err() error {
	if p.room == nil {
		return nil
	}
	if err := p.room.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// maxHeld is how many bytes of packed samples stay in memory if there is an Overflow.
const maxHeld = 16 << 20

// room holds the chunks of the logs of a Builder, and of all profiles derived from its own: in
// memory, and what exceeds that in an Overflow. nil is memory only.
type room struct {
	to     Overflow
	end    int64  // of what was written to to
	full   bool   // to accepts no more
	held   int    // bytes in memory
	most   int    // the most bytes in memory
	logs   int    // how many logs there are
	spare  []byte // for the next chunk
	failed atomic.Pointer[error]
}

// stored is a full chunk.
type stored struct {
	b   []byte // nil: it is in the Overflow
	off int64
	n   int
}

// log begins a log.
func (r *room) log() *sampleLog {
	if r != nil {
		r.logs++
	}
	return &sampleLog{room: r}
}

// chunk returns an empty chunk of size bytes, or of fewer if that is too much.
func (r *room) chunk(size int) []byte {
	size = min(size, logChunk)
	if r == nil {
		return make([]byte, 0, size)
	}
	if r.logs > 0 {
		size = min(size, max(r.most/r.logs, 8*leastChunk))
	}
	if b := r.spare; cap(b) >= size {
		r.spare = nil
		return b
	}
	return make([]byte, 0, size)
}

// put keeps a full chunk, which belongs to the room from then on.
func (r *room) put(b []byte) stored {
	if r == nil {
		return stored{b: b}
	}
	if r.held+cap(b) > r.most && !r.full {
		if _, err := r.to.WriteAt(b, r.end); err == nil {
			s := stored{off: r.end, n: len(b)}
			r.end += int64(len(b))
			if cap(b) > cap(r.spare) {
				r.spare = b[:0]
			}
			return s
		}
		r.full = true
	}
	r.held += cap(b)
	return stored{b: b}
}

// get returns what was put, nil if it cannot be read. It uses buf if that is large enough, and
// returns it in again.
func (r *room) get(s *stored, buf []byte) (b, again []byte) {
	if s.b != nil {
		return s.b, buf
	}
	if cap(buf) < s.n {
		buf = make([]byte, s.n)
	}
	buf = buf[:s.n]
	if _, err := r.to.ReadAt(buf, s.off); err != nil && err != io.EOF {
		r.failed.CompareAndSwap(nil, &err)
		return nil, buf
	}
	return buf, buf
}
