package record

import (
	"strings"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// waitMethods are the methods by which Java programs wait for each other.
var waitMethods = map[string]profile.State{
	"jdk.internal.misc.Unsafe.park": profile.StateParked,
	"sun.misc.Unsafe.park":          profile.StateParked,
	"java.lang.Object.wait":         profile.StateWaiting,
	"java.lang.Object.wait0":        profile.StateWaiting,
}

// monitorCode are the VM's functions in which a thread waits to enter a monitor
// (runtime/objectMonitor.cpp, runtime/synchronizer.cpp of HotSpot).
var monitorCode = []string{"ObjectMonitor::enter", "ObjectMonitor::EnterI", "ObjectMonitor::Enter", "ObjectMonitor::ReenterI", "ObjectMonitor::reenter"}

// waitDepth is how far from its inner end a stack is looked at.
const waitDepth = 48

// maxWaits bounds how many stacks' waits are remembered.
const maxWaits = 1 << 16

// waiting refines what a sleeping thread does by its stack: the program's own
// way to wait says more than the system call under it.
func (s *session) waiting(node uint32) profile.State {
	if state, ok := s.waits[node]; ok {
		return state
	}
	if s.waits == nil || len(s.waits) >= maxWaits {
		s.waits = make(map[uint32]profile.State)
	}
	state := waitOf(s.b, node)
	s.waits[node] = state
	return state
}

func waitOf(b *profile.Builder, node uint32) profile.State {
	entering := false
	for range waitDepth {
		if node == profile.RootNode {
			break
		}
		n := b.At(node)
		node = n.Parent
		f := &b.Frames()[n.Frame]
		name := b.Funcs()[f.Func].Name
		switch f.Kind {
		case walk.KindNative, walk.KindInlined, walk.KindKernel, walk.KindStub:
			for _, code := range monitorCode {
				entering = entering || strings.HasPrefix(name, code)
			}
			if state, ok := waitMethods[name]; ok && !entering {
				return state
			}
		case walk.KindInterpreted, walk.KindCompiled, walk.KindC1, walk.KindC2, walk.KindNativeMethod, walk.KindAOT:
			if entering {
				return profile.StateBlocked
			}
			if state, ok := waitMethods[name]; ok {
				return state
			}
			return profile.StateSleeping
		}
	}
	return profile.StateSleeping
}
