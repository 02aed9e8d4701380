package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Without BPF wall time is sampled by suspending threads, whatever perf events are permitted;
// requests that need BPF are refused with a line that says so and what to do.
func TestWaitsWithoutBPF(t *testing.T) {
	t.Parallel()
	able(t)
	root(t)
	asUser := func(t *testing.T, args ...string) result {
		t.Helper()
		c := exec.Command("setpriv", append(append(asNobody[1:], binary), args...)...)
		c.Dir = "/"
		return finish(t, c)
	}
	other := program(t, "idle").pid()
	sleeper := []string{"-o", "-", "--format", "collapsed", "--", "sleep", "0.7"}
	for _, events := range []string{"wall", "cpu,wall"} {
		r := asUser(t, append([]string{"record", "-e", events}, sleeper...)...)
		if r.code != exitOK || !strings.Contains(r.err, "threads suspended by ptrace") || !strings.Contains(r.err, "no kernel frames: BPF is not permitted") {
			t.Errorf("-e %s: exit code %d\n%s", events, r.code, r.err)
		}
		if events == "wall" && samples(r.out, "nanosleep") < 400e6 {
			t.Errorf("it slept 0.7 s:\n%s", r.out)
		}
	}
	for _, c := range []struct {
		args  []string
		words []string
	}{
		{[]string{"-e", "off-cpu"}, []string{"sample by off-cpu", "-e wall", "BPF is not permitted", "CAP_BPF"}},
		{[]string{"-e", "cpu,page-faults"}, []string{"sample by cpu and page-faults at once", "one after the other", "BPF is not permitted"}},
		{[]string{"-e", "off-cpu", "--engine", "suspend"}, []string{"sample by off-cpu", "bpf engine", "--engine suspend"}},
		{[]string{"-e", "off-cpu", "--engine", "perf-thread"}, []string{"sample by off-cpu", "-e wall", "--engine perf-thread"}},
		{[]string{"-e", "wall", "--engine", "perf"}, []string{"sample by wall", "bpf and suspend", "leave --engine away"}},
	} {
		asUser(t, append(append([]string{"record"}, c.args...), "-o", os.DevNull, "--format", "pprof", "--", "sleep", "0.1")...).refused(t, exitCandidFailed, c.words...)
	}
	// Nobody but their user may see where another user's threads sleep: they would be missing.
	caps := func(list string, events string) result {
		c := exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all,"+list, "--ambient-caps=-all,"+list, "--bounding-set=-all,"+list,
			binary, "record", "-e", events, "-d", "700ms", "-p", other, "-o", "-", "--format", "collapsed")
		c.Dir = "/"
		return finish(t, c)
	}
	caps("+sys_ptrace", "wall").refused(t, exitPermission, "CAP_DAC_READ_SEARCH", "CAP_BPF")
	if r := caps("+sys_ptrace,+dac_read_search", "wall"); r.code != exitOK || samples(r.out, "") < 400e6 {
		t.Errorf("with CAP_DAC_READ_SEARCH: exit code %d\n%s%s", r.code, r.err, r.out)
	}
	asUser(t, "record", "-e", "wall", "-a", "-d", "1s", "-o", os.DevNull, "--format", "pprof").refused(t, exitPermission, "whole machine by wall", "-p names", "BPF is not permitted")
}
