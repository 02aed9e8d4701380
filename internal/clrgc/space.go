package clrgc

import (
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/emulate"
)

// space is a process's memory as the collector's functions see it, in lines that are kept until forget.
type space struct {
	process Process
	lines   map[uint64]int // index into kept by address
	kept    [][lineSize]byte
	reads   []uint64 // words that a call has read, in their order
}

var _ emulate.Space = (*space)(nil)

// Bounds of what is kept.
const (
	lineSize = 256
	maxLines = 1 << 14
	maxReads = 1 << 10
)

// forget makes the memory be read again.
func (s *space) forget() {
	clear(s.lines)
	s.kept = s.kept[:0]
}

// Code implements emulate.Space.
func (s *space) Code(pc uint64, p []byte) int { return s.process.Code(pc, p) }

// Fixed implements emulate.Space: whether something has changed meanwhile is seen by reading it again.
func (s *space) Fixed(uint64) bool { return true }

// Bytes implements emulate.Space.
func (s *space) Bytes(addr uint64, p []byte) bool {
	if !s.read(addr, p) {
		return false
	}
	if len(p) == 8 {
		if len(s.reads) == maxReads {
			s.reads = append(s.reads[:0], s.reads[maxReads/2:]...)
		}
		s.reads = append(s.reads, binary.LittleEndian.Uint64(p))
	}
	return true
}

func (s *space) read(addr uint64, p []byte) bool {
	start := addr &^ (lineSize - 1)
	if off := addr - start; off+uint64(len(p)) <= lineSize {
		i, ok := s.lines[start]
		if !ok && len(s.kept) < maxLines {
			i = len(s.kept)
			s.kept = append(s.kept, [lineSize]byte{})
			if ok = s.process.ReadAt(s.kept[i][:], start) == nil; ok {
				s.lines[start] = i
			} else {
				s.kept = s.kept[:i] // memory may end within the line
			}
		}
		if ok {
			copy(p, s.kept[i][off:])
			return true
		}
	}
	return s.process.ReadAt(p, addr) == nil
}
