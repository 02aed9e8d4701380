package record

import (
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/target"
)

// spaces follows the address spaces of all processes that the engine reports, so that a program
// that ended before it could be examined can be walked and named.
type spaces struct {
	*target.Spaces
	ended []endedSpace // oldest first
}

type endedSpace struct {
	pid   uint32
	space *target.Space
	at    time.Time
}

func newSpaces() *spaces {
	s := &spaces{}
	s.Spaces = target.NewSpaces(func(pid uint32) *target.Space { return target.Known(int(pid)) }, func() { s.ended = nil })
	return s
}

// notice records an event of a process.
func (s *spaces) notice(n *capture.ProcessEvent) {
	switch n.Kind {
	case capture.Fork:
		if n.PID != n.Parent {
			s.Fork(n.PID, n.Parent)
		}
	case capture.Exec:
		s.Exec(n.PID)
	case capture.Mmap:
		switch {
		case n.PID == 0:
			s.Missed()
		case n.Mapping.End > n.Mapping.Start:
			s.Map(n.PID, n.Mapping)
		}
	case capture.Exit:
		if sp := s.Of(n.PID); sp != nil && (n.Last || n.TID == n.PID) {
			if n.Last {
				sp.Lose(int(n.PID))
			}
			s.ended = append(s.ended, endedSpace{n.PID, sp, time.Now()})
		}
	}
}

// sweep forgets processes that ended some time ago.
func (s *spaces) sweep(now time.Time) {
	n := 0
	for ; n < len(s.ended) && now.Sub(s.ended[n].at) > lateSamples; n++ {
		s.Forget(s.ended[n].pid, s.ended[n].space)
	}
	s.ended = append(s.ended[:0], s.ended[n:]...)
}
