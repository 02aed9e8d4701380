package engines

import (
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/target"
)

// follower keeps the notices of all processes in order.
type follower struct {
	*recorder
	notices []capture.ProcessEvent
}

func (f *follower) Notice(n capture.ProcessEvent) { f.notices = append(f.notices, n) }

// Every engine that is notified of processes reports their mappings, after the Exec that they
// belong to, and which file each shows.
func TestNoticesOfMappings(t *testing.T) {
	sh := fixture.Tool(t, "sh")
	program, err := filepath.EvalSymlinks(fixture.Tool(t, "sleep"))
	if err != nil {
		t.Fatal(err)
	}
	var st syscall.Stat_t
	if err := syscall.Stat(program, &st); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bpf", "perf", "perf-thread"} {
		t.Run(name, func(t *testing.T) {
			fixture.Attempts(t, 8, func() string { return noticesOfMappings(t, name, sh, program, st.Ino) })
		})
	}
}

// noticesOfMappings checks what an engine reports about two programs. It mentions lost records: the
// mappings of the whole machine are reported, and an engine that waits long for a CPU loses some.
func noticesOfMappings(t *testing.T, name, sh, program string, inode uint64) string {
	c := exec.Command(sh, "-c", "read x; sleep 0.01; sleep 0.02; exit 0")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	opts := options(99, c.Process.Pid)
	opts.Children = true
	f := &follower{recorder: newRecorder()}
	e := open(t, opts, name)
	go func() {
		time.Sleep(50 * time.Millisecond)
		in.Write([]byte("go\n"))
	}()
	go c.Wait()
	record(t, e, f, time.Minute) // the engine ends with its target
	if slices.ContainsFunc(f.notices, func(n capture.ProcessEvent) bool { return n.PID == 0 }) {
		return "records of mappings were lost, as the engine says"
	}
	whole := 0
	for pid, of := range f.byProcess() {
		if pid == uint32(c.Process.Pid) {
			continue
		}
		var execs, ours, linker, vdso int
		for _, n := range of {
			switch {
			case n.Kind == capture.Exec:
				execs++
			case n.Kind != capture.Mmap || execs == 0:
			case n.Mapping.Path == program:
				ours++
				if m := n.Mapping; m.Inode != inode || m.Perm != target.PermRead|target.PermExec || m.End <= m.Start || m.Made != n.Time {
					t.Errorf("%+v is not inode %d", m, inode)
				}
				if linker+vdso > 0 {
					t.Error("the program is not the first")
				}
			case n.Mapping.Path == "[vdso]":
				vdso++
			case n.Mapping.FileBacked():
				linker++
			}
		}
		if execs == 1 && ours >= 1 && linker >= 1 && vdso == 1 {
			whole++
		} else {
			t.Errorf("process %d: %d execs, %d of the program, %d of libraries, %d of the vdso", pid, execs, ours, linker, vdso)
		}
	}
	if whole != 2 {
		t.Errorf("%d processes of 2", whole)
	}
	return ""
}

func (f *follower) byProcess() map[uint32][]capture.ProcessEvent {
	out := map[uint32][]capture.ProcessEvent{}
	for _, n := range f.notices {
		out[n.PID] = append(out[n.PID], n)
	}
	return out
}
