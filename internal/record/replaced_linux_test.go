package record

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
)

// A target that executes another program before the engine has it is detected, although nobody
// reports it.
func TestReplacedBeforeItIsSampled(t *testing.T) {
	p := fixture.Start(t, exec.Command("sh", "-c", "echo ready; read x; exec sleep 1000"))
	p.Await("ready")
	s := newSession(&Options{PIDs: []int{p.PID()}})
	defer s.close()
	if err := s.attach(); err != nil {
		t.Fatal(err)
	}
	command := func() string { return s.b.Processes()[0].Command }
	if s.replaced(); !strings.HasPrefix(command(), "sh -c ") {
		t.Fatalf("it runs %q", command())
	}
	if _, err := p.Write([]byte("go on\n")); err != nil {
		t.Fatal(err)
	}
	known := s.procs[uint32(p.PID())]
	// The kernel sets the program's file before its arguments.
	begun := func() bool {
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID()))
		return err == nil && strings.HasPrefix(string(args), "sleep\x001000")
	}
	for end := time.Now().Add(time.Minute); !(known.target.Replaced() && begun()) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	s.replaced()
	if command() != "sleep 1000" || known.target.Replaced() || known.target.Space() == nil || known.target.Space().Whole {
		t.Errorf("it runs %q, its mappings: %+v", command(), known.target.Space())
	}
}
