package doctor

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"
)

// ideal returns a machine on which nothing is missing.
func ideal() *facts {
	return &facts{
		kernel: "6.18.1", major: 6, minor: 18, cpus: 4, hz: 250, btf: true, lockdown: "none", clock: "tsc", clocks: []string{"tsc", "hpet"},
		self: "/usr/bin/candid", user: "root", effective: 1<<41 - 1, bounding: 1<<41 - 1,
		sysctl: map[string]string{"kernel.perf_event_paranoid": "2", "kernel.perf_event_max_sample_rate": "100000", "kernel.perf_cpu_time_max_percent": "25",
			"kernel.perf_event_mlock_kb": "516", "kernel.kptr_restrict": "0", "kernel.unprivileged_bpf_disabled": "2", "kernel.yama.ptrace_scope": "1"},
		perf: perfMachine, names: 100000, openFiles: 20000, locked: 8 << 20, bestNice: -20, runnable: 1, pidOne: "same", procOptions: "rw",
	}
}

// ordinary returns the same machine for an ordinary user.
func ordinary() *facts {
	f := ideal()
	f.uid, f.user, f.effective, f.perf = 1000, "ann", 0, perfUser
	f.perfErr = errors.New("permission denied")
	f.names, f.namesErr, f.bestNice = 0, errors.New("hidden"), 0
	return f
}

func find(t *testing.T, checks []Check, id string) Check {
	t.Helper()
	for _, c := range checks {
		if c.ID == id {
			return c
		}
	}
	t.Fatalf("no check %s", id)
	return Check{}
}

func TestNothingMissing(t *testing.T) {
	f := ideal()
	ids := map[string]bool{}
	for _, c := range f.machine("bpf", 99) {
		if c.State != OK || c.Fix != nil {
			t.Errorf("%+v", c)
		}
		if ids[c.ID] || c.Name == "" || c.Seen == "" || c.Means == "" || c.Group == "" {
			t.Errorf("twice, or not whole: %+v", c)
		}
		ids[c.ID] = true
	}
	if v := f.verdict("bpf", "", nil); v.State != OK || v.Text != "candid can profile everything here with the full engine: perf events + BPF stack copy." {
		t.Errorf("%+v", v)
	}
}

// The findings follow from the facts, for machines that are not at hand.
func TestFindings(t *testing.T) {
	const setcap = "sudo setcap cap_perfmon,cap_bpf,cap_sys_ptrace,cap_syslog+ep /usr/bin/candid"
	for _, c := range []struct {
		name  string
		from  func() *facts
		set   func(*facts)
		id    string
		state State
		means string
		fix   string
	}{
		{"old kernel", ideal, func(f *facts) { f.major, f.minor = 6, 15 }, "kernel.version", Limited, "6.16", ""},
		{"very old kernel", ideal, func(f *facts) { f.major, f.minor = 5, 14 }, "kernel.version", Limited, "5.15", ""},
		{"no BTF", ideal, func(f *facts) { f.btf = false }, "kernel.btf", Limited, "CONFIG_DEBUG_INFO_BTF", ""},
		{"lockdown", ideal, func(f *facts) { f.lockdown = "confidentiality" }, "kernel.lockdown", Limited, "boot", ""},
		{"slow clock", ideal, func(f *facts) { f.clock = "hpet" }, "kernel.clock", Limited, "slow", "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource"},
		{"slow clock alone", ideal, func(f *facts) { f.clock, f.clocks = "hpet", []string{"hpet"} }, "kernel.clock", Limited, "slow", ""},
		{"user, paranoid 0", ordinary, func(f *facts) { f.sysctl["kernel.perf_event_paranoid"] = "0" }, "kernel.perf_event_paranoid", OK, "every CPU", ""},
		{"user, paranoid 1", ordinary, func(f *facts) { f.sysctl["kernel.perf_event_paranoid"] = "1" }, "kernel.perf_event_paranoid", Limited, "own threads", "sudo sysctl kernel.perf_event_paranoid=0"},
		{"user, paranoid 2", ordinary, func(f *facts) {}, "kernel.perf_event_paranoid", Limited, "without the time spent in the kernel", "sudo sysctl kernel.perf_event_paranoid=1"},
		{"user, paranoid 4", ordinary, func(f *facts) { f.perf = perfNothing; f.sysctl["kernel.perf_event_paranoid"] = "4" }, "kernel.perf_event_paranoid", Limited, "nothing", "sudo sysctl kernel.perf_event_paranoid=1"},
		{"user, paranoid 3 of a kernel that knows none", ordinary, func(f *facts) { f.sysctl["kernel.perf_event_paranoid"] = "3" }, "kernel.perf_event_paranoid", Limited, "without the time spent in the kernel", "sudo sysctl kernel.perf_event_paranoid=1"},
		{"root, paranoid 4", ideal, func(f *facts) { f.sysctl["kernel.perf_event_paranoid"] = "4" }, "kernel.perf_event_paranoid", OK, "does not bind", ""},
		{"filtered", ordinary, func(f *facts) { f.perf, f.seccomp, f.filters = perfNothing, 2, 1 }, "kernel.perf_events", No, "seccomp", ""},
		{"filtered in docker", ordinary, func(f *facts) { f.perf, f.seccomp, f.pidNS, f.container = perfNothing, 2, true, "docker" }, "privileges.seccomp", Limited, "forbids", "docker run --security-opt seccomp=unconfined IMAGE"},
		{"filter lets through", ideal, func(f *facts) { f.seccomp, f.filters = 2, 3 }, "privileges.seccomp", OK, "through", ""},
		{"no capability", ordinary, func(f *facts) {}, "privileges.cap_bpf", Limited, "no BPF", setcap},
		{"no capability, on a file system without any", ordinary, func(f *facts) { f.self, f.nosuid = "/tmp/a candid", true }, "privileges.cap_bpf", Limited, "no BPF", "sudo install '/tmp/a candid' /usr/local/bin/candid && " + strings.Replace(setcap, "/usr/bin", "/usr/local/bin", 1)},
		{"no capability to be got", ordinary, func(f *facts) { f.bounding = 0 }, "privileges.cap_perfmon", Limited, "perf_event_paranoid", ""},
		{"docker", ordinary, func(f *facts) { f.pidNS, f.container = true, "docker" }, "privileges.cap_bpf", Limited, "no BPF", "docker run --cap-add PERFMON --cap-add BPF --cap-add SYS_PTRACE --cap-add SYSLOG IMAGE"},
		{"user namespace", ideal, func(f *facts) { f.userNS = true }, "privileges.cap_perfmon", Limited, "own user namespace", ""},
		{"admin instead", ideal, func(f *facts) { f.effective &^= 1<<capBPF | 1<<capPerfmon }, "privileges.cap_bpf", OK, "not needed", ""},
		{"syslog not needed", ordinary, func(f *facts) { f.names, f.namesErr = 5, nil }, "privileges.cap_syslog", OK, "not needed", ""},
		{"capabilities are given up", ideal, func(f *facts) {}, "privileges.kept", OK, "all but DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, IPC_LOCK, SYS_PTRACE, SYS_NICE, SYSLOG, PERFMON, BPF, CHECKPOINT_RESTORE;", ""},
		{"an old kernel", ideal, func(f *facts) { f.effective = 1<<38 - 1 }, "privileges.kept", OK, "SYS_ADMIN", ""},
		{"no CAP_SYS_PTRACE", ideal, func(f *facts) { f.effective &^= 1 << capSysPtrace }, "privileges.kept", OK, "could not be read", ""},
		{"nothing to give up", ordinary, func(f *facts) {}, "privileges.kept", OK, "none to give up", ""},
		{"no new privileges", ordinary, func(f *facts) { f.noNewPrivs = true }, "privileges.no_new_privs", Limited, "no effect", ""},
		{"no new privileges, all held", ideal, func(f *facts) { f.noNewPrivs = true }, "privileges.no_new_privs", OK, "kept", ""},
		{"kptr 2 as root", ideal, func(f *facts) { f.sysctl["kernel.kptr_restrict"] = "2"; f.names, f.namesErr = 0, errors.New("x") }, "kernel.kptr_restrict", Limited, "no names", "sudo sysctl kernel.kptr_restrict=1"},
		{"kptr 1 as user", ordinary, func(f *facts) { f.sysctl["kernel.kptr_restrict"] = "1" }, "kernel.kptr_restrict", Limited, "no names", "sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1"},
		{"low rate", ideal, func(f *facts) { f.sysctl["kernel.perf_event_max_sample_rate"] = "50" }, "kernel.perf_event_max_sample_rate", Limited, "held back", "sudo sysctl kernel.perf_event_max_sample_rate=100000"},
		{"little time", ideal, func(f *facts) { f.sysctl["kernel.perf_cpu_time_max_percent"] = "1" }, "kernel.perf_cpu_time_max_percent", Limited, "lowers", "sudo sysctl kernel.perf_cpu_time_max_percent=25"},
		{"little memory", ordinary, func(f *facts) { f.sysctl["kernel.perf_event_mlock_kb"] = "16" }, "kernel.perf_event_mlock_kb", Limited, "little room", "sudo sysctl kernel.perf_event_mlock_kb=1028"},
		{"yama 1", ordinary, func(f *facts) {}, "kernel.yama.ptrace_scope", Limited, "launches", "sudo sysctl kernel.yama.ptrace_scope=0"},
		{"yama 2", ordinary, func(f *facts) { f.sysctl["kernel.yama.ptrace_scope"] = "2" }, "kernel.yama.ptrace_scope", No, "CAP_SYS_PTRACE", "sudo sysctl kernel.yama.ptrace_scope=0"},
		{"yama 3", ideal, func(f *facts) { f.sysctl["kernel.yama.ptrace_scope"] = "3" }, "kernel.yama.ptrace_scope", No, "next boot", ""},
		{"no yama", ordinary, func(f *facts) { delete(f.sysctl, "kernel.yama.ptrace_scope") }, "kernel.yama.ptrace_scope", OK, "own processes", ""},
		{"hidepid", ordinary, func(f *facts) { f.procOptions = "rw,hidepid=invisible" }, "container.proc", Limited, "hidden", "sudo mount -o remount,hidepid=0 /proc"},
		{"hidepid as root", ideal, func(f *facts) { f.procOptions = "rw,hidepid=2" }, "container.proc", OK, "does not bind", ""},
		{"pid namespace", ideal, func(f *facts) { f.pidNS, f.container = true, "podman" }, "container.namespaces", Limited, "only the processes in it", "sudo podman run --pid=host IMAGE"},
		{"few files", ideal, func(f *facts) { f.openFiles = 32 }, "limits.open_files", No, "one event per thread", "sudo prlimit --pid $$ --nofile=102:102"},
		{"few files in docker", ideal, func(f *facts) {
			f.openFiles, f.pidNS, f.container = 32, true, "docker"
			f.bounding &^= 1 << capResource
		}, "limits.open_files", No, "one event per thread", "docker run --ulimit nofile=102:102 IMAGE"},
		{"few files, no right to more", ideal, func(f *facts) { f.openFiles = 32; f.bounding &^= 1 << capResource }, "limits.open_files", No, "one event per thread", ""},
		{"crowd", ideal, func(f *facts) { f.runnable = 1600 }, "limits.nice", OK, "keeps its time", ""},
		{"user, no crowd", ordinary, func(f *facts) { f.runnable = 31 }, "limits.nice", OK, "CAP_SYS_NICE", ""},
		{"user, crowd", ordinary, func(f *facts) { f.runnable = 32 }, "limits.nice", Limited, "32 threads want 4 CPUs now", "sudo prlimit --pid $$ --nice=40:40"},
		{"docker, crowd", ordinary, func(f *facts) { f.runnable, f.pidNS, f.container = 1600, true, "docker" }, "limits.nice", Limited, "ends late", "docker run --cap-add SYS_NICE IMAGE"},
		{"podman without root, crowd", ideal, func(f *facts) { f.runnable, f.bestNice, f.userNS, f.container = 1600, 0, true, "podman" }, "limits.nice", Limited, "ends late", "sudo podman run --cap-add SYS_NICE IMAGE"},
		{"started nice", ideal, func(f *facts) { f.nice, f.runnable = 10, 1600 }, "limits.nice", OK, "was started with it", ""},
		{"little CPU", ideal, func(f *facts) { f.cpuLimit = 0.1 }, "limits.cpu", Limited, "too late", ""},
		{"process_vm_readv filtered", ideal, func(f *facts) { f.vmRead = errors.New("operation not permitted") }, "privileges.process_vm_readv", Limited, "/proc/PID/mem", ""},
		{"nothing known", ideal, func(f *facts) { f.sysctl = map[string]string{}; f.clock, f.hz = "", 0 }, "kernel.perf_event_max_sample_rate", OK, "not known", ""},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			f := c.from()
			c.set(f)
			got := find(t, f.machine("perf-thread", 99), c.id)
			if got.State != c.state || !strings.Contains(got.Means, c.means) {
				t.Errorf("state %s, means %q; want %s and %q", got.State, got.Means, c.state, c.means)
			}
			fix := ""
			if got.Fix != nil {
				fix = got.Fix.Command
			}
			if fix != c.fix {
				t.Errorf("fix %q, want %q", fix, c.fix)
			}
		})
	}
}

// Commands work for the user who types them, where they are typed.
func TestFixesSuit(t *testing.T) {
	const sysctl, outside = "sudo sysctl kernel.kptr_restrict=0", "  # on the machine itself, outside of this container"
	for _, c := range []struct {
		name          string
		from          func() *facts
		set           func(*facts)
		command, want string
	}{
		{"user", ordinary, func(f *facts) {}, sysctl, sysctl},
		{"root", ideal, func(f *facts) {}, "echo tsc | sudo tee x; sudo apt install y", "echo tsc | tee x; apt install y"},
		{"root of a container", ideal, func(f *facts) { f.sysctlFixed = true }, sysctl, sysctl + outside},
		{"root of a user namespace", ideal, func(f *facts) { f.userNS = true }, sysctl, sysctl + outside},
		{"podman", ideal, func(f *facts) { f.container = "podman" }, "sudo podman run --pid=host IMAGE", "sudo podman run --pid=host IMAGE"},
	} {
		f := c.from()
		c.set(f)
		fix := &Fix{c.command, "names"}
		checks := []Check{{}, {Fix: fix}, {Fix: fix}}
		f.suit(checks)
		for _, got := range checks[1:] {
			if *got.Fix != (Fix{c.want, "names"}) {
				t.Errorf("%s: %+v", c.name, got.Fix)
			}
		}
	}
}

func TestVerdicts(t *testing.T) {
	jvm := &Target{PID: 7, Runtime: "hotspot 17", JVM: &JVM{Flags: map[string]string{"DebugNonSafepoints": "false"}}, Modules: []Module{{State: Limited}}}
	for _, c := range []struct {
		name   string
		f      *facts
		engine string
		t      *Target
		state  State
		words  []string
	}{
		{"user behind yama", ordinary(), "perf-thread", nil, Limited, []string{"only the programs that it launches", "one perf event for each thread", "without the time spent in the kernel", "(-a) cannot"}},
		{"none", ordinary(), "", nil, No, []string{"cannot record here: no luck"}},
		{"no target", ordinary(), "", jvm, No, []string{"cannot record process 7: no luck"}},
		{"target", ideal(), "bpf", jvm, OK, []string{"process 7 (hotspot 17) with the full engine", "DebugNonSafepoints", "1 module lacks some or all symbols"}},
		{"a new engine", ideal(), "magic", nil, Limited, []string{"engine magic"}},
		{"perf", ideal(), "perf", nil, Limited, []string{"every process here", "fixed size"}},
	} {
		v := c.f.verdict(c.engine, "no way to sample here: no luck", c.t)
		if v.State != c.state {
			t.Errorf("%s: %+v", c.name, v)
		}
		for _, w := range c.words {
			if !strings.Contains(v.Text, w) {
				t.Errorf("%s: no %q in %q", c.name, w, v.Text)
			}
		}
	}
	f := ideal()
	f.sysctl["kernel.yama.ptrace_scope"] = "3"
	if v := f.verdict("bpf", "", nil); v.State != No {
		t.Errorf("nobody may read anything: %+v", v)
	}
	f = ordinary()
	f.sysctl["kernel.yama.ptrace_scope"] = "2"
	if v := f.verdict("perf-thread", "", nil); v.State != No {
		t.Errorf("a user who may read nothing: %+v", v)
	}
}

func TestFixesOnce(t *testing.T) {
	r := Report{Checks: ordinary().machine("perf-thread", 99)}
	r.collect()
	seen := map[string]bool{}
	for _, f := range r.Fixes {
		if seen[f.Command] {
			t.Errorf("twice: %s", f.Command)
		}
		seen[f.Command] = true
	}
	if len(r.Fixes) != 3 || !strings.HasPrefix(r.Fixes[0].Command, "sudo setcap") || !strings.Contains(r.Fixes[1].Gain, "; names of kernel functions") {
		t.Errorf("%+v", r.Fixes)
	}
}

// However narrow the terminal, no line except for a command is longer, and colour takes no room.
func TestWidth(t *testing.T) {
	f := ordinary()
	r := &Report{Verdict: f.verdict("perf-thread", "", nil), Engine: "perf", Checks: f.machine("perf-thread", 99),
		Engines: []Engine{{"perf", Limited, "perf events, 32 KiB stack copies (cpu-clock, 99 Hz per CPU)"}, {"bpf", No, "load the BPF programs: not permitted"}},
		Target: &Target{PID: 12, Command: strings.Repeat("java ", 100), Modules: []Module{
			{Path: "/opt/" + strings.Repeat("long/", 60) + "libx.so", Symbols: "dynsym only", State: Limited, Package: "libx-dbgsym"}}}}
	r.Checks = append(r.Checks, Check{ID: "target.access", Group: groupTarget, Name: "access", State: OK, Seen: "permitted", Means: "fine"})
	r.collect()
	commands := map[string]bool{}
	for _, x := range r.Fixes {
		commands["  "+x.Command] = true
	}
	var wide string
	for _, width := range []int{40, 60, 80, 100, 200} {
		var plain, colored bytes.Buffer
		if err := errors.Join(r.WriteText(&plain, Style{Width: width}), r.WriteText(&colored, Style{Width: width, Color: true})); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(plain.String()) {
			line = strings.TrimSuffix(line, "\n")
			if n := utf8.RuneCountInString(line); n > width && !commands[line] {
				t.Errorf("width %d: %d columns: %q", width, n, line)
			}
		}
		if strings.Contains(plain.String(), "\x1b") || !strings.Contains(colored.String(), "\x1b[33mlimited\x1b[0m") {
			t.Errorf("width %d: colour", width)
		}
		bare := colored.String()
		for _, code := range []string{"0", "1", "31", "32", "33"} {
			bare = strings.ReplaceAll(bare, "\x1b["+code+"m", "")
		}
		if bare != plain.String() {
			t.Errorf("width %d: colour changes the text", width)
		}
		wide = plain.String()
	}
	for _, w := range []string{"process 12: java", "libx-dbgsym", "chosen: perf events", "sudo sysctl kernel.perf_event_paranoid=1", "  no       bpf"} {
		if !strings.Contains(wide, w) {
			t.Errorf("no %q in\n%s", w, wide)
		}
	}
}

func TestOwners(t *testing.T) {
	root := fstest.MapFS{
		"var/lib/dpkg/info/libc6:amd64.list":                   {Data: []byte("/.\n/lib/x86_64-linux-gnu/libc.so.6\n")},
		"var/lib/dpkg/info/openjdk-17-jre-headless:amd64.list": {Data: []byte("/usr/lib/jvm/java-17/lib/server/libjvm.so\n")},
		"var/lib/dpkg/info/zlib1g:amd64.list":                  {Data: []byte("/usr/lib/libz.so.1\n")},
		"var/lib/dpkg/info/$(reboot).list":                     {Data: []byte("/opt/evil.so\n")},
	}
	got := owners(root, []string{"/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/jvm/java-17/lib/server/libjvm.so", "/lib/libz.so.1", "/opt/mine.so", "/opt/evil.so"})
	want := map[string]string{"/usr/lib/x86_64-linux-gnu/libc.so.6": "libc6", "/usr/lib/jvm/java-17/lib/server/libjvm.so": "openjdk-17-jre-headless", "/lib/libz.so.1": "zlib1g"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for pkg, debug := range map[string]string{"": "", "libc6": "libc6-dbg", "openjdk-17-jre-headless": "openjdk-17-dbg", "zlib1g": "zlib1g-dbgsym"} {
		if d := debugPackage(pkg); d != debug {
			t.Errorf("%s: %s, want %s", pkg, d, debug)
		}
	}
}

// apt installs nothing if it does not know one of the packages: packages from an archive that most
// machines do not have are installed separately.
func TestSymbolPackages(t *testing.T) {
	c := symbolCheck([]Module{
		{Symbols: "dynsym only", State: Limited, Package: "zlib1g-dbgsym", Unwind: true},
		{Symbols: "dynsym only", State: Limited, Package: "openjdk-17-dbg", Unwind: true},
		{Symbols: "dynsym only", State: Limited, Package: "libc6-dbg", Unwind: true},
	})
	if want := "sudo apt install libc6-dbg openjdk-17-dbg; sudo apt install zlib1g-dbgsym"; c.Fix == nil || c.Fix.Command != want || !strings.Contains(c.Fix.Gain, "-dbgsym") {
		t.Errorf("%+v, want %s", c.Fix, want)
	}
	c = symbolCheck([]Module{{Symbols: "dynsym only", State: Limited, Package: "libc6-dbg", Unwind: true}})
	if c.Fix == nil || c.Fix.Command != "sudo apt install libc6-dbg" || strings.Contains(c.Fix.Gain, "-dbgsym") {
		t.Errorf("%+v", c.Fix)
	}
}

func TestParse(t *testing.T) {
	for release, want := range map[string][2]int{"6.18.44-fc": {6, 18}, "5.15": {5, 15}, "6.1-rc2": {6, 1}, "": {}, "x.y": {}, "6.": {6, 0}, "6.x9": {6, 0}} {
		if a, b := kernelVersion(release); [2]int{a, b} != want {
			t.Errorf("%q is %d.%d", release, a, b)
		}
	}
	const mounts = "22 27 0:21 / /proc rw,relatime shared:5 - proc proc rw,hidepid=invisible\n23 27 0:22 / /sys rw - sysfs sysfs rw\n"
	if o := procOptions(mounts); hidden(o) != "hidepid=invisible" {
		t.Errorf("options %q", o)
	}
	if o := procOptions(mounts + "30 22 0:21 / /proc rw,relatime - proc proc rw\n"); hidden(o) != "" {
		t.Errorf("the last mount counts, not %q", o)
	}
	for in, want := range map[string]string{"/usr/bin/candid": "/usr/bin/candid", "/a b/c": "'/a b/c'", "/it's": `'/it'\''s'`, "": "''", "/$(x)": "'/$(x)'"} {
		if got := shellQuote(in); got != want {
			t.Errorf("%q quoted: %s", in, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("22 27 0:21 / /proc rw,relatime shared:5 - proc proc rw,hidepid=2")
	f.Add("6.18.44-fc")
	f.Fuzz(func(t *testing.T, s string) {
		_ = hidden(procOptions(s))
		_, _ = kernelVersion(s)
		_ = shellQuote(s)
		for _, l := range wrap(s, 20) {
			if columns(l) > 20 {
				t.Errorf("%q is too wide", l)
			}
		}
	})
}

// The command that starts a container with more capabilities contains all of them.
func TestOneStart(t *testing.T) {
	got := oneStart([]Fix{
		{"docker run --cap-add PERFMON IMAGE", "more"}, {"sudo sysctl a=1", "a"},
		{"docker run --cap-add SYS_NICE IMAGE", "in time"}, {"docker run --pid=host IMAGE", "all"},
	})
	want := []Fix{{"docker run --cap-add PERFMON --cap-add SYS_NICE IMAGE", "more; in time"}, {"sudo sysctl a=1", "a"}, {"docker run --pid=host IMAGE", "all"}}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
