package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/report"
)

// A program to launch needs no "--" before it, and its flags are its own.
func TestCommandWithoutDashes(t *testing.T) {
	able(t)
	file := filepath.Join(t.TempDir(), "x.collapsed")
	r := candid(t, "record", "-q", "-o", file, "sh", "-c", `echo "$@"; exit 7`, "sh", "-o", "his", "-p", "--", "--help")
	if r.code != 7 || r.out != "-o his -p -- --help\n" {
		t.Errorf("exit code %d, it printed %q\n%s", r.code, r.out, r.err)
	}
	r = candid(t, "top", "--once", "-d", "50ms", "--output", filepath.Join(t.TempDir(), "out"), "sh", "-c", "exit 7")
	if strings.Contains(r.err, "usage") || strings.Contains(r.err, "--help") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
	// After the dashes a number is a program.
	candid(t, "record", "-q", "--", "4194305").refused(t, exitNotFound, "4194305", "command not found")
}

// A number is a process, wherever it stands among the flags; flags that perf needs are no error.
func TestNumberIsProcess(t *testing.T) {
	t.Parallel()
	able(t)
	spin, other := program(t, "spin"), program(t, "spin")
	for _, args := range [][]string{
		{"record", "-o", "x.html", "--json", spin.pid(), other.pid()},
		{"record", spin.pid(), "-o", "x.html", "-g", other.pid(), "--json"},
		{"record", "--call-graph", "dwarf", "-p", spin.pid(), "-o", "x.html", other.pid(), "--json"},
	} {
		r := forEnough(t, sampled, args...)
		var s report.SummaryReport
		if err := json.Unmarshal([]byte(r.out), &s); err != nil || r.code != exitOK {
			t.Fatalf("%v: exit code %d, %v\n%s", args, r.code, err, r.err)
		}
		perf := slices.Contains(args, "-g") || slices.Contains(args, "--call-graph")
		if told := strings.Contains(r.err, "stacks are always recorded whole"); told != perf {
			t.Errorf("%v: %s", args, r.err)
		}
	}
	for _, args := range [][]string{{"dump", spin.pid(), other.pid()}, {"dump", "-p", spin.pid(), other.pid()}} {
		r := ok(t, args...)
		for _, pid := range []string{spin.pid(), other.pid()} {
			if !strings.Contains(r.out, "process "+pid) {
				t.Errorf("%v: process %s is missing\n%s", args, pid, r.out)
			}
		}
	}
	if r := candid(t, "doctor", spin.pid()); !strings.Contains(r.out, "process "+spin.pid()) {
		t.Errorf("%s%s", r.out, r.err)
	}
	if r := forEnough(t, sampled, "top", "--once", "--json", spin.pid()); r.code != exitOK || !strings.Contains(r.out, `"methods"`) {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
	if r := ok(t, "record", spin.pid(), "--help"); !strings.Contains(r.out, "Take a profile") {
		t.Errorf("no help:\n%s", r.out)
	}
}
