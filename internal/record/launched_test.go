package record

import (
	"testing"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/launch"
)

// The program's samples do not contain what the copy of candid did before it became the program,
// whichever of its threads did it and whenever that thread began.
func TestIsCopy(t *testing.T) {
	const pid, listed, later = 10, 11, 12
	begin := launch.Begin{Time: 1000, Done: 2000, Others: []int{listed}}
	for _, c := range []struct {
		name  string
		pid   uint32
		tid   uint32
		time  uint64
		execs int
		want  bool
	}{
		{"before the call", pid, pid, 900, 0, true},
		{"within the call", pid, pid, 1500, 0, true},
		{"the program", pid, pid, 1500, 1, false},
		{"the program, of whose beginning nobody told", pid, pid, 2000, 0, false},
		{"a thread of the copy", pid, listed, 1500, 0, true},
		{"what it waited for, told of later", pid, listed, 2500, 1, true},
		{"a thread that began when they had been listed", pid, later, 900, 0, true},
		{"such a thread's end", pid, later, 1500, 0, true},
		{"a thread of the program", pid, later, 1500, 1, false},
		{"a thread of the program, of whose beginning nobody told", pid, later, 2000, 0, false},
		{"the number again", pid, listed, begin.Done + dying, 1, false},
		{"another process", pid + 1, listed, 900, 0, false},
	} {
		l := launched{pid: pid, begin: begin, execs: c.execs}
		if got := l.isCopy(&capture.Snapshot{PID: c.pid, TID: c.tid, Time: c.time}); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if (*launched)(nil).isCopy(&capture.Snapshot{PID: pid, TID: pid}) {
		t.Error("nothing was launched")
	}
}
