package profile

import (
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/walk"
)

// logChunk is how many bytes of samples are allocated at once.
const logChunk = 64 << 10

// sampleLog holds samples in the order in which they came, each in some ten
// bytes instead of 32: ten minutes of a program that keeps two CPUs busy are more
// than a million. It is written once and read once, from the first on.
type sampleLog struct {
	chunks [][]byte
	n      int
	last   Sample
	pieces bool // some are Continued
}

// What of a sample is as it was in the one before.
const (
	sameWeight = 1 << iota
	sameThread
	sameKind // Event, Syscall, State, End, Flags
)

// maxLogged is more than a sample takes.
const maxLogged = 1 + 3*binary.MaxVarintLen64 + binary.MaxVarintLen32 + 7

func (l *sampleLog) add(s Sample) {
	at := len(l.chunks) - 1
	if at < 0 || cap(l.chunks[at])-len(l.chunks[at]) < maxLogged {
		l.chunks = append(l.chunks, make([]byte, 0, logChunk))
		at++
	}
	b := l.chunks[at]
	head := len(b)
	b = append(b, 0)
	b = binary.AppendVarint(b, int64(s.Time-l.last.Time))
	b = binary.AppendUvarint(b, uint64(s.Node))
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
	l.chunks[at] = b
	l.n++
	l.last = s
	l.pieces = l.pieces || s.Flags&Continued != 0
}

// kind is what samples mostly have in common.
func kind(s *Sample) Sample {
	return Sample{Event: s.Event, Syscall: s.Syscall, State: s.State, End: s.End, Flags: s.Flags}
}

// flat gives all samples in one slice, waits that were told of in pieces as one.
func (l *sampleLog) flat() []Sample {
	return flat(l)
}

// flat gives the samples of logs that follow each other in one slice.
func flat(logs ...*sampleLog) []Sample {
	n, pieces := 0, false
	for _, l := range logs {
		n, pieces = n+l.n, pieces || l.pieces
	}
	all := make([]Sample, 0, n)
	for _, l := range logs {
		l.each(func(s Sample) { all = append(all, s) })
	}
	if pieces {
		return joinWaits(all)
	}
	return all
}

// each visits all samples in their order.
func (l *sampleLog) each(visit func(Sample)) {
	var s Sample
	for _, b := range l.chunks {
		number := func() uint64 {
			v, n := binary.Uvarint(b)
			b = b[n:]
			return v
		}
		for len(b) > 0 {
			head := b[0]
			b = b[1:]
			delta, n := binary.Varint(b)
			b = b[n:]
			s.Time += uint64(delta)
			s.Node = uint32(number())
			if head&sameWeight == 0 {
				s.Weight = number()
			}
			if head&sameThread == 0 {
				s.Thread = uint32(number())
			}
			if head&sameKind == 0 {
				s.Event, s.Syscall = binary.LittleEndian.Uint16(b), binary.LittleEndian.Uint16(b[2:])
				s.State, s.End, s.Flags = State(b[4]), walk.End(b[5]), SampleFlags(b[6])
				b = b[7:]
			}
			visit(s)
		}
	}
}
