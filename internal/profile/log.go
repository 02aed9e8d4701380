package profile

import (
	"encoding/binary"
	"slices"

	"github.com/candid-profiler/candid/internal/walk"
)

// logChunk is the maximum size, and leastChunk the minimum size, of a chunk of samples in bytes.
const (
	logChunk   = 64 << 10
	leastChunk = 512
)

// sampleLog holds samples in the order in which they were added, each in some ten bytes instead of
// 32: ten minutes of a program that keeps two CPUs busy are more than a million. It is written once
// and read once, from the first sample on.
type sampleLog struct {
	room   *room    // where its chunks are kept
	full   []stored // chunks that are written
	tail   []byte   // the chunk that is being written
	n      int
	weight uint64 // of all
	last   Sample
	pieces bool // some samples are Continued
	mixed  bool // there are samples of several tracks
	late   bool // some samples were taken before the one that precedes them
}

// Fields of a sample that are the same as in the one before.
const (
	sameWeight = 1 << iota
	sameThread
	sameKind // Event, Syscall, State, End, Flags
	sameNode
)

// maxLogged is the most bytes that a sample takes.
const maxLogged = 1 + 3*binary.MaxVarintLen64 + binary.MaxVarintLen32 + 7

func (l *sampleLog) add(s Sample) {
	if cap(l.tail)-len(l.tail) < maxLogged {
		l.turn()
	}
	b := l.tail
	head := len(b)
	b = append(b, 0)
	b = binary.AppendVarint(b, int64(s.Time-l.last.Time))
	if s.Node == l.last.Node {
		b[head] |= sameNode
	} else {
		b = binary.AppendUvarint(b, uint64(s.Node))
	}
	if s.Weight == l.last.Weight {
		b[head] |= sameWeight
	} else {
		b = binary.AppendUvarint(b, s.Weight)
	}
	if s.Thread == l.last.Thread {
		b[head] |= sameThread
	} else {
		b = binary.AppendUvarint(b, uint64(s.Thread))
	}
	if kind(&s) == kind(&l.last) {
		b[head] |= sameKind
	} else {
		b = binary.LittleEndian.AppendUint16(b, s.Event)
		b = binary.LittleEndian.AppendUint16(b, s.Syscall)
		b = append(b, byte(s.State), byte(s.End), byte(s.Flags))
	}
	l.tail = b
	if l.n > 0 {
		l.mixed = l.mixed || s.Thread != l.last.Thread || s.Event != l.last.Event
		l.late = l.late || s.Time < l.last.Time
	}
	l.n++
	l.weight += s.Weight
	l.last = s
	l.pieces = l.pieces || s.Flags&Continued != 0
}

// turn begins another chunk.
func (l *sampleLog) turn() {
	if len(l.tail) > 0 {
		l.full = append(l.full, l.room.put(l.tail))
	}
	// The first chunks are small: there may be many logs.
	l.tail = l.room.chunk(leastChunk << min(len(l.full), 16))
}

// kind returns a sample with only those fields that samples mostly have in common.
func kind(s *Sample) Sample {
	return Sample{Event: s.Event, Syscall: s.Syscall, State: s.State, End: s.End, Flags: s.Flags}
}

// flat returns all samples in one slice, with waits that were recorded in pieces joined.
func (l *sampleLog) flat() []Sample {
	return flat(l)
}

// flat returns the samples of consecutive logs in one slice.
func flat(logs ...*sampleLog) []Sample {
	n, pieces := 0, false
	for _, l := range logs {
		n, pieces = n+l.n, pieces || l.pieces
	}
	all := make([]Sample, 0, n)
	for _, l := range logs {
		l.each(func(s *Sample) { all = append(all, *s) })
	}
	if pieces {
		return joinWaits(all)
	}
	return all
}

// each visits all samples in their order; a visit may change the sample it gets.
func (l *sampleLog) each(visit func(s *Sample)) {
	r := l.reader()
	var s Sample // one for all: it escapes to the heap
	for r.next() {
		s = r.s
		visit(&s)
	}
}

// trim frees the space behind the last sample: nothing is added any more.
func (l *sampleLog) trim() { l.tail = slices.Clip(slices.Clone(l.tail)) }

// logReader reads a log from the first sample on.
type logReader struct {
	log  *sampleLog
	at   int // index of the next chunk
	b    []byte
	s    Sample
	read []byte // what was read of a chunk kept elsewhere
}

func (l *sampleLog) reader() logReader { return logReader{log: l} }

// number reads a number, which mostly takes one byte.
func (r *logReader) number() uint64 {
	v, n := binary.Uvarint(r.b)
	r.b = r.b[n:]
	return v
}

// next reads the next sample into s. It returns false behind the last one, or if what was kept
// elsewhere cannot be read.
func (r *logReader) next() bool {
	for len(r.b) == 0 {
		switch n := len(r.log.full); {
		case r.at < n:
			if r.b, r.read = r.log.room.get(&r.log.full[r.at], r.read); r.b == nil {
				r.at = n + 1
				return false
			}
		case r.at == n:
			r.b = r.log.tail
		default:
			return false
		}
		r.at++
	}
	s := &r.s
	head := r.b[0]
	r.b = r.b[1:]
	delta, n := binary.Varint(r.b)
	r.b = r.b[n:]
	s.Time += uint64(delta)
	if head&sameNode == 0 {
		s.Node = uint32(r.number())
	}
	if head&sameWeight == 0 {
		s.Weight = r.number()
	}
	if head&sameThread == 0 {
		s.Thread = uint32(r.number())
	}
	if head&sameKind == 0 {
		b := r.b
		s.Event, s.Syscall = binary.LittleEndian.Uint16(b), binary.LittleEndian.Uint16(b[2:])
		s.State, s.End, s.Flags = State(b[4]), walk.End(b[5]), SampleFlags(b[6])
		r.b = b[7:]
	}
	return true
}
