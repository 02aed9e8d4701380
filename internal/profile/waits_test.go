package profile

import (
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A Builder that gets waits in pieces has the same as one that gets each wait whole.
func TestWaitsInPieces(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 9))
	for round := range 50 {
		whole, pieces := NewBuilder(), NewBuilder()
		for _, b := range []*Builder{whole, pieces} {
			b.p.Events = []Event{{Name: "wall", Kind: EventWall, Unit: "nanoseconds", Period: 50e6}, {Name: "off-cpu", Kind: EventOffCPU, Unit: "nanoseconds", Period: 1e6}}
			for tid := range 3 {
				b.Thread(1, tid, "t")
			}
		}
		type at struct {
			s     Sample
			piece bool
		}
		var told []at
		var want []Sample
		for thread := range uint32(3) {
			var now uint64
			for range 30 {
				s := Sample{Thread: thread, State: State(rnd.IntN(NumStates)), Weight: 1 + rnd.Uint64N(5e9)}
				now += s.Weight + rnd.Uint64N(2e9)
				s.Time = now
				for event := range uint16(2) {
					s.Event = event
					want = append(want, s)
					left, begin := s.Weight, s.Time-s.Weight
					piece := s
					for s.State >= StateSleeping && left > 1e9 {
						piece.Weight = 1 + rnd.Uint64N(1e9)
						left -= piece.Weight
						begin += piece.Weight
						piece.Time = begin
						told = append(told, at{piece, true})
						piece.Flags = Continued
					}
					piece.Weight, piece.Time = left, s.Time
					told = append(told, at{piece, false})
				}
			}
		}
		byTime := func(a, b Sample) int {
			switch {
			case a.Time != b.Time:
				return int(int64(a.Time - b.Time))
			case a.Thread != b.Thread:
				return int(a.Thread) - int(b.Thread)
			}
			return int(a.Event) - int(b.Event)
		}
		slices.SortStableFunc(told, func(a, b at) int { return byTime(a.s, b.s) })
		slices.SortStableFunc(want, byTime)
		cut := rnd.IntN(len(told))
		for i, a := range told {
			pieces.Add(a.s)
			if i == cut {
				pieces.Profile() // must not spoil what follows
			}
		}
		for _, s := range want {
			whole.Add(s)
		}
		// Packed, on disk or not, the samples are the same.
		for _, d := range []*disk{nil, {most: 1 << 30}} {
			b := NewBuilder()
			b.Keep(KeepPacked)
			if d != nil {
				b.Overflow(d)
				b.room.most = 1 << 10
			}
			for _, a := range told {
				b.Add(a.s)
			}
			p := b.Finish()
			if got := p.packed[0].flat(); !slices.Equal(got, want) || p.SampleCount() != uint64(len(want)) || p.packed[0].pieces {
				t.Fatalf("round %d: packed %d samples of %d pieces, want %d", round, len(got), len(told), len(want))
			}
		}
		if got := pieces.Profile().Samples; !slices.Equal(got, want) {
			t.Fatalf("round %d: %d samples of %d pieces, want %d", round, len(got), len(told), len(want))
		}
		if got := pieces.Finish().Samples; !slices.Equal(got, want) {
			t.Fatalf("round %d: at the end %d samples of %d pieces, want %d", round, len(got), len(told), len(want))
		}
	}
}

// Pieces whose beginning is missing are a sample by themselves, and never absorb another wait.
func TestPiecesAlone(t *testing.T) {
	b := NewBuilder()
	b.p.Events = []Event{{Name: "wall", Kind: EventWall, Unit: "nanoseconds", Period: 50e6}}
	b.Thread(1, 1, "t")
	sec := uint64(time.Second)
	b.Add(Sample{Time: 2 * sec, Weight: sec, State: StateSleeping})
	b.Add(Sample{Time: 20 * sec, Weight: sec, State: StateSleeping, Flags: Continued})
	b.Add(Sample{Time: 21 * sec, Weight: sec, State: StateSleeping, Flags: Continued})
	b.Add(Sample{Time: 22 * sec, Weight: sec, State: StateSleeping})
	want := []Sample{
		{Time: 2 * sec, Weight: sec, State: StateSleeping},
		{Time: 21 * sec, Weight: 2 * sec, State: StateSleeping},
		{Time: 22 * sec, Weight: sec, State: StateSleeping},
	}
	if got := b.Finish().Samples; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestWithin checks which part of a wait lies in a range of time.
func TestWithin(t *testing.T) {
	for _, c := range []struct{ time, weight, from, to, want uint64 }{
		{10, 4, 0, 0, 4}, {10, 4, 7, 0, 3}, {10, 4, 10, 0, 0}, {10, 4, 11, 20, 0}, {10, 4, 0, 6, 0}, {10, 4, 0, 7, 1},
		{10, 4, 7, 9, 2}, {10, 4, 6, 10, 4}, {10, 4, 2, 3, 0}, {10, 40, 0, 5, 35}, {10, 40, 5, 0, 5}, {10, 40, 5, 10, 5},
	} {
		if got := Within(c.time, c.weight, c.from, c.to); got != c.want {
			t.Errorf("of %d ns until %d, %d lie between %d and %d, want %d", c.weight, c.time, got, c.from, c.to, c.want)
		}
	}
}

// disk is an Overflow in memory that accepts a limited number of bytes, and may become unreadable.
type disk struct {
	b      []byte
	most   int
	broken bool
}

var errFull, errBroken = errors.New("full"), errors.New("broken")

func (d *disk) WriteAt(p []byte, off int64) (int, error) {
	if int(off)+len(p) > d.most {
		return 0, errFull
	}
	if n := int(off) + len(p) - len(d.b); n > 0 {
		d.b = append(d.b, make([]byte, n)...)
	}
	return copy(d.b[off:], p), nil
}

func (d *disk) ReadAt(p []byte, off int64) (int, error) {
	switch {
	case d.broken:
		return 0, errBroken
	case int(off) >= len(d.b):
		return 0, io.EOF
	}
	return copy(p, d.b[off:]), nil
}
