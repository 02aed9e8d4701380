package native

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/walk"
)

// stopDeep starts a program that stops below depth calls of one function.
func stopDeep(t testing.TB, depth string, flags ...string) *subject {
	t.Helper()
	s := newSubject(t, build(t, append(flags, "-O1", "-fno-optimize-sibling-calls")...), depth)
	if err := s.tr.RunToTrap(); err != nil {
		t.Fatal(err)
	}
	s.open(t)
	return s
}

// TestCutStack checks that the part above the copy is read from the process and marked. If the
// process has run on meanwhile, the walk ends at the cut.
func TestCutStack(t *testing.T) {
	s := stopDeep(t, "5000")
	s.tr.Snapshot(&s.snap, 1<<20)
	s.walker.Walk(&s.snap, s.p.Memory(), &s.stack)
	whole := append([]walk.Frame{}, s.stack.Frames...)
	if s.stack.End != walk.EndComplete || len(whole) < 5003 || s.stack.Stitched {
		t.Fatalf("from the whole copy: %d frames, %v, stitched %v", len(whole), s.stack.End, s.stack.Stitched)
	}

	s.tr.Snapshot(&s.snap, 1<<14)
	if s.snap.Flags&capture.StackCut == 0 {
		t.Fatal("the stack is not deep enough to be cut")
	}
	s.walker.Walk(&s.snap, s.p.Memory(), &s.stack)
	if s.stack.End != walk.EndComplete || !s.stack.Stitched || len(s.stack.Frames) != len(whole) {
		t.Fatalf("from a cut copy: %d frames of %d, %v, stitched %v", len(s.stack.Frames), len(whole), s.stack.End, s.stack.Stitched)
	}
	stitched := 0
	for i, f := range s.stack.Frames {
		if f.PC != whole[i].PC {
			t.Fatalf("frame %d is %#x, not %#x", i, f.PC, whole[i].PC)
		}
		if f.Flags&walk.Stitched != 0 {
			stitched++
		} else if stitched > 0 {
			t.Fatalf("frame %d is not marked as stitched, the one before is", i)
		}
	}
	if stitched < 4000 || stitched > len(whole)-100 {
		t.Errorf("%d of %d frames are stitched", stitched, len(whole))
	}

	s.snap.Stack[len(s.snap.Stack)-9] ^= 1 // the process has another value there now
	s.walker.Walk(&s.snap, s.p.Memory(), &s.stack)
	if s.stack.End != walk.EndTruncated || s.stack.Stitched || len(s.stack.Frames) > 1000 {
		t.Errorf("from a changed stack: %d frames, %v, stitched %v", len(s.stack.Frames), s.stack.End, s.stack.Stitched)
	}

	s.snap.Stack[len(s.snap.Stack)-9] ^= 1
	s.walker.Walk(&s.snap, nil, &s.stack)
	if s.stack.End != walk.EndTruncated {
		t.Errorf("without memory: %v", s.stack.End)
	}

	s.walker.MaxFrames = 100
	s.walker.Walk(&s.snap, s.p.Memory(), &s.stack)
	if s.stack.End != walk.EndTruncated || len(s.stack.Frames) != 100 {
		t.Errorf("with a limit of 100: %d frames, %v", len(s.stack.Frames), s.stack.End)
	}
}

func TestWalkDoesNotAllocate(t *testing.T) {
	for _, flags := range [][]string{nil, {"-fno-asynchronous-unwind-tables", "-fno-exceptions"}} {
		s := stopDeep(t, "130", flags...)
		s.tr.Snapshot(&s.snap, 1<<20)
		s.walker.Walk(&s.snap, s.p.Memory(), &s.stack)
		if len(s.stack.Frames) < 131 {
			t.Errorf("flags %v: only %d frames, %v", flags, len(s.stack.Frames), s.stack.End)
		}
		// Allocations of other goroutines are counted too; those of a walk are always there.
		n := 1.0
		for range 5 {
			if n = testing.AllocsPerRun(100, func() { s.walker.Walk(&s.snap, s.p.Memory(), &s.stack) }); n == 0 {
				break
			}
		}
		if n != 0 {
			t.Errorf("flags %v: %v allocations a walk", flags, n)
		}
	}
}

// BenchmarkWalk130 walks a native stack of slightly more than 130 frames, warm.
func BenchmarkWalk130(b *testing.B) {
	for _, c := range []struct {
		name  string
		flags []string
	}{
		{"tables", nil},
		{"reading", []string{"-fno-asynchronous-unwind-tables", "-fno-exceptions"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := stopDeep(b, "130", c.flags...)
			s.tr.Snapshot(&s.snap, 1<<20)
			b.ReportAllocs()
			frames := 0
			start := cpuTime()
			for b.Loop() {
				s.walker.Walk(&s.snap, s.p.Memory(), &s.stack)
				frames += len(s.stack.Frames)
			}
			// On a machine with other load, elapsed time is meaningless.
			used := float64(cpuTime() - start)
			b.ReportMetric(used/float64(frames), "cpu-ns/frame")
			b.ReportMetric(used/float64(b.N), "cpu-ns/op")
		})
	}
}

// cpuTime is the CPU time that the calling thread has used, in ns.
func cpuTime() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return ts.Nano()
}
