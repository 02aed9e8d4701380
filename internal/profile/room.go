package profile

import (
	"io"
	"sync/atomic"
)

// Overflow takes those packed samples that are too many to be in memory: a file that nobody
// else uses. It is written to its end, and what was written stays as it is.
type Overflow interface {
	io.ReaderAt
	io.WriterAt
}

// Overflow says, before the first Add, where packed samples go of which there are more than
// there should be in memory. They stay in memory where it takes no more. The profile needs it
// as long as it is used: see Profile.Err.
func (b *Builder) Overflow(to Overflow) {
	b.room = &room{to: to, most: maxHeld}
	b.log.room = b.room
}

// Err says why some of the profile's samples were not visited: what was put elsewhere could
// not be read again.
func (p *Profile) Err() error {
	if p.room == nil {
		return nil
	}
	if err := p.room.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// maxHeld is how many bytes of packed samples are in memory where there is another place.
const maxHeld = 16 << 20

// room is where the logs of a Builder, and of all profiles that come from its own, have their
// chunks: in memory, and what is too much elsewhere. nil is memory only.
type room struct {
	to     Overflow
	end    int64  // of what is there
	full   bool   // it takes no more
	held   int    // bytes in memory
	most   int    // that there may be of these
	logs   int    // how many there are
	spare  []byte // for the next chunk
	failed atomic.Pointer[error]
}

// stored is a chunk that is full.
type stored struct {
	b   []byte // nil: it is elsewhere
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

// chunk gives an empty chunk of that many bytes, or of fewer where that is too much.
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

// put keeps a full chunk, which is the room's from then on.
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

// get gives what was put, nil where it cannot be read. buf is used for it if it is large
// enough, and given back.
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
