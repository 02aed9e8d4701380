package target

import (
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/fixture"
)

func TestOutcome(t *testing.T) {
	for script, want := range map[string]Outcome{
		"exit 0":        {Known: true},
		"exit 7":        {Known: true, Code: 7},
		"kill -9 $$":    {Known: true, Signal: unix.SIGKILL},
		"kill -TERM $$": {Known: true, Signal: unix.SIGTERM},
		"kill -40 $$":   {Known: true, Signal: 40},
	} {
		t.Run(script, func(t *testing.T) {
			cmd, out := startScript(t, "read go; "+script)
			early, late := Watch(cmd.Process.Pid), Watch(cmd.Process.Pid)
			if early == nil || late == nil {
				t.Fatal("no witness")
			}
			defer early.Close()
			defer late.Close()
			if o, over := early.Ended(0); over || o.Known {
				t.Fatalf("it runs, and %v", o)
			}
			out.Close()
			// Nobody has waited for it yet.
			var got Outcome
			eventually(t, "its end", func() (over bool) { got, over = early.Ended(0); return over })
			if got != want {
				t.Errorf("as a zombie it %v, want it %v", got, want)
			}
			cmd.Wait()
			if late.sys.pidfd < 0 || !kernelSince(6, 15) {
				t.Skip("before Linux 6.15 nothing tells of a process that is gone")
			}
			if got, over := late.Ended(time.Minute); !over || got != want {
				t.Errorf("gone it %v, want it %v", got, want)
			}
		})
	}
	if w := Watch(1<<22 + 1); w != nil {
		t.Error("a process is watched that is not there")
	}
}

// A process of which only the first thread has ended has not ended.
func TestOutcomeOfHeadless(t *testing.T) {
	cmd, line := startChild(t, "headless", nil)
	if !strings.HasPrefix(line, "ready") {
		t.Fatal(line)
	}
	for _, pidfd := range []bool{true, false} {
		w := Watch(cmd.Process.Pid)
		defer w.Close()
		if !pidfd && w.sys.pidfd >= 0 { // as before Linux 5.3
			unix.Close(w.sys.pidfd)
			w.sys.pidfd = -1
		}
		if pidfd {
			cmd.Process.Signal(unix.SIGUSR1)
			p := &Process{PID: cmd.Process.Pid}
			p.sys.dir, p.sys.pidfd = w.sys.dir, -1
			eventually(t, "the end of its first thread", func() bool {
				var buf [2048]byte
				raw, _ := p.readSmall("stat", buf[:])
				st, ok := parseStat(raw)
				return ok && st.State == 'Z'
			})
		}
		if o, over := w.Ended(0); over {
			t.Errorf("with a handle %v: it %v", pidfd, o)
		}
		if !pidfd {
			cmd.Process.Kill()
			eventually(t, "its end", func() bool { _, over := w.Ended(0); return over })
			if o, _ := w.Ended(0); o != (Outcome{Known: true, Signal: unix.SIGKILL}) {
				t.Errorf("it %v", o)
			}
		}
	}
}

func TestOutcomeInWords(t *testing.T) {
	for status, want := range map[uint32]string{
		0: "exited with code 0", 3 << 8: "exited with code 3", 9: "was killed by SIGKILL", 11 | 0x80: "was killed by SIGSEGV", 40: "was killed by signal 40",
	} {
		if got := OutcomeOf(status).String(); got != want {
			t.Errorf("%#x: it %s, want it %s", status, got, want)
		}
	}
	if got := (Outcome{}).String(); got != "ended" {
		t.Error(got)
	}
}

// The kernel's text may be cut, or from a kernel that writes fewer fields.
func TestExitStatusIsBounded(t *testing.T) {
	long := "1 (a) b) Z" + strings.Repeat(" 1", 48)
	for text, want := range map[string]string{
		"": "0 false", "1 (x": "0 false", long: "0 false", long + " 2304": "2304 true", long + " 2304\n": "2304 true",
		long + " 65536": "65536 false", long + " -1": "0 false", long + " 99999999999999999999999": "0 false",
	} {
		n, ok := exitStatus([]byte(text))
		if got := fmt.Sprint(n, ok); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestHaveChildren(t *testing.T) {
	cmd, out := startScript(t, "(read go); read go")
	eventually(t, "a child", func() bool { return HaveChildren([]int{1 << 22, cmd.Process.Pid}) })
	if _, err := out.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no child", func() bool { return !HaveChildren([]int{cmd.Process.Pid}) })
	if HaveChildren(nil) {
		t.Error("nobody has children")
	}
}

// startScript runs a script of sh, which can read what is written to the returned pipe.
func startScript(t *testing.T, script string) (*exec.Cmd, io.WriteCloser) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := fixture.Spawn(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd, in
}

func kernelSince(major, minor int) bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var a, b int
	fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &a, &b)
	return a > major || a == major && b >= minor
}
