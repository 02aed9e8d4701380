package hotspot

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/offspring"
	"github.com/candid-profiler/candid/internal/target"
)

// In a pid namespace of its own the VM knows other thread ids than we do.
func TestThreadNamesInPIDNamespace(t *testing.T) {
	cmd := exec.Command(filepath.Join(jdk(t, 17), "bin", "java"), "-Xmx64m", "-cp", testClasses(t), "Parked", "100")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := offspring.Start(cmd); err != nil {
		t.Skipf("cannot make a pid namespace here: %v", err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	guard := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer guard.Stop()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, "ready") {
		t.Fatalf("%q, %v", line, err)
	}
	go io.Copy(io.Discard, out)
	p, err := target.Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.NamespacePID() != 1 {
		t.Fatalf("the program is process %d in its namespace, not 1", p.NamespacePID())
	}
	names := openVM(t, p).ThreadNames()
	found := false
	for tid, name := range names {
		comm, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), "task", strconv.Itoa(tid), "comm"))
		if err != nil {
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
