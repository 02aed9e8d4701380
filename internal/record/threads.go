package record

import (
	"cmp"
	"slices"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/runtimes"
	"github.com/candid-profiler/candid/internal/walk"
)

// thread returns the profile's index of a thread.
func (s *session) thread(p *process, tid uint32) uint32 {
	if i, ok := p.threads[tid]; ok {
		return i
	}
	name := s.comms[tid]
	if n, err := p.target.ThreadName(int(tid)); err == nil {
		name = n
	}
	if name == "" {
		name = p.target.Comm()
	}
	if name == "" {
		if sp := p.target.Space(); sp != nil {
			name = sp.Name()
		}
		name = cmp.Or(name, "[ended]")
	}
	i := s.b.NewThread(p.pid, int(tid), name)
	p.threads[tid] = i
	p.newThreads = true
	return i
}

// nameThreads asks the runtime for its threads' names, which are longer and more accurate than the
// operating system's.
func (s *session) nameThreads(p *process) {
	if p.able.names == nil || p.gone || !p.newThreads || time.Since(p.named) < 250*time.Millisecond {
		return
	}
	begin := time.Now()
	threads := s.b.Threads()
	names, whole := p.able.names.AskThreads()
	p.newThreads = !whole
	for tid, i := range p.threads {
		th := &threads[i]
		name := names[int(tid)]
		if name != "" && !p.able.names.Passing(name) {
			th.Name = name
		}
		th.Kind = p.kindOf(tid, th, name, whole)
	}
	// With thousands of threads this takes long: then it is done less often.
	p.named = time.Now().Add(20 * time.Since(begin))
}

// kindOf returns what a thread is for, after the runtime was asked for names; whole means that it
// reported all of its threads. A known kind is not withdrawn: a runtime that ends reports no
// thread. A native thread may become the runtime's, though (JNI's AttachCurrentThread).
func (p *process) kindOf(tid uint32, th *profile.Thread, name string, whole bool) string {
	kind := p.able.names.ThreadKind(tid, name, th.OSName, whole)
	switch {
	case th.Kind == runtimes.ThreadUnknown && kind == runtimes.ThreadNative:
		// The thread may have ended, and left the list, before the runtime was asked.
		if _, err := p.target.ThreadName(int(tid)); err != nil {
			return runtimes.ThreadUnknown
		}
	case th.Kind != runtimes.ThreadUnknown && (kind == runtimes.ThreadNative || kind == runtimes.ThreadUnknown || name == "" && th.Kind != runtimes.ThreadNative):
		return th.Kind
	}
	return kind
}

// ranManaged notes that a thread of unknown kind has a runtime's frames on its stack: it may end
// before the runtime is asked.
func (s *session) ranManaged(p *process, thread uint32, st *walk.Stack) {
	if p.able.names == nil {
		return
	}
	if th := &s.b.Threads()[thread]; th.Kind == runtimes.ThreadUnknown && slices.ContainsFunc(st.Frames, isManaged) {
		th.Kind = p.able.names.RunnerKind(th.OSName)
	}
}

func isManaged(f walk.Frame) bool {
	switch f.Kind {
	case walk.KindInterpreted, walk.KindCompiled, walk.KindC1, walk.KindC2, walk.KindInlined, walk.KindNativeMethod,
		walk.KindTier0, walk.KindInstrumented, walk.KindOSR, walk.KindTier1, walk.KindReadyToRun, walk.KindAOT:
		return true
	}
	return false
}
