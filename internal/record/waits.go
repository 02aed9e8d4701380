package record

import (
	"maps"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/capture/procsyscall"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/runtimes/supported"
	"github.com/candid-profiler/candid/internal/walk"
)

// waitMethods are the functions by which programs wait, with the state of a thread in them.
var waitMethods = map[string]profile.State{}

// lockCode are the prefixes of the names of functions in which a thread waits to enter a lock.
var lockCode []string

// locks reports whether a function is one of these.
func locks(name string) bool {
	return slices.ContainsFunc(lockCode, func(code string) bool { return strings.HasPrefix(name, code) })
}

func init() {
	for _, r := range supported.Runtimes {
		maps.Copy(waitMethods, r.Waits)
		lockCode = append(lockCode, r.Locks...)
	}
}

// waitDepth is how many frames of a stack, from its inner end, are examined.
const waitDepth = 48

// maxWaits bounds for how many stacks the wait is remembered.
const maxWaits = 1 << 16

// wait is what is known of how a sleeping thread with the stack of a node waits.
type wait struct {
	state profile.State
	asks  uint8 // how many more times the runtime may be asked
}

// waitAsks is how often a runtime is asked about the stack of one node: the thread may have gone on
// since its sample was taken.
const waitAsks = 8

// waiting refines the state of a sleeping thread by its stack: the program's own way to wait says
// more than the system call under it.
func (s *session) waiting(node uint32) profile.State { return s.waitAt(node).state }

func (s *session) waitAt(node uint32) wait {
	if w, ok := s.waits[node]; ok {
		return w
	}
	if s.waits == nil || len(s.waits) >= maxWaits {
		s.waits = make(map[uint32]wait)
	}
	w := wait{state: waitOf(s.b, node)}
	if w.state == profile.StateSleeping {
		w.asks = waitAsks
	}
	s.waits[node] = w
	return w
}

// askRuntime asks a runtime what the sleeping thread of a sample waits for, whose stack pointer was
// sp, if the stack does not show it: many runtimes' libraries have no function names.
func (s *session) askRuntime(p *process, tid uint32, sp uint64, node uint32) {
	w := s.waitAt(node)
	if w.asks == 0 {
		return
	}
	w.asks--
	if locked, ok := p.able.waits.WaitsForLock(tid); ok {
		// The answer counts only if the thread still sleeps where the sample found it.
		if at, ok := procsyscall.Of(p.pid, int(tid)); ok && !at.Running && at.SP == sp {
			if w.asks = 0; locked {
				w.state = profile.StateBlocked
			}
		}
	}
	s.waits[node] = w
}

// waitOf finds out by the stack of a node how a thread waits. The innermost managed method decides,
// and, if it only waits, the methods that call it: the locks of a library may use its events.
func waitOf(b *profile.Builder, node uint32) profile.State {
	entering, found := false, profile.StateUnknown
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
			if found != profile.StateUnknown {
				return found
			}
			entering = entering || locks(name)
			if state, ok := waitMethods[name]; ok && !entering {
				return state
			}
		case walk.KindInterpreted, walk.KindCompiled, walk.KindC1, walk.KindC2, walk.KindNativeMethod, walk.KindAOT,
			walk.KindTier0, walk.KindInstrumented, walk.KindOSR, walk.KindTier1, walk.KindReadyToRun:
			if entering || locks(name) {
				return profile.StateBlocked
			}
			state, waits := waitMethods[name]
			switch {
			case found != profile.StateUnknown && !strings.HasPrefix(name, waitLibrary):
				return found
			case found == profile.StateUnknown && !waits:
				return profile.StateSleeping
			case found == profile.StateUnknown:
				found = state
			}
		}
	}
	if found != profile.StateUnknown {
		return found
	}
	return profile.StateSleeping
}

// waitLibrary begins the names of methods whose callers are still those of a library that waits.
const waitLibrary = "System.Threading."
