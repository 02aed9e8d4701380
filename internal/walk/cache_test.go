package walk

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
)

// chained is code whose frames are linked by the frame pointer and whose frames' attributes depend
// on the stack's content, on registers and on what is known of the process.
type chained struct {
	known uint64     // what is known
	next  Provenance // put on the next frame
}

func (s *chained) Owns(pc uint64) bool { return pc >= 0x1000 && pc < 0x1000000 }
func (s *chained) Settled() bool       { return s.next == Exact }
func (s *chained) Step(c *Cursor) Verdict {
	fp, sp := c.Regs.FP(), c.Regs.SP()
	arg, _ := c.Word(fp - 8)
	f := Frame{PC: c.Regs.PC, Ref: arg ^ s.known ^ c.Regs.R[cpu.RBX]<<32, Kind: KindNative, Prov: max(c.Prov, s.next)}
	s.next = Exact
	switch arg % 512 {
	case 1:
		f.Prov = Derived
	case 2:
		s.next = Derived
	case 3:
		for i := range c.Stack.Frames {
			c.Stack.Frames[i].Flags |= Virtual
		}
		f.Flags |= Virtual
	}
	c.Stack.Push(f)
	if fp < sp || fp-sp > 1<<16 {
		return Stuck
	}
	ra, ok := c.Word(fp + 8)
	next, _ := c.Word(fp)
	if !ok {
		return Stuck
	}
	if arg%512 == 4 {
		c.Regs.R[cpu.RBX] = arg
	}
	c.Regs.PC, c.Leaf = ra, false
	c.Regs.Known = 1<<cpu.RBP | 1<<cpu.RSP | 1<<cpu.RBX
	c.Regs.SetFP(next)
	c.Regs.SetSP(fp + 16)
	return Stepped
}

// stackOf is a thread's stack for chained, built from the top down.
type stackOf struct {
	top   uint64
	words []uint64 // the highest first
	fps   []uint64
}

func (s *stackOf) push(w uint64) { s.words = append(s.words, w) }

func (s *stackOf) at() uint64 { return s.top - 8*uint64(len(s.words)) }

// call pushes a frame: return address, saved frame pointer, argument and some more.
func (s *stackOf) call(r *rand.Rand) {
	ra := uint64(0)
	if len(s.fps) > 0 {
		ra = 0x1000 + r.Uint64N(64)*16
	}
	s.push(ra)
	fp := uint64(0)
	if len(s.fps) > 0 {
		fp = s.fps[len(s.fps)-1]
	}
	s.push(fp)
	s.fps = append(s.fps, s.at())
	for range 1 + r.IntN(6) {
		s.push(r.Uint64N(1 << 20))
	}
}

func (s *stackOf) snapshot(r *rand.Rand, tid uint32) *capture.Snapshot {
	snap := &capture.Snapshot{TID: tid, StackAddr: s.at(), StackTop: s.top}
	for _, w := range slices.Backward(s.words) {
		snap.Stack = binary.LittleEndian.AppendUint64(snap.Stack, w)
	}
	snap.Regs = cpu.Registers{PC: 0x1000 + r.Uint64N(64)*16, Arch: cpu.AMD64, Known: 1<<16 - 1}
	snap.Regs.SetSP(s.at())
	snap.Regs.SetFP(s.fps[len(s.fps)-1])
	snap.Regs.R[cpu.RBX] = r.Uint64N(3)
	for range r.IntN(3) {
		snap.Kernel = append(snap.Kernel, 0xffffffff80000000+r.Uint64N(100))
		snap.Flags |= capture.InKernel
	}
	return snap
}

// A walk with Trails has the same result as one without, whatever has changed since.
func TestTrails(t *testing.T) {
	shared := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := &chained{}
		plain, trails := New(cpu.AMD64, nil), New(cpu.AMD64, nil)
		plain.Add(s)
		trails.Add(s)
		trails.Cache = NewWalkCache()
		threads := make([]stackOf, 1+r.IntN(1+r.IntN(80)))
		for i := range threads {
			threads[i].top = 0x7f0000000000 + uint64(i)<<24
			for range 1 + r.IntN(100) {
				threads[i].call(r)
			}
		}
		last := map[uint32][]Frame{}
		for range 400 {
			tid := r.IntN(len(threads))
			th := &threads[tid]
			switch r.IntN(60) {
			case 0: // what is known changes
				s.known++
				trails.Renew()
			case 1: // a word somewhere on the stack
				th.words[r.IntN(len(th.words))] ^= 1 << 10
			case 2: // another stack
				*th = stackOf{top: th.top}
				th.call(r)
			}
			for n := r.IntN(min(8, len(th.fps))); n > 0; n-- {
				th.fps = th.fps[:len(th.fps)-1]
				th.words = th.words[:(th.top-th.fps[len(th.fps)-1])/8+1]
			}
			for range r.IntN(8) {
				th.call(r)
			}
			snap := th.snapshot(r, uint32(tid))
			if r.IntN(30) == 0 {
				snap.Flags |= capture.StackHoles
			}
			if r.IntN(30) == 0 {
				snap.Stack = snap.Stack[:len(snap.Stack)/2&^7]
				snap.Flags |= capture.StackCut
			}
			var want, got Stack
			plain.Walk(snap, nil, &want)
			s.next = Exact
			trails.Walk(snap, nil, &got)
			s.next = Exact
			if !slices.Equal(got.Frames, want.Frames) || got.End != want.End || got.EndPC != want.EndPC || got.Worst != want.Worst || got.Stitched != want.Stitched {
				t.Fatalf("seed %d: %d frames, %v, with trails %d, %v, of which %d are taken over", seed, len(want.Frames), want.End, len(got.Frames), got.End, got.Same)
			}
			// Same is relative to the thread's last walk, whatever became of it.
			old, now := last[uint32(tid)], got.Frames
			if got.Same > len(old) || got.Same > len(now) || !slices.Equal(old[len(old)-got.Same:], now[len(now)-got.Same:]) {
				t.Fatalf("seed %d: %d of %d frames are said to be those of last time", seed, got.Same, len(now))
			}
			last[uint32(tid)] = now
			shared += got.Same
		}
		if trails.Cache.held > trailBytes {
			t.Errorf("%d bytes are held", trails.Cache.held)
		}
	}
	if shared < 100000 {
		t.Errorf("%d frames were taken over in all", shared)
	}
}

// Deep stacks of many threads stay within the bound.
func TestTrailsBound(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	w := New(cpu.AMD64, nil)
	w.Add(&chained{})
	w.Cache = NewWalkCache()
	var out Stack
	for tid := range uint32(200) {
		th := stackOf{top: 0x7f0000000000 + uint64(tid)<<24}
		for len(th.words) < 60<<10 {
			th.call(r)
		}
		for range 3 {
			w.Walk(th.snapshot(r, tid), nil, &out)
		}
		held := 0
		for i := range w.Cache.slots {
			held += len(w.Cache.slots[i].kept)
		}
		if held != w.Cache.held || held > trailBytes {
			t.Fatalf("%d bytes are held, %d counted, at most %d may be", held, w.Cache.held, trailBytes)
		}
	}
}
