package record

import (
	"errors"
	"fmt"
	"time"

	"github.com/candid-profiler/candid/internal/attach"
	"github.com/candid-profiler/candid/internal/runtimes"
	"github.com/candid-profiler/candid/internal/target"
)

// runtimePatience is how long candid looks for a runtime that is still starting, from the first
// look at a process or from its exec.
const runtimePatience = 10 * time.Second

const (
	// runtimeAgain is how soon a process in which no runtime is mapped is examined again, unless it
	// maps something: not all engines report that.
	runtimeAgain = time.Second
	// runtimeSoon is the same for a young process: a runtime that is found has then existed for no
	// longer than the process had existed without it.
	runtimeSoon = 20 * time.Millisecond
)

// runtimePause returns how soon a process is examined again whose program was loaded that long ago.
func runtimePause(loaded time.Duration) time.Duration {
	return min(max(loaded, runtimeSoon), runtimeAgain)
}

// findRuntimes looks for runtimes in the process, as long as one may still be starting.
func (s *session) findRuntimes(p *process) {
	now := time.Now()
	if !p.code.Looking() || p.gone || now.After(p.runtimeUntil) || now.Before(p.runtimeNext) {
		return
	}
	told := p.told() && !p.code.Loads()
	if told && !p.code.MayFind() {
		if p.runtimeNext = p.loaded.Add(runtimeAgain); p.runtimeNext.Before(now) {
			p.runtimeUntil = time.Time{} // until it maps something
		}
		return
	}
	found, missing := p.code.Look()
	if len(found) > 0 {
		p.know(s)
		for _, f := range found {
			s.foundRuntime(p, f)
		}
		s.describeRuntime(p)
	}
	absent := 0
	for _, m := range missing {
		switch {
		case errors.Is(m.Err, runtimes.ErrAbsent):
			p.runtimeNext = now.Add(runtimePause(now.Sub(p.loaded)))
			absent++
			if told && now.Sub(p.loaded) >= runtimeAgain {
				p.runtimeUntil = time.Time{} // until it maps something
			}
		case errors.Is(m.Err, runtimes.ErrNotReady):
		case errors.Is(m.Err, target.ErrZombie), errors.Is(m.Err, target.ErrNoProcess), p.target.Memory().Released(), !p.target.Alive():
			// The process is ending: its memory is freed before the rest.
			p.runtimeUntil = time.Time{}
		default:
			p.runtimeUntil = time.Time{}
			s.note(fmt.Sprintf("process %d: its %s cannot be named: %v", p.pid, m.Runtime.Functions, m.Err))
		}
	}
	if told && absent == len(missing) && now.Sub(p.loaded) >= runtimeAgain && p.code.MayFind() {
		// A file that nobody has found was unmapped again, as libraries are that lack others. Of a
		// young process samples may still come from what it was before.
		p.looked = now
		_ = p.code.Native.Refresh() // if this fails it is tried again
	}
}

// foundRuntime records what follows from a runtime that was found.
func (s *session) foundRuntime(p *process, f attach.Found) {
	if _, ok := f.Instance.(runtimes.Learner); ok {
		s.births.generates(uint32(p.pid))
	}
	if _, ok := f.Instance.(runtimes.ThreadNamer); ok {
		p.newThreads = true
	}
	for _, n := range f.Instance.Notes() {
		s.note(fmt.Sprintf("process %d: %s", p.pid, n))
	}
	if a, ok := f.Instance.(runtimes.Adviser); ok {
		if advice := a.Advice(); advice != "" {
			who := fmt.Sprintf("process %d runs", p.pid)
			if s.many() { // once for all of them
				who = "some " + f.Runtime.Programs + " run"
			}
			s.note(who + " " + advice)
		}
	}
}

// told reports whether the engine has reported every mapping that the process has.
func (p *process) told() bool {
	sp := p.target.Space()
	return sp != nil && sp.Whole && !p.missed
}

// spare tells the engine what it need not look for in the process: a program whose own file only
// loads a runtime has Go code only in libraries, and then that is seen on stacks.
func (s *session) spare(p *process) {
	none := p.code.Launched() && !p.code.Native.RunsGo()
	if s.engine.hints == nil || none == p.noGo {
		return
	}
	// If this fails it is tried again with the next batch.
	if s.engine.hints.RunsGo(p.pid, !none) == nil {
		p.noGo = none
	}
}

// follow tells the engine where the runtime's stacks go on, as soon as the runtime knows, and again
// when it knows more.
func (s *session) follow(p *process) {
	if p.able.follows == nil || s.engine.follower == nil {
		return
	}
	if how := p.able.follows.Follow(); how != p.follow && how != nil && s.engine.follower.Follow(p.pid, how) == nil {
		p.follow = how
	}
}

func (s *session) describeRuntime(p *process) {
	if title := p.code.Title(); title != "" && p.index >= 0 {
		s.b.Processes()[p.index].Runtime = title
	}
}
