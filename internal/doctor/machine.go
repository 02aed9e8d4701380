package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Groups of checks, as headings.
const (
	groupKernel     = "kernel"
	groupPrivileges = "privileges"
	groupSettings   = "settings"
	groupLimits     = "limits"
	groupContainer  = "container"
	groupTarget     = "target"
)

// machine explains the facts. engine is the chosen one, "" if none could be; hz is the default rate
// of `record`.
func (f *facts) machine(engine string, hz float64) []Check {
	var out []Check
	add := func(c ...Check) { out = append(out, c...) }
	add(f.checkVersion(), f.checkBTF())
	if f.lockdown != "" {
		add(f.checkLockdown())
	}
	add(f.checkPerf(), f.checkCounters(), f.checkClock(), f.checkTick())
	add(f.checkUser())
	add(f.checkCapabilities()...)
	add(f.checkKept(), f.checkNoNewPrivs(), f.checkSeccomp(), f.checkRead())
	add(f.checkParanoid(engine), f.checkRate(hz), f.checkTime(), f.checkMlock(engine), f.checkNames(), f.checkUnprivilegedBPF(), f.checkYama())
	add(f.checkFiles(engine, 0), f.checkLocked(), f.checkNice(), f.checkCPULimit())
	add(f.checkNamespaces(), f.checkProc())
	return out
}

func (f *facts) checkVersion() Check {
	c := Check{ID: "kernel.version", Group: groupKernel, Name: "version", State: OK, Seen: f.kernel,
		Means: "BPF copies exactly the live part of a stack (6.16 and later)"}
	switch {
	case f.before(5, 15):
		c.State, c.Means = Limited, "BPF stack copies need 5.15: the kernel's own copies of a fixed size are used"
	case f.before(6, 16):
		c.State, c.Means = Limited, "BPF copies stacks into records of fixed sizes, which takes a little longer; exact copies need 6.16"
	}
	return c
}

func (f *facts) before(major, minor int) bool {
	return f.major < major || f.major == major && f.minor < minor
}

func (f *facts) checkBTF() Check {
	c := Check{ID: "kernel.btf", Group: groupKernel, Name: "type data (BTF)", State: OK, Seen: "/sys/kernel/btf/vmlinux", Means: "BPF programs fit themselves to this kernel"}
	if !f.btf {
		c.State, c.Seen, c.Means = Limited, "missing", "no BPF stack copies: they need a kernel built with CONFIG_DEBUG_INFO_BTF=y, as distributions have it"
	}
	return c
}

func (f *facts) checkLockdown() Check {
	c := Check{ID: "kernel.lockdown", Group: groupKernel, Name: "lockdown", State: OK, Seen: f.lockdown, Means: "does not restrict profiling"}
	if f.lockdown == "confidentiality" {
		c.State, c.Means = Limited, "the kernel lets no one read through BPF: no BPF stack copies. It can be set lower only at boot"
	}
	return c
}

func (f *facts) checkPerf() Check {
	c := Check{ID: "kernel.perf_events", Group: groupKernel, Name: "perf events", State: OK, Seen: "for the whole machine", Means: "every process can be sampled, with the time that it spends in the kernel"}
	switch f.perf {
	case perfMachine:
		return c
	case perfOwn:
		c.State, c.Seen, c.Means = Limited, "for own threads", "one event per thread of your own processes, kernel included"
	case perfUser:
		c.State, c.Seen, c.Means = Limited, "for own threads, user space only", "one event per thread of your own processes; time in the kernel is not seen"
	default:
		c.State, c.Seen, c.Means = No, "none: "+errText(f.perfErr), "the kernel interrupts nobody for candid"
		if f.paranoid() <= 2 {
			c.Means += "; as kernel.perf_event_paranoid would permit some, a seccomp filter or security module forbids the call"
			c.Fix = f.startWith("--security-opt seccomp=unconfined", noFilter)
		}
	}
	return c
}

func (f *facts) checkCounters() Check {
	c := Check{ID: "kernel.counters", Group: groupKernel, Name: "hardware counters", State: OK, Seen: "cycles can be counted", Means: "not needed: candid samples by CPU time"}
	if f.counters != nil {
		c.Seen, c.Means = "none", "not needed: candid samples by CPU time (cpu-clock); kernel code that blocks interrupts is seen when it allows them again"
		if f.perf == perfNothing {
			c.Seen = "unknown: perf events are forbidden"
		}
	}
	return c
}

func (f *facts) checkClock() Check {
	c := Check{ID: "kernel.clock", Group: groupKernel, Name: "clock", State: OK, Seen: f.clock, Means: "samples carry CLOCK_MONOTONIC, cheap to read"}
	switch f.clock {
	case "":
		c.Seen = "unknown"
	case "hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit":
		c.State, c.Means = Limited, "slow to read or coarse: each sample costs more"
		for _, better := range []string{"tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page", "xen"} {
			if slices.Contains(f.clocks, better) {
				c.Fix = &Fix{"echo " + better + " | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource", "cheaper samples"}
				break
			}
		}
	}
	return c
}

func (f *facts) checkTick() Check {
	c := Check{ID: "kernel.tick", Group: groupKernel, Name: "tick", State: OK, Seen: "unknown", Means: "candid moves its rate off every usual tick, so that it keeps step with none"}
	if f.hz > 0 {
		c.Seen = fmt.Sprintf("%d Hz", f.hz)
		c.Means = "candid moves its rate off it, so that it does not keep step"
	}
	return c
}

func (f *facts) checkUser() Check {
	c := Check{ID: "privileges.user", Group: groupPrivileges, Name: "user", State: OK, Seen: fmt.Sprintf("%s (uid %d)", f.user, f.uid), Means: "an ordinary user: the capabilities below decide"}
	if f.uid == 0 {
		c.Means = "root: the capabilities below decide"
	}
	return c
}

// capabilities are those that matter, with what each permits.
var capabilities = []struct {
	bit        int
	name       string
	with       string // what it permits
	without    string
	instead    int // another that is sufficient too, 0: none
	machineOwn bool
}{
	{capPerfmon, "CAP_PERFMON", "perf events for every process, kernel included", "perf events as far as kernel.perf_event_paranoid goes", capSysAdmin, true},
	{capBPF, "CAP_BPF", "BPF programs may be loaded", "no BPF stack copies", capSysAdmin, true},
	{capSysPtrace, "CAP_SYS_PTRACE", "the memory of every user's processes can be read", "only your own processes can be read", 0, false},
	{capSyslog, "CAP_SYSLOG", "kernel addresses are shown, unless kptr_restrict is 2", "names of kernel functions as far as kptr_restrict goes", 0, true},
	{capSysAdmin, "CAP_SYS_ADMIN", "not needed; it stands in for CAP_PERFMON and CAP_BPF", "not needed", capSysAdmin, true},
}

func (f *facts) checkCapabilities() []Check {
	var out []Check
	for _, k := range capabilities {
		c := Check{ID: "privileges." + strings.ToLower(k.name), Group: groupPrivileges, Name: k.name, State: OK, Seen: "held", Means: k.with}
		switch {
		case f.holds(k.bit) && k.machineOwn && f.userNS:
			c.Seen, c.State, c.Means = "held in a user namespace", Limited, "does not count: the kernel asks for it in the machine's own user namespace"
		case f.holds(k.bit):
		case k.bit == capSysAdmin:
			c.Seen, c.Means = "not held", k.without
		case k.instead != 0 && f.holds(k.instead) && !f.userNS:
			c.Seen, c.Means = "not held", "not needed besides CAP_SYS_ADMIN"
		case k.bit == capSyslog && f.names > 0:
			c.Seen, c.Means = "not held", "not needed: kernel addresses are shown"
		default:
			c.Seen, c.State, c.Means = "not held", Limited, k.without
			if !f.canHold(k.bit) {
				c.Seen = "not held, cannot be got here"
			}
			c.Fix = f.grant()
		}
		if k.bit == capSysAdmin {
			c.State = OK
		}
		out = append(out, c)
	}
	return out
}

// full reports whether nothing is missing for the full engine.
func (f *facts) full() bool { return f.perfmon() && f.bpf() && f.ptrace() }

func (f *facts) checkNoNewPrivs() Check {
	c := Check{ID: "privileges.no_new_privs", Group: groupPrivileges, Name: "no_new_privs", State: OK, Seen: "off", Means: "sudo and capabilities of candid's file take effect"}
	if f.noNewPrivs {
		c.Seen = "on"
		c.Means = "what is held is kept, nothing can be added"
		if !f.full() {
			c.State = Limited
			c.Means = "sudo and capabilities of candid's file have no effect here: start candid from a shell without it"
			switch {
			case f.container == "kubernetes":
				c.Means = "capabilities of candid's file have no effect here: set allowPrivilegeEscalation to true, or start the container with the capabilities"
			case f.inContainer():
				c.Means = "capabilities of candid's file have no effect here: start the container with them, or without no-new-privileges"
			}
		}
	}
	return c
}

const noFilter = "no system call is forbidden to the container"

func (f *facts) checkSeccomp() Check {
	c := Check{ID: "privileges.seccomp", Group: groupPrivileges, Name: "seccomp", State: OK, Seen: "off", Means: "no system call is filtered"}
	switch {
	case f.seccomp == 0:
		return c
	case f.filters > 0:
		c.Seen = plural(f.filters, "filter", "filters")
	default:
		c.Seen = "filtered"
	}
	c.Means = "it lets the calls that were tried here through"
	if f.vmRead != nil || f.perf == perfNothing && f.paranoid() <= 2 {
		c.State, c.Means = Limited, "it forbids calls that candid makes (see perf events, process_vm_readv)"
		c.Fix = f.startWith("--security-opt seccomp=unconfined", noFilter)
	}
	return c
}

func (f *facts) checkRead() Check {
	c := Check{ID: "privileges.process_vm_readv", Group: groupPrivileges, Name: "process_vm_readv", State: OK, Seen: "works", Means: "memory of targets is read without stopping them"}
	if f.vmRead != nil {
		c.State, c.Seen, c.Means = Limited, errText(f.vmRead), "/proc/PID/mem is read instead, which takes more calls"
	}
	return c
}

// paranoid returns kernel.perf_event_paranoid, 2 if it is not available.
func (f *facts) paranoid() int {
	if n, err := strconv.Atoi(f.sysctl["kernel.perf_event_paranoid"]); err == nil {
		return n
	}
	return 2
}

// setting returns the check of a kernel setting.
func (f *facts) setting(id string) Check {
	c := Check{ID: id, Group: groupSettings, Name: strings.TrimPrefix(id, "kernel."), State: OK, Seen: f.sysctl[id]}
	if c.Seen == "" {
		c.Seen = "absent"
	}
	return c
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	s, _, _ := strings.Cut(err.Error(), "\n")
	return s
}
