package snapshot

import (
	"bytes"
	"context"
	"slices"
)

// The smallest ranges that Reduce tries to leave out, in bytes.
const (
	fileGrain   = 64
	memoryGrain = 512
)

// Reduce leaves out what does not change the result: tables of symbols are read as a whole, though few
// of them are needed. It replays the snapshot without one half of what there is, then without the
// other, and so on with the halves of what is needed, until ctx ends. The result of each of these
// replays is the expected one, so that it may be stopped at any time. It reports whether the snapshot
// can be replayed at all: not if the process changed while it was recorded.
func (s *Snapshot) Reduce(ctx context.Context) bool {
	if !s.replays() {
		return false
	}
	lists := [][]Piece{}
	for i := range s.Files {
		if ctx.Err() == nil {
			s.reduceSymbols(i)
		}
		lists = append(lists, s.Files[i].Pieces)
	}
	lists = append(lists, s.Memory)
	for i, list := range lists {
		r := reduction{s: s, list: list, grain: fileGrain}
		if i == len(lists)-1 {
			r.grain = memoryGrain
		}
		for i := range list {
			r.starts = append(r.starts, r.size)
			r.size += len(list[i].Bytes)
		}
		r.try(ctx, 0, r.size)
	}
	for i := range s.Files {
		s.Files[i].Pieces = compact(s.Files[i].Pieces, false)
	}
	s.Memory = compact(s.Memory, true)
	return true
}

// replays reports whether a replay has the expected result.
func (s *Snapshot) replays() bool {
	got, err := s.Replay()
	return err == nil && got.Equal(s.Want)
}

// reduction reduces one list of pieces, which it sees as one sequence of bytes.
type reduction struct {
	s      *Snapshot
	list   []Piece
	starts []int // of each piece in the sequence
	size   int
	grain  int
}

// try clears a range, or as much of it as can be cleared.
func (r *reduction) try(ctx context.Context, from, to int) {
	if from >= to || ctx.Err() != nil {
		return
	}
	had, any := r.clear(from, to)
	if !any || r.s.replays() {
		return
	}
	r.restore(from, had)
	if to-from <= r.grain {
		return
	}
	middle := (from + to) / 2
	r.try(ctx, from, middle)
	r.try(ctx, middle, to)
}

// each calls f with the parts of a range.
func (r *reduction) each(from, to int, f func(b []byte)) {
	i, exact := slices.BinarySearch(r.starts, from)
	if !exact {
		i--
	}
	for ; i < len(r.list) && r.starts[i] < to; i++ {
		b := r.list[i].Bytes
		f(b[max(from-r.starts[i], 0):min(to-r.starts[i], len(b))])
	}
}

// clear sets a range to zero, and returns what it held and whether that was anything else.
func (r *reduction) clear(from, to int) (had []byte, any bool) {
	r.each(from, to, func(b []byte) {
		had = append(had, b...)
		clear(b)
	})
	return had, !zero(had)
}

func (r *reduction) restore(from int, had []byte) {
	r.each(from, from+len(had), func(b []byte) { had = had[copy(b, had):] })
}

func zero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// minHole is the number of zeros from which on they are left out: what a piece of its own costs.
const minHole = 8

// compact removes zeros. Of each page of memory a byte stays, because the page can be read.
func compact(list []Piece, memory bool) (out []Piece) {
	put := func(at uint64, b []byte) {
		if n := len(out); n > 0 && out[n-1].At+uint64(len(out[n-1].Bytes)) == at {
			out[n-1].Bytes = append(out[n-1].Bytes, b...)
			return
		}
		out = append(out, Piece{at, bytes.Clone(b)})
	}
	page := ^uint64(0) // the last one with a byte
	mark := func(from, to uint64) {
		for p := from / pageSize; memory && to > from && p <= (to-1)/pageSize; p++ {
			if p != page {
				put(max(from, p*pageSize), []byte{0})
				page = p
			}
		}
	}
	for _, e := range list {
		for b, at := e.Bytes, e.At; len(b) > 0; {
			hole := 0
			for hole < len(b) && b[hole] == 0 {
				hole++
			}
			if hole >= minHole || hole == len(b) {
				if hole == len(b) {
					mark(at, at+uint64(hole))
				} else {
					mark(at, (at+uint64(hole))&^(pageSize-1))
				}
				b, at = b[hole:], at+uint64(hole)
				continue
			}
			n := hole
			for run := 0; n < len(b) && run < minHole; n++ {
				if run++; b[n] != 0 {
					run = 0
				}
			}
			for n > 0 && b[n-1] == 0 {
				n--
			}
			put(at, b[:n])
			page = (at + uint64(n) - 1) / pageSize
			b, at = b[n:], at+uint64(n)
		}
	}
	return out
}
