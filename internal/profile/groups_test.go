package profile

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

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

// plenty returns samples of few stacks, most of them of one, in an order of time that is disturbed
// here and there.
func plenty(visit func(s Sample)) {
	r := rand.New(rand.NewPCG(5, 17))
	for i := range 400_000 {
		s := Sample{Time: uint64(i) * 1_000_003, Weight: r.Uint64N(1 << 40), Node: 1 + r.Uint32N(400), Thread: r.Uint32N(6), State: StateRunning}
		switch r.IntN(40) {
		case 0:
			s.Time -= min(s.Time, r.Uint64N(1<<32))
		case 1:
			s.State, s.Syscall = StateRunnable, uint16(r.IntN(3))
		}
		if r.IntN(2) == 0 {
			s.Node, s.Thread = 7, 3
		}
		visit(s)
	}
}

// Wherever samples are kept, their groups have each of them once, in the order of time.
func TestGroups(t *testing.T) {
	type key struct {
		node, thread uint32
		state        State
		call         uint16
	}
	of := func(s *Sample) key { return key{s.Node, s.Thread, s.State, s.Syscall} }
	want := map[key]Count{}
	plenty(func(s Sample) {
		c := want[of(&s)]
		c.Add(Count{1, s.Weight})
		want[of(&s)] = c
	})
	for _, d := range []*disk{nil, {most: 1 << 30}, {most: 2 << 20}} {
		b := NewBuilder()
		b.Keep(KeepTracks)
		if d != nil {
			b.Overflow(d)
			b.room.most = 1 << 20
		}
		plenty(b.Add)
		p := b.Finish()
		g := GroupsOf(p, func(w uint64) int { return int(w & 0xff) })
		g.Sort(func(a, b *Group) int {
			return cmp.Or(cmp.Compare(b.Node, a.Node), cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.State, b.State), cmp.Compare(a.Syscall, b.Syscall))
		})
		got, last, at := map[key]Count{}, ^uint32(0), 0
		g.Each(func(group *Group, each func(func(time, weight uint64))) {
			k := of(&group.Sample)
			if _, ok := got[k]; ok || group.Node > last || &g.List()[at] != group {
				t.Fatalf("the group %+v comes again, or in another order", k)
			}
			last, at = group.Node, at+1
			for range 2 {
				c, before, size := Count{}, uint64(0), 0
				each(func(time, weight uint64) {
					if time < before {
						t.Fatalf("a sample of %+v at %d after %d", k, time, before)
					}
					before = time
					c.Add(Count{1, weight})
					size += int(weight & 0xff)
				})
				if int(c.Samples) != group.Samples || c.Weight != group.Weight || size != group.Size {
					t.Fatalf("%+v: %+v, %d, is said to be %+v", k, c, size, group)
				}
				got[k] = c
			}
		})
		if !maps.Equal(got, want) || p.Err() != nil {
			t.Errorf("%d groups, want %d, %v", len(got), len(want), p.Err())
		}
		if d != nil && (len(d.b) == 0 || b.room.held > b.room.most && d.most > 2<<20) {
			t.Errorf("%d bytes are in memory, %d elsewhere", b.room.held, len(d.b))
		}
	}
}

// Samples kept elsewhere behave as if they were in memory; those that cannot be read any more are
// reported as lost.
func TestOverflow(t *testing.T) {
	for _, keep := range []Keep{KeepPacked, KeepTracks} {
		here, there, d := NewBuilder(), NewBuilder(), &disk{most: 1 << 30}
		here.Keep(keep)
		there.Keep(keep)
		there.Overflow(d)
		there.room.most = 1 << 20
		plenty(here.Add)
		plenty(there.Add)
		want, got := here.Finish(), there.Finish()
		if len(d.b) == 0 || there.room.held > there.room.most {
			t.Fatalf("%d bytes are in memory, %d elsewhere", there.room.held, len(d.b))
		}
		for range 2 {
			equal(t, got, want)
			for _, p := range []*Profile{want, got} {
				p.Change(func(s *Sample) { s.Weight /= 2 })
				p.SortByTime()
			}
		}
		d.broken = true
		n := 0
		if got.Each(func(*Sample, uint64) { n++ }); uint64(n) >= got.SampleCount() || !errors.Is(got.Err(), errBroken) {
			t.Errorf("%d samples could be read, %v", n, got.Err())
		}
	}
}

// equal compares samples, in their order.
func equal(t *testing.T, got, want *Profile) {
	t.Helper()
	if got.SampleCount() != want.SampleCount() || got.Latest() != want.Latest() || len(got.packed) != len(want.packed) {
		t.Fatalf("%d samples until %d, want %d until %d", got.SampleCount(), got.Latest(), want.SampleCount(), want.Latest())
	}
	for i := range want.packed {
		if !slices.Equal(got.packed[i].flat(), want.packed[i].flat()) {
			t.Errorf("the samples of the log %d are others", i)
		}
	}
	if err := got.Err(); err != nil {
		t.Error(err)
	}
}
