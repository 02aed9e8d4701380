package record

import (
	"fmt"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// deferredNaming holds stacks that are named later. Reading the symbols of a large file takes
// longer than an engine's buffer can hold samples at a high rate. So stacks with frames in a file
// that is still being read are walked and put aside, and named when the file has been read.
type deferredNaming struct {
	stacks []unnamed
	frames int // number of frames in all stacks
	of     map[*process]int
	tried  time.Time // when they were last tried
}

// tryEvery is the interval between attempts to name what was put aside.
const tryEvery = 50 * time.Millisecond

// unnamed is a walked stack that cannot be named yet.
type unnamed struct {
	p      *process
	in     *interner // the process's interner when the stack was walked
	tid    uint32
	sp     uint64 // the stack pointer
	frames []walk.Frame
	out    profile.Sample
	id     uint64 // capture.Snapshot.Sleep
}

// maxLater bounds the number of frames that are put aside: 24 bytes each.
const maxLater = 1 << 18

// putOff puts the stack that was just walked aside until it can be named.
func (s *session) putOff(p *process, tid uint32, sp, id uint64, out profile.Sample) {
	l := &s.deferred
	if l.of == nil {
		l.of = map[*process]int{}
	}
	l.of[p]++
	l.stacks = append(l.stacks, unnamed{p, p.in, tid, sp, append([]walk.Frame(nil), s.stack.Frames...), out, id})
	if l.frames += len(s.stack.Frames); l.frames > maxLater {
		s.name(true)
	}
}

// name adds the stacks that can be named now; with wait, all of them.
func (s *session) name(wait bool) {
	l := &s.deferred
	if len(l.stacks) == 0 {
		return
	}
	l.tried = time.Now()
	kept := l.stacks[:0]
	l.frames = 0
	for i := range l.stacks {
		if u := &l.stacks[i]; !s.nameOne(u, wait) {
			l.frames += len(u.frames)
			kept = append(kept, *u)
		} else if l.of[u.p]--; l.of[u.p] <= 0 {
			delete(l.of, u.p)
		}
	}
	clear(l.stacks[len(kept):])
	l.stacks = kept
}

// nameAllOf names what was put aside for a process before what is known of the process changes.
func (s *session) nameAllOf(p *process) {
	for i := range s.deferred.stacks {
		if s.deferred.stacks[i].p == p {
			s.name(true)
			return
		}
	}
}

func (s *session) nameOne(u *unnamed, wait bool) (named bool) {
	defer func() {
		u.in.patient = false
		if r := recover(); r != nil {
			s.note(fmt.Sprintf("candid has a fault, please report it: naming a stack of thread %d: %v", u.tid, r))
			u.out.Node, u.out.End, named = profile.RootNode, walk.EndNoRule, true
		}
		if named {
			if u.p.able.waits != nil && u.out.State == profile.StateSleeping {
				s.askRuntime(u.p, u.tid, u.sp, u.out.Node)
			}
			s.sleeps.rememberLate(u.tid, u.id, u.out)
			s.add(u.out)
		}
	}()
	u.in.patient = wait
	u.out.Node, named = u.in.node(u.tid, &walk.Stack{Frames: u.frames})
	if named && u.in.unnamed(u.tid) {
		u.out.Flags |= profile.Unnamed
	}
	return named
}
