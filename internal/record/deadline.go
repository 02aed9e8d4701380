package record

import (
	"context"
	"sync"
	"time"

	"github.com/candid-profiler/candid/internal/hostinfo"
)

// How long the recording waits at its end for files whose symbols are still being read: so long, and
// until candid has had as much CPU time, on a busy machine. In any case it waits no longer than most.
const (
	grace     = 120 * time.Millisecond
	mostGrace = 10 * time.Second
)

// endOnTime ends the reading of symbols soon after ctx is done, however much of it is left: whoever
// gave -d, or pressed Ctrl-C, wants the recording to end then. The returned function must be called
// when nothing is named any more.
func (s *session) endOnTime(ctx context.Context) (stop func()) {
	named := make(chan struct{})
	go func() {
		select {
		case <-named:
			return
		case <-ctx.Done():
		}
		s.hasty.Store(true)
		s.over.Store(monotonic())
		s.budget.Hurry()
		began, used := time.Now(), hostinfo.OwnCPU()
		for wait := grace; ; wait = 10 * time.Millisecond {
			select {
			case <-named:
				return
			case <-time.After(wait):
			}
			if passed := time.Since(began); passed >= mostGrace || hostinfo.OwnCPU()-used >= grace {
				s.budget.GiveUp()
				return
			}
		}
	}()
	return sync.OnceFunc(func() { close(named) })
}

// overdue reports whether the recording ended, on time, longer than grace ago.
func (s *session) overdue() bool {
	over := s.over.Load()
	return over != 0 && monotonic()-over > uint64(grace)
}
