package record

import (
	"slices"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/launch"
)

// launched is the program that candid launched. It is sampled before its first
// instruction, when it is still a copy of candid.
type launched struct {
	pid   uint32
	begin launch.Begin
	execs int // that were told of: the first one is its own
}

// launch begins to take samples of the program that candid launched.
func (s *session) launch(pid uint32, begin launch.Begin) {
	s.launched = &launched{pid: pid, begin: begin}
	s.before[pid] = usedBefore{thread: begin.Thread, all: begin.Process}
}

// dying is for how long after the program's first instruction what the other threads of the
// copy waited for may be told: even the last step of a thread's end takes a CPU.
const dying = uint64(time.Second)

// isCopy reports whether a sample is of the copy of candid that became the program, to the end of
// the call by which it did.
func (l *launched) isCopy(snap *capture.Snapshot) bool {
	switch {
	case l == nil || snap.PID != l.pid || snap.Time >= l.begin.Done+dying:
		return false
	case snap.TID == l.pid:
		return snap.Time < l.begin.Time || snap.Time < l.begin.Done && l.execs == 0
	}
	// Others may have begun since they were listed: on a busy machine the copy is let go
	// while it is still getting ready. None of them is there any more when it has become
	// the program.
	return slices.Contains(l.begin.Others, int(snap.TID)) || l.execs == 0 && snap.Time < l.begin.Done
}
