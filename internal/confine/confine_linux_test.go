//go:build amd64 || arm64

package confine

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	switch os.Getenv("CONFINE_TEST") {
	case "reading":
		confined()
		return
	case "sampling":
		sampling()
		return
	}
	os.Exit(m.Run())
}

// confined confines a process of several threads and prints what it can do then, for each thread.
func confined() {
	stay := make(chan bool)
	for range 4 {
		go func() { runtime.LockOSThread(); <-stay }()
	}
	Reader()
	printPrivileges()
	var word [8]byte
	local := []unix.Iovec{{Base: &word[0], Len: 8}}
	_, err := unix.ProcessVMReadv(os.Getppid(), local, []unix.RemoteIovec{{Base: 4096, Len: 8}}, 0)
	fmt.Println("read:", err)
	fmt.Println("attach:", unix.PtraceAttach(os.Getppid()))
	fmt.Println("mount:", unix.Mount("none", "/", "", unix.MS_REMOUNT, ""))
	fmt.Println("start:", exec.Command("/bin/true").Run())
	f, err := os.CreateTemp("", "")
	fmt.Println("file:", err)
	if err == nil {
		os.Remove(f.Name())
	}
}

// printPrivileges prints the privileges of each thread.
func printPrivileges() {
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, task := range tasks {
		b, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/status")
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); f[0] == "CapEff:" || f[0] == "CapPrm:" || f[0] == "NoNewPrivs:" || f[0] == "Seccomp:" {
				fmt.Println(f[0], f[1])
			}
		}
	}
}

// inAnother returns what another process of this program prints that confines itself.
func inAnother(t *testing.T, how string) string {
	t.Helper()
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), "CONFINE_TEST="+how)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// A process that is confined can do nothing on any of its threads that reading files does not need,
// and reads and writes files.
func TestReader(t *testing.T) {
	out := inAnother(t, "reading")
	threads := 0
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		switch f[0] {
		case "CapEff:", "CapPrm:":
			var n uint64
			if _, err := fmt.Sscanf(f[1], "%x", &n); err != nil || n&^files != 0 {
				t.Errorf("a thread has %s", line)
			}
			threads++
		case "NoNewPrivs:":
			if f[1] != "1" {
				t.Errorf("a thread has %s", line)
			}
		case "Seccomp:":
			if f[1] != "2" {
				t.Skipf("no seccomp filters here: %s", line)
			}
		case "file:":
			if f[1] != "<nil>" {
				t.Errorf("%s", line)
			}
		default:
			if !strings.Contains(line, "operation not permitted") {
				t.Errorf("it was possible to %s", line)
			}
		}
	}
	if threads < 2*5 {
		t.Errorf("%d threads in\n%s", threads/2, out)
	}
	// This process, which started it, is not confined.
	if err := exec.Command("/bin/true").Run(); err != nil {
		t.Error(err)
	}
}
