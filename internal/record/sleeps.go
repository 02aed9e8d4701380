package record

import (
	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// sleep is a sample of a thread that slept, kept because the sleep may go on, or of one that ran,
// kept because it may turn out to stand for more time.
type sleep struct {
	id  uint64 // capture.Snapshot.Sleep
	out profile.Sample
}

// maxSleeps bounds how many sleeps are remembered.
const maxSleeps = 1 << 17

// sleeps is keyed by TID and whether the thread ran.
type sleeps map[sleepKey]sleep

type sleepKey struct {
	tid uint32
	ran bool
}

func keyOf(snap *capture.Snapshot) sleepKey {
	return sleepKey{snap.TID, snap.Sleep&capture.Ran != 0}
}

// remember keeps a named sample in case its sleep goes on.
func (m sleeps) remember(snap *capture.Snapshot, out profile.Sample) {
	if snap.Sleep != 0 {
		m.keep(keyOf(snap), sleep{snap.Sleep, out})
	}
}

func (m sleeps) keep(key sleepKey, s sleep) {
	if len(m) >= maxSleeps {
		clear(m)
	}
	m[key] = s
}

// rememberLate does what remember does for a sample of a thread that ran and was named later,
// unless a newer one of the thread is kept.
func (m sleeps) rememberLate(tid uint32, id uint64, out profile.Sample) {
	key := sleepKey{tid, true}
	if id&capture.Ran != 0 && m[key].id < id {
		m.keep(key, sleep{id, out})
	}
}

// carryOn makes remembered samples refer to another Builder.
func (m sleeps) carryOn(from, to *profile.Builder) {
	nodes := map[uint32]uint32{profile.RootNode: profile.RootNode}
	var node func(uint32) uint32
	node = func(n uint32) uint32 {
		at, ok := nodes[n]
		if !ok {
			old := from.At(n)
			f := from.Frames()[old.Frame]
			f.Func = to.Func(from.Funcs()[f.Func])
			at = to.Node(node(old.Parent), to.Frame(f))
			nodes[n] = at
		}
		return at
	}
	for k, v := range m {
		t := from.Threads()[v.out.Thread]
		v.out.Node, v.out.Thread = node(v.out.Node), to.Thread(t.PID, t.TID, t.Name)
		now := &to.Threads()[v.out.Thread]
		now.OSName, now.Kind = t.OSName, t.Kind
		if v.out.Syscall > 0 {
			v.out.Syscall = to.Syscall(from.Syscalls()[v.out.Syscall])
		}
		m[k] = v
	}
}

// Again implements capture.SleepSink.
func (s *session) Again(snap *capture.Snapshot) (taken, want bool) {
	if s.launched.isCopy(snap) {
		return true, false
	}
	known, ok := s.sleeps[keyOf(snap)]
	if !ok || known.id != snap.Sleep {
		return s.againLater(snap), true
	}
	out := s.more(snap, known.out)
	s.add(out)
	// If a stack was broken, code that was unknown may be known by now.
	return true, out.End > walk.EndTruncated
}

// more returns a sample for more time at the place of one that is known.
func (s *session) more(snap *capture.Snapshot, out profile.Sample) profile.Sample {
	out.Weight, out.Event, out.State = snap.Weight, snap.Event, states[snap.State]
	if out.Flags &^= profile.Continued; snap.State >= capture.Sleeping && snap.Sleep&capture.Ran == 0 {
		out.Flags |= profile.Continued
	}
	if out.Time = 0; snap.Time > s.start {
		out.Time = snap.Time - s.start
	}
	return out
}

// againLater does what Again does for a thread that ran, if the sample is still to be named.
func (s *session) againLater(snap *capture.Snapshot) (taken bool) {
	if snap.Sleep&capture.Ran == 0 {
		return false // an engine that looks at sleeping threads looks again
	}
	l := &s.deferred
	for i := len(l.stacks) - 1; i >= 0; i-- {
		if u := l.stacks[i]; u.tid == snap.TID && u.id == snap.Sleep {
			u.out = s.more(snap, u.out)
			l.of[u.p]++
			l.stacks = append(l.stacks, u)
			l.frames += len(u.frames)
			return true
		}
	}
	return false
}
