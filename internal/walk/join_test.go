package walk

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/candid-profiler/candid/internal/cpu"
)

// handlers is code whose function is a frame's Ref; frames with an odd pc are handlers of the function.
type handlers struct{ Stepper }

func (handlers) Joined(inner, outer *Frame) bool { return inner.Ref == outer.Ref && inner.PC&1 != 0 }

func joining() (*Walker, uint8) {
	w := New(cpu.AMD64, nil)
	w.Add(struct{ Stepper }{})
	return w, w.Add(handlers{})
}

func TestJoin(t *testing.T) {
	w, owner := joining()
	frame := func(ref, pc uint64) Frame { return Frame{PC: pc, Ref: ref, Owner: owner, Kind: KindTier0} }
	other := func(ref, pc uint64) Frame { f := frame(ref, pc); f.Owner = 1; return f }
	derived := func(f Frame) Frame { f.Prov = Derived; return f }
	for _, c := range []struct {
		name      string
		have      []Frame
		same      int
		want      []Frame
		wantsSame int
	}{
		{"recursion", []Frame{frame(1, 2), frame(1, 2), frame(1, 4)}, 2, []Frame{frame(1, 2), frame(1, 2), frame(1, 4)}, 1},
		{"a handler", []Frame{frame(7, 2), frame(1, 3), frame(1, 4), frame(2, 2)}, 0, []Frame{frame(7, 2), frame(1, 3), frame(2, 2)}, 0},
		{"a handler in a handler", []Frame{frame(1, 5), frame(1, 3), frame(1, 4), frame(1, 4)}, 0, []Frame{frame(1, 5), frame(1, 4)}, 0},
		{"called by others", []Frame{frame(1, 3), frame(9, 2), frame(1, 4)}, 3, []Frame{frame(1, 3), frame(9, 2), frame(1, 4)}, 2},
		{"another runtime's", []Frame{frame(1, 3), other(1, 4), other(1, 3), other(1, 4)}, 0, []Frame{frame(1, 3), other(1, 4), other(1, 3), other(1, 4)}, 0},
		{"less certain", []Frame{frame(1, 3), derived(frame(1, 4))}, 0, []Frame{derived(frame(1, 3))}, 0},
		{"the body is of the last walk", []Frame{frame(1, 3), frame(1, 4), frame(2, 2)}, 2, []Frame{frame(1, 3), frame(2, 2)}, 1},
	} {
		s := Stack{Frames: slices.Clone(c.have), Same: c.same}
		if w.Join(&s); !slices.Equal(s.Frames, c.want) || s.Same != c.wantsSame {
			t.Errorf("%s: %v became %v, %d the same; should be %v, %d", c.name, c.have, s.Frames, s.Same, c.want, c.wantsSame)
		}
	}
}

// TestJoinSame compares the stacks of a thread one after the other: after joining, too, the outermost
// frames that are said to be those of the last stack are.
func TestJoinSame(t *testing.T) {
	w, owner := joining()
	r := rand.New(rand.NewPCG(1, 2))
	var walked, joined []Frame // of the last stack
	said := 0
	for i := range 20000 {
		same := r.IntN(len(walked) + 1)
		frames := slices.Clone(walked[len(walked)-same:])
		for range r.IntN(4) {
			frames = slices.Insert(frames, 0, Frame{PC: r.Uint64N(4), Ref: r.Uint64N(2), Owner: owner})
		}
		s := Stack{Frames: slices.Clone(frames), Same: same}
		w.Join(&s)
		if s.Same > len(joined) || s.Same > len(s.Frames) || !slices.Equal(joined[len(joined)-s.Same:], s.Frames[len(s.Frames)-s.Same:]) {
			t.Fatalf("stack %d: %d frames of %v are said to be those of %v", i, s.Same, s.Frames, joined)
		}
		said += s.Same
		if len(frames) > 30 {
			frames, s.Frames = nil, nil
		}
		walked, joined = frames, slices.Clone(s.Frames)
	}
	if said < 1000 {
		t.Errorf("only %d frames were said to be the same", said)
	}
}
