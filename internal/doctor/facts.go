package doctor

import "strings"

// facts is what was observed of the machine and of candid's own place in it. Its meaning is decided
// in functions of facts alone, so that every kind of machine can be tested on one.
type facts struct {
	kernel       string // release
	major, minor int
	cpus         int
	hz           int    // of the tick; 0: unknown
	btf          bool   // the kernel describes its types
	lockdown     string // "": not built in
	clock        string // current clock source
	clocks       []string

	self       string // path of candid
	nosuid     bool   // file capabilities have no effect on its file system
	uid        int
	user       string
	effective  uint64 // capabilities
	bounding   uint64
	noNewPrivs bool
	seccomp    int // 0 off, 1 strict, 2 filter
	filters    int // number of filters; -1: not reported

	sysctl      map[string]string // settings that could be read, by name: kernel.kptr_restrict
	sysctlFixed bool              // no setting can be changed from here

	perf     perfReach
	perfErr  error // why perf events may not be opened everywhere
	counters error // why hardware counters are not available
	vmRead   error // error of process_vm_readv on candid itself

	names    int   // number of kernel functions with names
	namesErr error // why there are none

	openFiles uint64 // RLIMIT_NOFILE; Go has raised it to the hard limit
	locked    uint64 // RLIMIT_MEMLOCK, bytes
	nice      int    // candid's nice level,
	bestNice  int    // and the best that it may have
	runnable  int    // threads that want a CPU now

	pidNS, userNS bool   // candid is in a pid or user namespace other than the machine's initial one
	container     string // kind of container, by its marks; "" if none
	pidOne        string // "same", "other" or "unknown": mount namespace of process 1
	procOptions   string // how /proc is mounted
	cgroup        string
	cpuLimit      float64 // CPUs that the cgroup may use; 0: no limit
}

// perfReach is where perf events may be opened.
type perfReach uint8

const (
	perfNothing perfReach = iota
	perfUser              // one's own threads, without the kernel
	perfOwn               // one's own threads
	perfMachine           // everything
)

// Capability numbers (include/uapi/linux/capability.h).
const (
	capSysPtrace = 19
	capSysAdmin  = 21
	capResource  = 24
	capSyslog    = 34
	capPerfmon   = 38
	capBPF       = 39
)

func (f *facts) holds(c int) bool { return f.effective>>c&1 != 0 }

// canHold reports whether candid can get the capability through its file.
func (f *facts) canHold(c int) bool { return f.bounding>>c&1 != 0 }

// perfmon reports whether perf events are free of limits. The kernel checks the capability in the
// initial user namespace (perfmon_capable in include/linux/capability.h).
func (f *facts) perfmon() bool {
	return !f.userNS && (f.holds(capPerfmon) || f.holds(capSysAdmin))
}

func (f *facts) bpf() bool { return !f.userNS && (f.holds(capBPF) || f.holds(capSysAdmin)) }

// ptrace reports whether processes of other users can be read, within candid's user namespace.
func (f *facts) ptrace() bool { return f.holds(capSysPtrace) }

func (f *facts) inContainer() bool { return f.pidNS || f.userNS }

// grant returns the command that gives candid the capabilities that it lacks, nil if there is none.
func (f *facts) grant() *Fix {
	const gain = "the full engine for all processes: perf events, BPF, names of kernel functions"
	switch {
	case f.userNS:
		return nil // no capability of a user namespace counts for perf and BPF
	case f.container == "kubernetes":
		return &Fix{"kubectl debug -it POD --image=IMAGE --target=CONTAINER --profile=sysadmin", gain}
	case f.pidNS || f.container != "" && !f.canHoldAll():
		return f.startWith("--cap-add PERFMON --cap-add BPF --cap-add SYS_PTRACE --cap-add SYSLOG", gain)
	case !f.canHoldAll() || f.self == "":
		// The program could not even be started with a capability that is not in the bounding set.
		return nil
	}
	const setcap = "sudo setcap cap_perfmon,cap_bpf,cap_sys_ptrace,cap_syslog+ep "
	if f.nosuid {
		const to = "/usr/local/bin/candid"
		return &Fix{"sudo install " + shellQuote(f.self) + " " + to + " && " + setcap + to, gain + "; where candid lies now, capabilities of files have no effect (nosuid)"}
	}
	return &Fix{setcap + shellQuote(f.self), gain}
}

// suit adapts the commands of fixes to where they will be typed.
func (f *facts) suit(checks []Check) {
	for i := range checks {
		if checks[i].Fix == nil {
			continue
		}
		fix := *checks[i].Fix
		if strings.HasPrefix(fix.Command, "sudo sysctl ") && (f.sysctlFixed || f.userNS) {
			fix.Command += "  # on the machine itself, outside of this container"
		} else if f.uid == 0 && !strings.HasPrefix(fix.Command, "sudo podman ") {
			// Small systems have no sudo.
			fix.Command = strings.ReplaceAll(fix.Command, "sudo ", "")
		}
		checks[i].Fix = &fix
	}
}

// startWith returns the command that starts the container with other flags, nil if this is not a
// container, or one that is not started by a command.
func (f *facts) startWith(flags, gain string) *Fix {
	switch {
	case f.container == "kubernetes" || f.container == "" && !f.inContainer():
		return nil
	case f.container == "podman":
		// In a rootless container no capability would count.
		return &Fix{"sudo podman run " + flags + " IMAGE", gain}
	}
	return &Fix{"docker run " + flags + " IMAGE", gain}
}

// canHoldAll reports whether candid can get all capabilities of the full engine.
func (f *facts) canHoldAll() bool {
	for _, c := range []int{capPerfmon, capBPF, capSysPtrace, capSyslog} {
		if !f.canHold(c) {
			return false
		}
	}
	return true
}

// shellQuote quotes a path as a word of a POSIX shell.
func shellQuote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._+-:@%,=", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
