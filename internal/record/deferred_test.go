package record

import (
	"testing"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/walk"
)

// slow is a naming that is not ready for frames with a Ref of 100 and more until ready is set.
type slow struct {
	naming
	ready    bool
	prepared int
	early    int // Resolve was called without being ready
}

func (s *slow) Prepare(f walk.Frame) bool {
	s.prepared++
	return s.ready || f.Ref < 100
}

func (s *slow) Resolve(f walk.Frame, out []symbol.Frame) []symbol.Frame {
	if f.Ref >= 100 && !s.ready {
		s.early++
	}
	return s.naming.Resolve(f, out)
}

// Stacks with frames in a file that is still being read are named when it has been read, or at the
// latest when all must be; others are not held up.
func TestStacksThatAreNamedLater(t *testing.T) {
	for _, wait := range []bool{false, true} {
		in, _, b := newTestInterner()
		n := &slow{}
		in.resolvers[1] = n
		s := &session{o: &Options{}, b: b}
		p, other := &process{in: in}, &process{}
		sample := func(time uint64, refs ...uint64) bool {
			s.stack.Reset()
			for _, r := range refs {
				s.stack.Push(walk.Frame{Ref: r, Owner: 1, Kind: walk.KindNative})
			}
			out := profile.Sample{Time: time}
			var ok bool
			if out.Node, ok = in.node(1, &s.stack); ok {
				s.add(out)
			} else {
				s.putOff(p, 1, 0, 0, out)
			}
			return ok
		}
		if !sample(1, 1, 2) || sample(2, 1, 101, 4, 2) || sample(3, 101) || !sample(4, 1, 2) {
			t.Fatal("what can be named at once is put off, or the reverse")
		}
		if n.asked != 3 {
			t.Errorf("%d frames were named, want all three of the file that is there", n.asked)
		}
		s.name(false)
		s.nameAllOf(other)
		if b.Samples() != 2 || n.early != 0 {
			t.Errorf("%d samples, %d names too early", b.Samples(), n.early)
		}
		if wait {
			s.nameAllOf(p)
		} else {
			n.ready = true
			s.name(false)
		}
		if b.Samples() != 4 || len(s.deferred.stacks) != 0 || s.deferred.frames != 0 || n.early > 0 != wait {
			t.Errorf("%d samples, %+v left, %d names before they were there", b.Samples(), s.deferred, n.early)
		}
		prof := b.Profile()
		for _, want := range []struct {
			time uint64
			text string
		}{{1, "f1.0;f2.0;"}, {2, "f1.0;f101.0;f4.0;f2.0;"}, {3, "f101.0;"}, {4, "f1.0;f2.0;"}} {
			for _, got := range prof.Samples {
				if got.Time != want.time {
					continue
				}
				text := ""
				for i := got.Node; i != profile.RootNode; i = prof.Nodes[i].Parent {
					text += prof.Funcs[prof.Frames[prof.Nodes[i].Frame].Func].Name + ";"
				}
				if text != want.text {
					t.Errorf("sample %d is %s, want %s", want.time, text, want.text)
				}
			}
		}
	}
}

// The amount that is put aside is bounded.
func TestLaterIsBounded(t *testing.T) {
	in, _, b := newTestInterner()
	in.resolvers[1] = &slow{}
	s := &session{o: &Options{}, b: b}
	p := &process{in: in}
	for range 1000 {
		s.stack.Push(walk.Frame{Ref: 100, Owner: 1, Kind: walk.KindNative})
	}
	for range 2 * maxLater / 1000 {
		if node, ok := in.node(1, &s.stack); ok {
			s.add(profile.Sample{Node: node})
		} else {
			s.putOff(p, 1, 0, 0, profile.Sample{})
		}
		if s.deferred.frames > maxLater {
			t.Fatalf("%d frames are put aside", s.deferred.frames)
		}
	}
	if b.Samples() == 0 {
		t.Error("no sample was named")
	}
}

// A sample that is still to be named may turn out to stand for more time, of the same thread only.
func TestMoreTimeBeforeNamed(t *testing.T) {
	in, _, b := newTestInterner()
	n := &slow{}
	in.resolvers[1] = n
	s := &session{o: &Options{}, b: b, sleeps: sleeps{}}
	s.stack.Push(walk.Frame{Ref: 100, Owner: 1, Kind: walk.KindNative})
	const id = capture.Ran | 5
	if _, ok := in.node(7, &s.stack); ok {
		t.Fatal("it is named at once")
	}
	s.putOff(&process{in: in}, 7, 0, id, profile.Sample{Time: 5, Weight: 3})
	for _, c := range []struct {
		snap capture.Snapshot
		want bool
	}{
		{capture.Snapshot{TID: 7, Sleep: id, Time: 9, Weight: 40}, true},
		{capture.Snapshot{TID: 7, Sleep: id + 1, Time: 9, Weight: 1000}, false},
		{capture.Snapshot{TID: 8, Sleep: id, Time: 9, Weight: 1000}, false},
	} {
		if taken, _ := s.Again(&c.snap); taken != c.want {
			t.Errorf("%+v is taken: %v", c.snap, taken)
		}
	}
	n.ready = true
	s.name(false)
	if taken, _ := s.Again(&capture.Snapshot{TID: 7, Sleep: id, Time: 10, Weight: 500}); !taken {
		t.Error("it is not known any more when it has been named")
	}
	var sum uint64
	for _, x := range b.Profile().Samples {
		sum += x.Weight
	}
	if sum != 543 {
		t.Errorf("the samples weigh %d", sum)
	}
}
