package hotspot

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/target"
)

// In its own pid namespace the VM knows other thread ids than we do.
func TestThreadNamesInPIDNamespace(t *testing.T) {
	cmd := exec.Command(fixture.JDKTool(t, 17, "java"), "-Xmx64m", "-cp", testClasses(t), "Parked", "100")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if os.Geteuid() != 0 {
		t.Skip("making a pid namespace needs root")
	}
	fixture.Start(t, cmd).Await("ready")
	p, err := target.Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.NamespacePID() != 1 {
		t.Fatalf("the program is process %d in its namespace, not 1", p.NamespacePID())
	}
	vm := openVM(t, p)
	names := vm.Threads.ThreadNames()
	found := false
	for tid, name := range names {
		comm, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), "task", strconv.Itoa(tid), "comm"))
		if err != nil {
			vm.BeginBatch()
			if _, still := vm.Threads.ThreadNames()[tid]; !still {
				continue // a compiler thread that has ended meanwhile
			}
			t.Fatalf("thread %d (%s): %v", tid, name, err)
		}
		if name == "parked" {
			found = true
			if got := strings.TrimSpace(string(comm)); got != "parked" {
				t.Errorf("thread %d is %q to the kernel, not parked", tid, got)
			}
		}
	}
	if !found || len(names) < 10 {
		t.Errorf("names are %v", names)
	}
}
