package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// privileges returns what /proc/PID/status says of privileges.
func privileges(status string) string {
	var lines []string
	for line := range strings.Lines(status) {
		for _, name := range []string{"Cap", "NoNewPrivs:", "Seccomp"} {
			if strings.HasPrefix(line, name) {
				lines = append(lines, strings.Join(strings.Fields(line), " "))
			}
		}
	}
	return strings.Join(lines, "\n")
}

// A command that only reads files has given up what could do more, before it reads, on each of its
// threads.
func TestReadersAreConfined(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.collapsed")
	if err := os.WriteFile(file, []byte("a;b 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	v := start(t, command(t, "view", file))
	v.wait(t, "http://")
	tasks, err := os.ReadDir("/proc/" + v.pid() + "/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		b, err := os.ReadFile("/proc/" + v.pid() + "/task/" + task.Name() + "/status")
		if err != nil {
			continue // the thread has ended
		}
		got := privileges(string(b))
		// DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, SYSLOG.
		if os.Geteuid() == 0 && !strings.Contains(got, "CapEff: 000000040000000e") || !strings.Contains(got, "NoNewPrivs: 1") || !strings.Contains(got, "Seccomp: 2") {
			t.Errorf("thread %s has\n%s", task.Name(), got)
		}
	}
}

// A program that candid launches has the privileges that it would have without candid.
func TestLaunchedPrivileges(t *testing.T) {
	t.Parallel()
	able(t)
	want, err := exec.Command("cat", "/proc/self/status").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, engine := range []string{"auto", "suspend"} {
		out := filepath.Join(t.TempDir(), "x.html")
		r := candid(t, "record", "-q", "--engine", engine, "-o", out, "--", "cat", "/proc/self/status")
		if got := privileges(r.out); got != privileges(string(want)) || got == "" {
			t.Errorf("with engine %s it has\n%s\nwithout candid\n%s", engine, got, privileges(string(want)))
		}
	}
}
