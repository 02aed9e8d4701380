package offspring

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestKilledWithItsParent kills a process that has started another one.
func TestKilledWithItsParent(t *testing.T) {
	if os.Getenv("CANDID_OFFSPRING") != "" {
		cmd := exec.Command("sleep", "600")
		if err := Start(cmd); err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("child " + strconv.Itoa(cmd.Process.Pid) + "\n")
		cmd.Wait()
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=TestKilledWithItsParent")
	cmd.Env = append(os.Environ(), "CANDID_OFFSPRING=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := Start(cmd); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	pid := 0
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "child "); ok {
			pid, _ = strconv.Atoi(rest)
		}
	}
	if pid == 0 {
		t.Fatal("no child was started")
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("process %d does not run: %v", pid, err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	for range 500 {
		state, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || strings.Contains(string(state), ") Z ") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	syscall.Kill(pid, syscall.SIGKILL)
	t.Errorf("process %d outlived the one that started it", pid)
}
