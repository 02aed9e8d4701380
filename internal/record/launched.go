package record

import (
	"slices"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/launch"
)

// launched is the program that candid launched. It is already sampled before its first instruction,
// when it is still a copy of candid.
type launched struct {
	pid   uint32
	begin launch.Begin
	execs int // number of Execs reported: the first one is its own
}

// launch starts to accept samples of the program that candid launched.
func (s *session) launch(pid uint32, begin launch.Begin) {
	s.launched = &launched{pid: pid, begin: begin}
	s.account.before[pid] = usedBefore{thread: begin.Thread, all: begin.Process}
}

// dying is how long after the program's first instruction, in ns, the waits of the copy's other
// threads may be reported: even the last step of a thread's end takes a CPU.
const dying = uint64(time.Second)

// isCopy reports whether a sample belongs to the copy of candid that became the program, up to the
// end of its execve call.
func (l *launched) isCopy(snap *capture.Snapshot) bool {
	switch {
	case l == nil || snap.PID != l.pid || snap.Time >= l.begin.Done+dying:
		return false
	case snap.TID == l.pid:
		return snap.Time < l.begin.Time || snap.Time < l.begin.Done && l.execs == 0
	}
	// Others may have begun since they were listed: on a busy machine the copy is released while it
	// is still starting. None of them exists when it has become the program.
	return slices.Contains(l.begin.Others, int(snap.TID)) || l.execs == 0 && snap.Time < l.begin.Done
}
