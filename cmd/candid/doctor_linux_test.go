package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture/perfevent"
	"github.com/candid-profiler/candid/internal/doctor"
	"github.com/candid-profiler/candid/internal/fixture"
)

// diagnose runs candid doctor under other commands and parses its JSON.
func diagnose(t *testing.T, code int, below []string, args ...string) *doctor.Report {
	t.Helper()
	c := command(t, append([]string{"doctor", "--json"}, args...)...)
	c.Dir = "/"
	if len(below) > 0 {
		path := fixture.Tool(t, below[0])
		c.Path, c.Args = path, append(below, append([]string{binary}, c.Args[1:]...)...)
	}
	return parseReport(t, finish(t, c), code)
}

func parseReport(t *testing.T, r result, code int) *doctor.Report {
	t.Helper()
	if r.code != code || r.err != "" {
		t.Fatalf("exit code %d, want %d; standard error %q", r.code, code, r.err)
	}
	var rep doctor.Report
	d := json.NewDecoder(strings.NewReader(r.out))
	d.DisallowUnknownFields()
	if err := d.Decode(&rep); err != nil {
		t.Fatalf("%v in %s", err, r.out)
	}
	if rep.Schema != "candid.doctor/1" || rep.Verdict.Text == "" || len(rep.Checks) < 20 || rep.Host.CPUs < runtime.NumCPU() {
		t.Errorf("not whole: %+v", rep)
	}
	return &rep
}

func check(t *testing.T, r *doctor.Report, id string, want doctor.State, words string) doctor.Check {
	t.Helper()
	for _, c := range r.Checks {
		if c.ID == id {
			if c.State != want || !strings.Contains(c.Seen+" "+c.Means, words) {
				t.Errorf("%s is %+v, want %s and %q", id, c, want, words)
			}
			return c
		}
	}
	t.Errorf("no check %s", id)
	return doctor.Check{}
}

// chosen returns the description of the engine that, by doctor's report, record would choose.
func chosen(t *testing.T, r *doctor.Report) string {
	t.Helper()
	for _, e := range r.Engines {
		if e.Name == r.Engine && e.State != doctor.No {
			return strings.TrimSuffix(e.Detail, ", exact copies")
		}
	}
	t.Errorf("engine %q is not among %+v", r.Engine, r.Engines)
	return ""
}

// The engine that doctor says record would choose is the one that record chooses.
func TestDoctorAndRecord(t *testing.T) {
	t.Parallel()
	able(t)
	pid := program(t, "spin").pid()
	rep := diagnose(t, exitOK, nil, "-p", pid)
	got := forEnough(t, sampled, "record", "-p", pid, "--format", "collapsed", "-o", os.DevNull).err
	if want := chosen(t, rep); !strings.Contains(got, want) {
		t.Errorf("doctor says %q, record says %q", want, got)
	}
	check(t, rep, "target.access", doctor.OK, "permitted")
	check(t, rep, "target.runtime", doctor.OK, "go ")
	if rep.Target.Threads < 1 || len(rep.Target.Modules) == 0 {
		t.Errorf("target %+v", rep.Target)
	}
	text := ok(t, "doctor", "-p", pid).out
	for _, w := range []string{rep.Verdict.Text[:40], "engines, best first", "chosen: ", "process " + pid, "symbols by module"} {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in\n%s", w, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Error("colour without a terminal")
	}
}

var asNobody = []string{"setpriv", "--reuid=65534", "--clear-groups", "--no-new-privs"}

// userEvents skips the test if users may open no perf events.
func userEvents(t *testing.T) {
	t.Helper()
	root(t)
	if p := perfevent.Paranoid(); p != "0" && p != "1" && p != "2" {
		t.Skipf("kernel.perf_event_paranoid is %s", p)
	}
}

func TestDoctorAsUser(t *testing.T) {
	userEvents(t)
	rep := diagnose(t, exitOK, asNobody)
	if rep.Engine == "bpf" || rep.Engine == "perf" || rep.Verdict.State != doctor.Limited {
		t.Errorf("engine %s, verdict %+v", rep.Engine, rep.Verdict)
	}
	check(t, rep, "privileges.user", doctor.OK, "65534")
	check(t, rep, "privileges.no_new_privs", doctor.Limited, "on")
	for _, id := range []string{"cap_perfmon", "cap_bpf", "cap_sys_ptrace"} {
		c := check(t, rep, "privileges."+id, doctor.Limited, "not held")
		if c.Fix == nil {
			t.Errorf("%s has no fix", id)
		}
	}
	if len(rep.Fixes) == 0 {
		t.Error("nothing to change")
	}

	// The process is the user's own: record would do the same, with the same engine.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(public(t, 0o755), "program")
	b, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(copied, b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("setpriv", append(asNobody[1:], copied)...)
	c.Env = append(os.Environ(), actAs+"=spin")
	p := start(t, c)
	p.wait(t, "ready")
	rep = diagnose(t, exitOK, asNobody, "-p", p.pid())
	check(t, rep, "target.access", doctor.OK, "65534")
	var r result
	for _, long := range forLong {
		rec := exec.Command("setpriv", append(asNobody[1:], binary, "record", "-p", p.pid(), "-d", long, "--format", "collapsed", "-o", os.DevNull)...)
		rec.Dir = "/"
		if r = finish(t, rec); sampled(r) {
			break
		}
	}
	if r.code != exitOK || !strings.Contains(r.err, chosen(t, rep)) {
		t.Errorf("doctor says %q, record says %q (exit code %d)", chosen(t, rep), r.err, r.code)
	}

	// Another user's process is refused, and the report says why.
	other := program(t, "idle").pid()
	rep = diagnose(t, exitPermission, asNobody, "-p", other)
	check(t, rep, "target.access", doctor.No, "runs as root")
	if strings.Count(rep.Verdict.Text, other) != 1 {
		t.Errorf("verdict %q", rep.Verdict.Text)
	}
	if rep.Engine != "" || rep.Verdict.State != doctor.No || len(rep.Target.Modules) != 0 {
		t.Errorf("verdict %+v, target %+v", rep.Verdict, rep.Target)
	}
}

func TestDoctorWithoutCapabilities(t *testing.T) {
	userEvents(t)
	if e := diagnose(t, exitOK, nil).Engine; e != "bpf" {
		t.Skipf("root has no more than engine %s here", e)
	}
	rep := diagnose(t, exitOK, []string{"setpriv", "--bounding-set", "-perfmon,-bpf,-sys_admin"})
	for _, id := range []string{"cap_perfmon", "cap_bpf"} {
		check(t, rep, "privileges."+id, doctor.Limited, "cannot be got here")
	}
	check(t, rep, "privileges.cap_sys_ptrace", doctor.OK, "held")
	if rep.Engine == "bpf" {
		t.Errorf("engine %s without CAP_BPF", rep.Engine)
	}
	rep = diagnose(t, exitOK, []string{"setpriv", "--bounding-set", "-sys_ptrace"})
	check(t, rep, "privileges.cap_sys_ptrace", doctor.Limited, "cannot be got here")
	if rep.Engine != "bpf" || rep.Verdict.State != doctor.Limited || !strings.Contains(rep.Verdict.Text, "root") {
		t.Errorf("engine %s, verdict %+v", rep.Engine, rep.Verdict)
	}
}

func TestDoctorInNamespaces(t *testing.T) {
	userEvents(t)
	namespaces(t)
	rep := diagnose(t, exitOK, []string{"unshare", "-Urpf", "--mount-proc"})
	check(t, rep, "container.namespaces", doctor.Limited, "user")
	check(t, rep, "privileges.cap_bpf", doctor.Limited, "does not count")
	if rep.Engine == "bpf" || rep.Engine == "perf" {
		t.Errorf("engine %s in a user namespace", rep.Engine)
	}
	rep = diagnose(t, exitOK, []string{"unshare", "-pf", "--mount-proc"})
	check(t, rep, "container.namespaces", doctor.Limited, "own pid namespace")
	check(t, rep, "privileges.cap_bpf", doctor.OK, "held")
	rep = diagnose(t, exitOK, []string{"unshare", "-pfm", "--mount-proc", "sh", "-c", `mount -o remount,hidepid=2 /proc && exec setpriv --reuid=65534 --clear-groups "$@"`, "sh"})
	check(t, rep, "container.proc", doctor.Limited, "hidepid")

	// The target is in namespaces of its own.
	c := exec.Command("unshare", "-pf", "--mount-proc", "sh", "-c", "echo ready; sleep 100 & echo $!; wait")
	p := start(t, c)
	p.wait(t, "ready")
	inner := p.line(t)
	kid := children(t, children(t, p.pid()))
	t.Cleanup(func() { _ = exec.Command("kill", kid).Run() })
	rep = diagnose(t, exitOK, nil, "-p", kid)
	check(t, rep, "target.namespaces", doctor.OK, "its own: pid, mount")
	if itoa(rep.Target.NamespacePID) != inner {
		t.Errorf("it calls itself %s, not %d", inner, rep.Target.NamespacePID)
	}
}

// children returns the first child of a process.
func children(t *testing.T, pid string) string {
	t.Helper()
	lists, _ := filepath.Glob("/proc/" + pid + "/task/*/children") // any thread may have started it
	for _, list := range lists {
		b, err := os.ReadFile(list)
		if f := strings.Fields(string(b)); err == nil && len(f) > 0 {
			return f[0]
		}
	}
	t.Fatalf("process %s has no child in %q", pid, lists)
	return ""
}

// A seccomp filter like that of containers is distinguished from missing privileges.
func TestDoctorBehindFilter(t *testing.T) {
	root(t)
	c := command(t, "doctor", "--json")
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	c.Stdout = out
	if err := filtered(c, unix.SYS_PERF_EVENT_OPEN, unix.SYS_BPF, unix.SYS_PROCESS_VM_READV); err != nil {
		t.Fatal(err)
	}
	err = c.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	code := c.ProcessState.ExitCode()
	rep := parseReport(t, result{code: code, out: string(b)}, code)
	check(t, rep, "privileges.seccomp", doctor.Limited, "forbids")
	check(t, rep, "privileges.process_vm_readv", doctor.Limited, "not permitted")
	check(t, rep, "kernel.perf_events", doctor.No, "none")
	check(t, rep, "privileges.cap_bpf", doctor.OK, "held")
	switch {
	case rep.Engine == "" && (code != exitPermission || rep.Verdict.State != doctor.No):
		t.Errorf("no engine, exit code %d, verdict %+v", code, rep.Verdict)
	case rep.Engine != "" && code != exitOK, strings.Contains("bpf perf perf-thread", rep.Engine) && rep.Engine != "":
		t.Errorf("engine %s, exit code %d", rep.Engine, code)
	}
}

func TestDoctorOfJava(t *testing.T) {
	t.Parallel()
	able(t)
	for _, on := range []bool{false, true} {
		flags := []string{"-XX:+UseSerialGC"}
		state, value := doctor.Limited, "false"
		if on {
			flags = []string{"-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"}
			state, value = doctor.OK, "true"
		}
		cmd := chain(t, "60", flags...)
		p := start(t, exec.Command(cmd[0], cmd[1:]...))
		var rep *doctor.Report
		await(t, "the VM", func() bool {
			rep = diagnose(t, exitOK, nil, "-p", p.pid())
			return rep.Target.JVM != nil
		})
		check(t, rep, "target.runtime", doctor.OK, "hotspot 17.")
		c := check(t, rep, "target.jvm.DebugNonSafepoints", state, value)
		if (c.Fix != nil) == on {
			t.Errorf("fix %+v", c.Fix)
		}
		check(t, rep, "target.jvm.PreserveFramePointer", doctor.OK, "false")
		if !on {
			check(t, rep, "target.jvm.gc", doctor.OK, "Serial")
		}
		if !strings.Contains(rep.Verdict.Text, "hotspot 17.") || strings.Contains(rep.Verdict.Text, "DebugNonSafepoints") == on {
			t.Errorf("verdict %+v", rep.Verdict)
		}
		found := false
		for _, m := range rep.Target.Modules {
			if strings.HasSuffix(m.Path, "/libjvm.so") {
				found = true
				if !m.Unwind || m.Count < 100 || m.Symbols == "none" || m.Symbols == "unreadable" {
					t.Errorf("%+v", m)
				}
			}
		}
		if !found {
			t.Errorf("no libjvm.so in %+v", rep.Target.Modules)
		}
	}
}

// The verdict on symbols depends on what a file has: the same library complete, and stripped.
func TestDoctorOfModules(t *testing.T) {
	t.Parallel()
	cc := fixture.Tool(t, "cc")
	dir := t.TempDir()
	src := filepath.Join(dir, "p.c")
	if err := os.WriteFile(src, []byte("#include <unistd.h>\n#include <stdio.h>\nstatic int inner(void){return getpid();}\nint main(void){puts(\"ready\");fflush(stdout);while(inner())sleep(100);}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flags   []string
		symbols string
		lines   bool
		unwind  bool
		state   doctor.State
	}{
		{[]string{"-g"}, "symtab", true, true, doctor.OK},
		{nil, "symtab", false, true, doctor.OK},
		{[]string{"-s"}, "dynsym only", false, true, doctor.Limited},
		{[]string{"-static", "-s"}, "none", false, true, doctor.No},
		{[]string{"-g", "-DSEPARATE"}, "debug file", true, true, doctor.OK},
	} {
		bin := filepath.Join(dir, "evil\x1b[31m name")
		os.Remove(bin)
		if out, err := exec.Command(cc, append(c.flags, "-o", bin, src)...).CombinedOutput(); err != nil {
			t.Errorf("cc %v: %s", c.flags, out)
			continue
		}
		if c.symbols == "debug file" {
			cmd := exec.Command("sh", "-c", `objcopy --only-keep-debug "$1" "$1.debug" && strip "$1" && objcopy --add-gnu-debuglink="$1.debug" "$1"`, "sh", bin)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Logf("no debug file can be made here: %s", out)
				continue
			}
		}
		p := start(t, exec.Command(bin))
		p.wait(t, "ready")
		rep := diagnose(t, exitOK, nil, "-p", p.pid())
		var m doctor.Module
		for _, x := range rep.Target.Modules {
			if strings.HasPrefix(x.Path, dir) {
				m = x
			}
		}
		if m.Symbols != c.symbols || m.Lines != c.lines || m.Unwind != c.unwind || m.State != c.state {
			t.Errorf("cc %v: %+v", c.flags, m)
		}
		if text := ok(t, "doctor", "-p", p.pid()).out; strings.Contains(text, "\x1b") || !strings.Contains(text, "evil") {
			t.Errorf("the name of a file reaches the terminal:\n%q", text)
		}
	}
}

func TestDoctorRefusals(t *testing.T) {
	candid(t, "doctor", "-p", "4194305").refused(t, exitNoTarget, "4194305", "no such process")
	candid(t, "doctor", "-p", "x").refused(t, exitUsage, `"x"`)
	candid(t, "doctor", "-p", "0").refused(t, exitUsage, `"0"`)
	candid(t, "doctor", "now").refused(t, exitUsage, "now")
	if comm, err := os.ReadFile("/proc/2/comm"); err == nil && string(comm) == "kthreadd\n" {
		candid(t, "doctor", "-p", "2").refused(t, exitNoTarget, "kernel thread")
	}
}
