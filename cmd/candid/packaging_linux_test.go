package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
)

// The service for systemd is confined: systemd's own account of what it may do is at most 3.0 of 10.
func TestUnitIsConfined(t *testing.T) {
	out, err := exec.Command(fixture.Tool(t, "systemd-analyze"), "security", "--offline=yes", "--no-pager", filepath.Join("..", "..", "packaging", "candid-agent.service")).CombinedOutput()
	m := regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`).FindSubmatch(out)
	if m == nil {
		t.Fatalf("systemd-analyze: %v\n%s", err, out)
	}
	if level, err := strconv.ParseFloat(string(m[1]), 64); err != nil || level > 3.0 {
		t.Errorf("exposure %s, more than 3.0:\n%s", m[1], out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "candid-agent.service:") && strings.Contains(line, "Failed") {
			t.Error(line)
		}
	}
}

// The files that are installed mean something to this candid.
func TestPackagedFiles(t *testing.T) {
	packaging := filepath.Join("..", "..", "packaging")
	ok(t, "agent", "check", "--config", absolute(t, filepath.Join(packaging, "agent.yaml")))
	b, err := os.ReadFile(filepath.Join(packaging, "daemonset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(b), "agent.yaml: |\n")
	if !found {
		t.Fatal("the DaemonSet has no agent.yaml")
	}
	text, _, _ = strings.Cut(text, "---")
	file := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(file, []byte(regexp.MustCompile(`(?m)^    `).ReplaceAllString(text, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	ok(t, "agent", "check", "--config", file)
	unit, err := os.ReadFile(filepath.Join(packaging, "candid-agent.service"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{"CAP_PERFMON", "CAP_BPF", "CAP_SYS_PTRACE", "CAP_SYSLOG", "CAP_DAC_READ_SEARCH"} {
		if short := strings.TrimPrefix(c, "CAP_"); !strings.Contains(string(unit), c) || !strings.Contains(string(b), short) {
			t.Errorf("%s is not in both the unit and the DaemonSet", c)
		}
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	p, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
