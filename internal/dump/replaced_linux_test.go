package dump

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
)

// A process executes another program between two dumps: the second shows the new program.
func TestReplacedProgram(t *testing.T) {
	p := fixture.Start(t, exec.Command("sh", "-c", "echo ready; read x; exec sleep 1000"))
	p.Await("ready")
	d, err := New(Options{PIDs: []int{p.PID()}, Patience: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	look := func() *Process {
		t.Helper()
		out, err := d.Take()
		if err != nil {
			t.Fatal(err)
		}
		return &out.Processes[0]
	}
	if first := look(); !strings.HasPrefix(first.Command, "sh -c ") {
		t.Fatalf("it runs %q", first.Command)
	}
	if _, err := p.Write([]byte("go on\n")); err != nil {
		t.Fatal(err)
	}
	second := look()
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && (len(second.Threads) == 0 || second.Threads[0].Syscall != "clock_nanosleep"); {
		time.Sleep(time.Millisecond)
		second = look()
	}
	if th := second.Threads[0]; second.Command != "sleep 1000" || th.Name != "sleep" || th.End != "" || len(th.Frames) == 0 {
		t.Errorf("it runs %q: %+v", second.Command, th)
	}
}
