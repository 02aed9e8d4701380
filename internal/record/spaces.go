package record

import (
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/target"
)

// spaces follows the address spaces of all processes that the engine reports, so that a program
// that ended before it could be examined can be walked and named. A process costs a few words until
// it maps something of its own.
type spaces struct {
	byPID map[uint32]*target.Space
	ended []endedSpace // oldest first
}

type endedSpace struct {
	pid   uint32
	space *target.Space
	at    time.Time
}

// maxSpaces bounds the processes that are followed.
const maxSpaces = 1 << 16

func newSpaces() *spaces {
	return &spaces{byPID: map[uint32]*target.Space{}}
}

// of returns what is known of a process, nil for nothing.
func (s *spaces) of(pid uint32) *target.Space { return s.byPID[pid] }

// notice records an event of a process.
func (s *spaces) notice(n *capture.ProcessEvent) {
	switch n.Kind {
	case capture.Fork:
		if n.PID != n.Parent {
			s.put(n.PID, s.have(n.Parent).Fork())
		}
	case capture.Exec:
		s.byPID[n.PID].Lose(int(n.PID))
		s.put(n.PID, &target.Space{Whole: true})
	case capture.Mmap:
		switch {
		case n.PID == 0:
			s.missed()
		case n.Mapping.End > n.Mapping.Start:
			s.have(n.PID).Map(n.Mapping)
		}
	case capture.Exit:
		if sp := s.byPID[n.PID]; sp != nil && (n.Last || n.TID == n.PID) {
			if n.Last {
				sp.Lose(int(n.PID))
			}
			s.ended = append(s.ended, endedSpace{n.PID, sp, time.Now()})
		}
	}
}

// have returns what is known of an existing process.
func (s *spaces) have(pid uint32) *target.Space {
	sp := s.byPID[pid]
	if sp == nil {
		sp = target.Known(int(pid))
		s.put(pid, sp)
	}
	return sp
}

func (s *spaces) put(pid uint32, sp *target.Space) {
	if len(s.byPID) >= maxSpaces {
		clear(s.byPID)
		s.ended = nil
	}
	s.byPID[pid] = sp
}

// missed records that mappings were made that nobody reported.
func (s *spaces) missed() {
	for _, sp := range s.byPID {
		sp.Whole = false
	}
}

// sweep forgets processes that ended some time ago.
func (s *spaces) sweep(now time.Time) {
	n := 0
	for ; n < len(s.ended) && now.Sub(s.ended[n].at) > lateSamples; n++ {
		if e := &s.ended[n]; s.byPID[e.pid] == e.space {
			delete(s.byPID, e.pid)
		}
	}
	s.ended = append(s.ended[:0], s.ended[n:]...)
}
