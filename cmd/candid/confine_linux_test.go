package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
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

// confinedAs returns the privileges of all of a process's threads once it is confined: Seccomp is 2, or
// if unfiltered, its capabilities have become fewer.
func confinedAs(t *testing.T, pid string, unfiltered bool) []string {
	t.Helper()
	var all []string
	for range 200 {
		all = nil
		tasks, err := os.ReadDir("/proc/" + pid + "/task")
		if err != nil {
			t.Fatal(err)
		}
		done := true
		for _, task := range tasks {
			b, err := os.ReadFile("/proc/" + pid + "/task/" + task.Name() + "/status")
			if err != nil {
				continue // the thread has ended
			}
			got := privileges(string(b))
			all = append(all, got)
			done = done && (strings.Contains(got, "Seccomp: 2") || unfiltered && !strings.Contains(got, "CapEff: "+everything()))
		}
		if done {
			return all
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("it is not confined:\n%s", strings.Join(all, "\n\n"))
	return nil
}

// everything returns the capabilities of this process as the kernel writes them.
var everything = sync.OnceValue(func() string {
	b, _ := os.ReadFile("/proc/self/status")
	_, after, _ := strings.Cut(string(b), "CapEff:")
	return strings.Fields(after)[0]
})

// Commands that look at other processes have given up what they do not need while they look, on each
// of their threads.
func TestSamplersAreConfined(t *testing.T) {
	t.Parallel()
	able(t)
	root(t)
	// DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, IPC_LOCK, SYS_PTRACE, SYS_NICE, SYSLOG, PERFMON, BPF, CHECKPOINT_RESTORE.
	const looking, withKill = "CapEff: 000001c40088400e", "CapEff: 000001c40088402e"
	if has, err := strconv.ParseUint(everything(), 16, 64); err != nil || has&0x1c40088402e != 0x1c40088402e || has == 0x1c40088402e {
		t.Skipf("root has the capabilities %s here", everything())
	}
	target := program(t, "spin").pid()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args       []string
		caps       string
		unfiltered bool
	}{
		{[]string{"record", "-p", target, "-o", "x.jfr"}, looking, false},
		{[]string{"record", "-p", target, "--engine", "suspend", "-o", "x.html"}, looking, false},
		{[]string{"record", "-a", "-e", "cpu,off-cpu", "-o", "x.jfr"}, looking, false},
		{[]string{"top", "--once", "-d", "100s", "-p", target}, looking, false},
		{[]string{"dump", "--repeat", "1000", "-p", target}, looking, false},
		{[]string{"record", "-o", "x.jfr", "--", self}, withKill, false},
		// The browser that will be started must not be confined.
		{[]string{"record", "-p", target, "--view", "-o", "x.html"}, looking, true},
	} {
		t.Run(strings.Join(c.args[:len(c.args)-1], " "), func(t *testing.T) {
			run := command(t, c.args...)
			run.Env = append(os.Environ(), actAs+"=spin")
			pid := start(t, run).pid()
			for _, got := range confinedAs(t, pid, c.unfiltered) {
				filter := "NoNewPrivs: 1 Seccomp: 2"
				if c.unfiltered {
					filter = "NoNewPrivs: 0 Seccomp: 0"
				}
				if !strings.Contains(got, c.caps) || !strings.Contains(got, strings.Replace(c.caps, "Eff", "Prm", 1)) || !strings.Contains(got, "CapInh: 0000000000000000") ||
					!strings.Contains(got, "CapAmb: 0000000000000000") || !strings.Contains(strings.Join(strings.Fields(got), " "), filter) {
					t.Errorf("a thread has\n%s\nwant %s and %s", got, c.caps, filter)
				}
			}
		})
	}
}

// The agent has given up what it does not need before it samples, and still begins anew, captures, and as root listens
// at a low port that its file names later.
func TestAgentIsConfined(t *testing.T) {
	t.Parallel()
	able(t)
	root(t)
	if !strings.HasPrefix(everything(), "000001ff") {
		t.Skipf("root has the capabilities %s here", everything())
	}
	spin := spawned(t, exec.Command("bash", "-c", "while :; do for ((i = 0; i < 50000; i++)); do :; done; read -t 0.03 <> <(:); done", "busy/and/idle"))
	const services = "services:\n  - {match: {cmdline: 'busy/and/idle'}, name: busy}\n"
	// The unit of systemd gives another user the last five.
	const unit = "+perfmon,+bpf,+sys_ptrace,+syslog,+dac_read_search"
	for name, c := range map[string]struct {
		as     []string
		want   string // of DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, NET_BIND_SERVICE, IPC_LOCK, SYS_PTRACE, SYS_NICE, SYSLOG, PERFMON, BPF, CHECKPOINT_RESTORE
		listen string
	}{
		"root": {nil, "000001c40088440e", lowPort(t)},
		"unit": {[]string{"setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", "--inh-caps=-all," + unit, "--ambient-caps=-all," + unit, "--bounding-set=-all," + unit},
			"000000c400080004", "127.0.0.1:0"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := public(t, 0o777)
			a := &runningAgent{t: t, dir: dir, file: filepath.Join(dir, "agent.yaml"), log: &agentLog{filepath.Join(dir, "log")}, as: c.as}
			write := func(text string) {
				a.write(agentFile(dir, services+text))
				if err := os.Chmod(a.file, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			write("rate: 49\n")
			a.start()
			for _, got := range confinedAs(t, strconv.Itoa(a.cmd.Process.Pid), false) {
				if !strings.Contains(got, "CapEff: "+c.want) || !strings.Contains(got, "CapPrm: "+c.want) || !strings.Contains(got, "NoNewPrivs: 1") {
					t.Errorf("a thread has\n%s\nwant %s", got, c.want)
				}
			}
			write("rate: 99\noffcpu: true\nlisten: " + c.listen + "\n")
			if err := a.cmd.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			a.says("metrics are at 127.0.0.1:")
			a.says("was read again and is in force")
			works(t, spin.Process.Pid, time.Second)
			for _, event := range []string{"cpu", "off-cpu"} {
				var r result
				for _, long := range forLong {
					if r = a.ask("capture", "--service", "busy", "-d", long, "-F", "499", "-e", event, "--json"); strings.Contains(r.out, ".jfr.zst") {
						break
					}
				}
				if !strings.Contains(r.out, ".jfr.zst") {
					t.Errorf("capture of %s: exit code %d\n%s%s", event, r.code, r.out, r.err)
				}
			}
			a.end()
			if p := a.history("busy"); p.SampleCount() < 20 {
				t.Errorf("%d samples of the service\n%s", p.SampleCount(), a.log)
			}
		})
	}
}

// Processes of other users that come while candid records, when it has given up what it can, are
// recorded, by every engine, and a program of another user that was launched can be ended.
func TestConfinedSeesNewcomers(t *testing.T) {
	t.Parallel()
	able(t)
	root(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := public(t, 0o755)
	other := filepath.Join(dir, "newcomer")
	if err := exec.Command("cp", self, other).Run(); err != nil {
		t.Fatal(err)
	}
	for _, engine := range []string{"auto", "perf", "suspend"} {
		t.Run(engine, func(t *testing.T) {
			var r result
			for _, long := range forLong {
				run := command(t, "record", "-q", "--engine", engine, "--children", "-F", "500", "-d", long, "-o", "-", "--format", "collapsed", "--",
					"sh", "-c", "sleep 0.3; setpriv --reuid=65534 --regid=65534 --clear-groups timeout "+long+" "+other+"; exit 0")
				run.Env = append(os.Environ(), actAs+"=spin")
				in, open, err := os.Pipe() // the newcomer ends when its input does
				if err != nil {
					t.Fatal(err)
				}
				defer in.Close()
				defer open.Close()
				run.Stdin = in
				if r = finish(t, run); samples(r.out, "spin") >= 5 {
					return
				}
			}
			t.Errorf("exit code %d, %d samples of the newcomer\n%s%s", r.code, samples(r.out, "spin"), r.out, r.err)
		})
	}
}

// A process without CAP_SYS_PTRACE may trace those that hold no capability that it does not hold: so in
// a container candid gives up nothing, and records what it could.
func TestConfinedInContainers(t *testing.T) {
	t.Parallel()
	able(t)
	root(t)
	// docker is the set of capabilities that Docker leaves to root.
	const docker = "-all,+chown,+dac_override,+fsetid,+fowner,+mknod,+net_raw,+setgid,+setuid,+setfcap,+setpcap,+net_bind_service,+sys_chroot,+kill,+audit_write"
	inside := []string{"--inh-caps=-all", "--bounding-set=" + docker}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("setpriv", append(inside, self)...)
	c.Env = append(os.Environ(), actAs+"=spin")
	target := start(t, c)
	target.wait(t, "ready")
	var r result
	for _, long := range forLong {
		run := exec.Command("setpriv", append(inside, binary, "record", "-F", "500", "--engine", "suspend", "-d", long, "-p", target.pid(), "-o", "-", "--format", "collapsed")...)
		run.Dir = t.TempDir()
		if r = finish(t, run); samples(r.out, "spin") >= 5 {
			return
		}
	}
	t.Errorf("exit code %d, %d samples\n%s%s", r.code, samples(r.out, "spin"), r.out, r.err)
}

// A recording that has given up what it can still asks the kernel for the names of its functions one
// by one: reading all of them takes more CPU time than all the rest of a short recording.
func TestConfinedAsksForNames(t *testing.T) {
	t.Parallel()
	able(t)
	root(t)
	all, err := os.ReadFile("/proc/kallsyms")
	if err != nil || len(all) < 1<<20 || !bytes.Contains(all, []byte("\nffff")) {
		t.Skip("the kernel's symbols are not readable")
	}
	// dd has nearly all of its samples in the kernel.
	copies := exec.Command("dd", "if=/dev/zero", "of=/dev/null", "bs=1")
	if err := fixture.Spawn(copies); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = copies.Process.Kill(); _ = copies.Wait() })
	run := command(t, "record", "-p", strconv.Itoa(copies.Process.Pid), "-o", "x.jfr")
	recording := start(t, run)
	pid := recording.pid()
	confinedAs(t, pid, false)
	time.Sleep(2 * time.Second)
	io, err := os.ReadFile("/proc/" + pid + "/io")
	if err != nil {
		t.Fatal(err)
	}
	var read int
	if _, err := fmt.Sscanf(string(io), "rchar: %d", &read); err != nil {
		t.Fatalf("%v in\n%s", err, io)
	}
	if read >= len(all) {
		t.Errorf("candid has read %d bytes; /proc/kallsyms has %d", read, len(all))
	}
	// It has named kernel functions without.
	if err := recording.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := recording.Wait(); err != nil {
		t.Fatal(err)
	}
	if r := ok(t, "report", filepath.Join(run.Dir, "x.jfr"), "-n", "200"); !strings.Contains(r.out, "do_syscall_64") {
		t.Errorf("the recording does not name the kernel's functions:\n%s", r.out)
	}
}

// lowPort returns an address of this machine whose port only those with CAP_NET_BIND_SERVICE may take.
func lowPort(t *testing.T) string {
	t.Helper()
	var err error
	for port := 873; port > 800; port-- {
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal(err)
	return ""
}
