package main

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The smallest set of capabilities gives an ordinary user the full engine for another user's
// process; without any one of them the user gets less, or nothing, and the line says so.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	able(t)
	root(t)
	target := program(t, "spin").pid()
	for _, c := range []struct {
		caps  string
		code  int
		words string
	}{
		{"+perfmon,+bpf,+sys_ptrace", exitOK, "perf events + BPF stack copy"},
		{"+perfmon,+sys_ptrace", exitOK, "BPF is not permitted (needs root, or CAP_BPF with CAP_PERFMON)"},
		{"+bpf,+sys_ptrace", exitOK, "without time spent in the kernel"},
		{"+sys_ptrace", exitOK, "without time spent in the kernel"},
		{"+perfmon,+bpf", exitPermission, "CAP_SYS_PTRACE"},
	} {
		t.Run(c.caps, func(t *testing.T) {
			var r result
			for _, long := range forLong {
				cmd := exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all,"+c.caps, "--ambient-caps=-all,"+c.caps, "--bounding-set=-all,"+c.caps,
					binary, "record", "-F", "500", "-d", long, "-p", target, "-o", "-", "--format", "collapsed")
				cmd.Dir = "/"
				if r = finish(t, cmd); r.code != c.code && sampled(r) || samples(r.out, "") >= 5 || c.code != exitOK {
					break
				}
			}
			if r.code != c.code || !strings.Contains(r.err, c.words) {
				t.Errorf("exit code %d, want %d and %q\n%s", r.code, c.code, c.words, r.err)
			}
			if c.code == exitOK && samples(r.out, "") < 5 {
				t.Errorf("too few samples:\n%s", r.out)
			}
		})
	}
}

// An ordinary user's own program is profiled whatever perf_event_paranoid says.
func TestParanoidLevels(t *testing.T) {
	able(t)
	root(t)
	const file = "/proc/sys/kernel/perf_event_paranoid"
	old, err := os.ReadFile(file)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(file, old, 0o644); err != nil {
			t.Error(err)
		}
	})
	for level, words := range map[string][]string{
		"-1": {"perf events", "Hz per CPU", "BPF is not permitted"},
		"0":  {"perf events", "Hz per CPU", "BPF is not permitted"},
		"1":  {"perf events", "Hz per thread", "BPF is not permitted"},
		"2":  {"perf events", "Hz per thread", "without time spent in the kernel (kernel.perf_event_paranoid=2)"},
		// Some distributions' kernels forbid everything from this level on, others do not have such
		// levels.
		"3": {"kernel.perf_event_paranoid", "3"},
		"4": {"kernel.perf_event_paranoid", "4"},
	} {
		t.Run(level, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(level), 0o644); err != nil {
				t.Skip(err)
			}
			c := exec.Command("setpriv", append(asNobody[1:], binary, "record", "-F", "500", "-o", "-", "--format", "collapsed", "--",
				"sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done >&2")...)
			c.Dir = "/"
			r := finish(t, c)
			for _, w := range words {
				if !strings.Contains(r.err, w) {
					t.Errorf("no %q in\n%s", w, r.err)
				}
			}
			if r.code != exitOK || samples(r.out, "") < 10 {
				t.Errorf("exit code %d\n%s", r.code, r.out)
			}
		})
	}
}

// filtered starts a command under a seccomp filter like that of containers, which makes system
// calls fail with EPERM.
func filtered(c *exec.Cmd, forbidden ...uint32) error {
	prog := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}} // the call's number
	for i, nr := range forbidden {
		prog = append(prog, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(len(forbidden) - i), K: nr})
	}
	prog = append(prog, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0x7fff0000}, // SECCOMP_RET_ALLOW
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0x00050000 | uint32(unix.EPERM)}) // SECCOMP_RET_ERRNO
	started := make(chan error)
	go func() {
		// The filter applies to the thread, which ends with the goroutine.
		runtime.LockOSThread()
		fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err == nil {
			err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&fprog)), 0, 0)
		}
		if err == nil {
			err = c.Start()
		}
		started <- err
	}()
	return <-started
}

// In a container with Docker's defaults there are neither perf events nor BPF: threads are
// suspended, both of a running program and of a launched one.
func TestDefaultContainer(t *testing.T) {
	able(t)
	target := program(t, "spin").pid()
	run := func(forbidden []uint32, args ...string) result {
		t.Helper()
		var out, errs strings.Builder
		c := command(t, append([]string{"record", "-F", "500", "-o", "-", "--format", "collapsed"}, args...)...)
		c.Stdout, c.Stderr = &out, &errs
		if err := filtered(c, forbidden...); err != nil {
			t.Fatal(err)
		}
		return outcome(t, c, c.Wait(), &out, &errs)
	}
	noPerf := []uint32{unix.SYS_PERF_EVENT_OPEN, unix.SYS_BPF}
	for _, args := range [][]string{{"-p", target, "-d", "700ms"}, {"--", "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done >&2"}} {
		// On a busy machine neither may get a CPU in that time.
		r := run(noPerf, args...)
		for tries := 0; tries < 9 && (r.code == exitNoSamples || r.code == exitOK && samples(r.out, "") < 10); tries++ {
			r = run(noPerf, args...)
		}
		if r.code != exitOK || samples(r.out, "") < 10 {
			t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
		}
		line := ""
		for l := range strings.Lines(r.err) {
			if strings.Contains(l, "suspended by ptrace") {
				line = l
			}
		}
		for _, w := range []string{"no kernel frames", "perf events are not permitted", "CAP_PERFMON", "seccomp profile"} {
			if !strings.Contains(line, w) {
				t.Errorf("no %q in one line of\n%s", w, r.err)
			}
		}
	}
	// Older Docker, on kernels before 4.8, also forbids ptrace: nothing is left.
	r := run(append(noPerf, unix.SYS_PTRACE), "-p", target, "-d", "100ms")
	r.refused(t, exitPermission, "seccomp", "ptrace", "CAP_SYS_PTRACE")
}
