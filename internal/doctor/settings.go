package doctor

import (
	"fmt"
	"math"
	"strconv"

	"github.com/candid-profiler/candid/internal/priority"
)

func (f *facts) checkParanoid(engine string) Check {
	c := f.setting("kernel.perf_event_paranoid")
	n := f.paranoid()
	lower := &Fix{"sudo sysctl kernel.perf_event_paranoid=1", "users may sample their own processes, with the time spent in the kernel"}
	switch {
	case c.Seen == "absent":
		c.Seen = "unreadable"
		if f.perf == perfNothing {
			c.State, c.Means = No, "the kernel has no perf events, or /proc/sys is hidden"
			break
		}
		c.Means = "not known; see perf events above"
	case f.perfmon():
		c.Means = "does not bind whoever holds CAP_PERFMON"
	case n <= 0:
		c.Means = "users may sample every CPU"
	case n == 1:
		c.State, c.Means = Limited, "users may sample their own threads, one event for each of them"
		c.Fix = &Fix{"sudo sysctl kernel.perf_event_paranoid=0", "one event per CPU instead of one per thread and CPU"}
	case n == 2 || f.perf == perfUser: // 3 and 4 differ from 2 only on distributions that define them
		c.State, c.Means = Limited, "users may sample their own threads, without the time spent in the kernel"
		c.Fix = lower
	default:
		c.State, c.Means = Limited, "users may sample nothing by perf events"
		switch engine {
		case "":
			c.State = No
		case "suspend":
			c.Means += "; candid suspends threads instead"
		}
		c.Fix = lower
	}
	return c
}

func (f *facts) checkRate(hz float64) Check {
	c := f.setting("kernel.perf_event_max_sample_rate")
	n, err := strconv.ParseFloat(c.Seen, 64)
	switch {
	case err != nil:
		c.Means = "not known"
	case n < hz:
		c.State, c.Means = Limited, fmt.Sprintf("below the %g Hz that record takes: samples are held back", hz)
		c.Fix = &Fix{"sudo sysctl kernel.perf_event_max_sample_rate=100000", "samples at the rate that is asked for"}
	default:
		c.Means = fmt.Sprintf("rates up to this are kept (record takes %g Hz, up to 20000)", hz)
		if n < 20000 {
			c.Means = fmt.Sprintf("enough for the %g Hz that record takes; the kernel lowers it when interrupts took too long", hz)
		}
	}
	return c
}

func (f *facts) checkTime() Check {
	c := f.setting("kernel.perf_cpu_time_max_percent")
	n, err := strconv.Atoi(c.Seen)
	switch {
	case err != nil:
		c.Means = "not known"
	case n == 0 || n >= 100:
		c.Means = "the kernel does not lower the rate by itself"
	case n < 5:
		c.State, c.Means = Limited, "the kernel lowers the rate soon: when samples take this share of a CPU"
		c.Fix = &Fix{"sudo sysctl kernel.perf_cpu_time_max_percent=25", "the rate is not lowered as soon"}
	default:
		c.Means = "the kernel lowers the rate if samples take this share of a CPU"
	}
	return c
}

func (f *facts) checkMlock(engine string) Check {
	c := f.setting("kernel.perf_event_mlock_kb")
	n, err := strconv.Atoi(c.Seen)
	if err == nil {
		c.Seen += " KiB per CPU"
	}
	switch {
	case err != nil:
		c.Means = "not known"
	case f.perfmon() || f.paranoid() < 0:
		c.Means = "does not bind whoever holds CAP_PERFMON"
	case n < 256:
		c.State, c.Means = Limited, "little room for the samples of ordinary users: some may be lost"
		c.Fix = &Fix{"sudo sysctl kernel.perf_event_mlock_kb=1028", "room for samples between two looks"}
	default:
		c.Means = "room for the samples of all processes of one user; with rings of other tools open it may run out"
		if engine == "bpf" || engine == "suspend" {
			c.Means = "not used by engine " + engine
		}
	}
	return c
}

func (f *facts) checkNames() Check {
	c := f.setting("kernel.kptr_restrict")
	if f.namesErr == nil {
		c.Means = fmt.Sprintf("kernel functions have names (%d symbols)", f.names)
		return c
	}
	c.State, c.Means = Limited, "kernel functions have no names: "+errText(f.namesErr)
	if f.perf == perfUser || f.perf == perfNothing {
		c.Means = "kernel functions have no names; the kernel is not sampled either"
	}
	switch {
	case f.sysctl["kernel.kptr_restrict"] == "2" && f.holds(capSyslog):
		c.Fix = &Fix{"sudo sysctl kernel.kptr_restrict=1", "names of kernel functions"}
	case f.sysctl["kernel.kptr_restrict"] == "0" && f.paranoid() > 1:
		c.Fix = &Fix{"sudo sysctl kernel.perf_event_paranoid=1", "names of kernel functions"}
	case f.sysctl["kernel.kptr_restrict"] != "0":
		c.Fix = &Fix{"sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1", "names of kernel functions"}
	}
	return c
}

func (f *facts) checkUnprivilegedBPF() Check {
	c := f.setting("kernel.unprivileged_bpf_disabled")
	c.Means = "programs that sample need CAP_BPF and CAP_PERFMON whatever it says"
	return c
}

func (f *facts) checkYama() Check {
	c := f.setting("kernel.yama.ptrace_scope")
	switch {
	case c.Seen == "absent" || c.Seen == "0":
		c.Means = "users may read their own processes"
	case c.Seen == "3":
		c.State, c.Means = No, "nobody may read other processes, whatever privileges they have, until the next boot"
	case f.ptrace():
		c.Means = "does not bind whoever holds CAP_SYS_PTRACE"
	case c.Seen == "1":
		c.State, c.Means = Limited, "users may read only programs that candid launches (candid record -- COMMAND)"
		c.Fix = &Fix{"sudo sysctl kernel.yama.ptrace_scope=0", "users may read their own running processes"}
	default:
		c.State, c.Means = No, "only CAP_SYS_PTRACE may read other processes"
		c.Fix = &Fix{"sudo sysctl kernel.yama.ptrace_scope=0", "users may read their own running processes"}
	}
	return c
}

// checkFiles compares the limit of open files with what an engine opens for a target of that many
// threads, 0 if there is no target.
func (f *facts) checkFiles(engine string, threads int) Check {
	c := Check{ID: "limits.open_files", Group: groupLimits, Name: "open files", State: OK, Seen: count(f.openFiles)}
	const own = 64 // files of targets, terminals and the like
	need := uint64(2*max(f.cpus, 1) + own)
	c.Means = fmt.Sprintf("enough: one event for each of %s", plural(f.cpus, "CPU", "CPUs"))
	if engine == "perf-thread" {
		n := max(threads, 1)
		need = uint64(n*max(f.cpus, 1) + own)
		c.Means = fmt.Sprintf("enough for %d threads: one event per thread and CPU (%d)", (f.openFiles-min(own, f.openFiles))/uint64(max(f.cpus, 1)), f.cpus)
		if threads > 0 {
			c.Means = fmt.Sprintf("enough: one event for each of %s on each of %s", plural(threads, "thread", "threads"), plural(f.cpus, "CPU", "CPUs"))
		}
	}
	if engine == "suspend" && threads > 0 {
		need = uint64(2*threads + own)
		c.Means = fmt.Sprintf("enough for %s", plural(threads, "thread", "threads"))
	}
	if f.openFiles < need {
		c.State, c.Means = Limited, fmt.Sprintf("too few: about %d are needed", need)
		if engine == "perf-thread" {
			c.State = No
			c.Means += ", one event per thread and CPU"
		}
		// The Go runtime has already raised the soft limit to the hard one.
		const gain = "events for all threads"
		if limit := fmt.Sprintf("nofile=%d:%d", need+need/2, need+need/2); f.canHold(capResource) {
			c.Fix = &Fix{"sudo prlimit --pid $$ --" + limit, gain}
		} else { // as in containers: not even root may raise it
			c.Fix = f.startWith("--ulimit "+limit, gain)
		}
	}
	return c
}

// checkLocked checks the limit that the samples of an ordinary user count against once
// kernel.perf_event_mlock_kb is used up.
func (f *facts) checkLocked() Check {
	c := Check{ID: "limits.locked_memory", Group: groupLimits, Name: "locked memory", State: OK, Seen: count(f.locked), Means: "more room for samples, beyond perf_event_mlock_kb"}
	if f.locked != math.MaxUint64 {
		c.Seen = fmt.Sprintf("%d KiB", f.locked/1024)
	}
	if f.perfmon() {
		c.Means = "does not bind whoever holds CAP_PERFMON"
		if f.before(5, 11) {
			c.Means = "candid lifts it for its BPF maps"
		}
	}
	return c
}

func count(n uint64) string {
	if n == math.MaxUint64 {
		return "unlimited"
	}
	return strconv.FormatUint(n, 10)
}

// checkNice reports whether candid stays responsive if many threads want each CPU.
func (f *facts) checkNice() Check {
	c := Check{ID: "limits.nice", Group: groupLimits, Name: "nice level", State: OK, Seen: fmt.Sprintf("%d, at best %d", f.nice, f.bestNice),
		Means: "with --nice candid takes a better one where many threads want each CPU, so that it keeps its time"}
	const enough = -20 // sufficient for any crowd
	crowded := f.runnable >= priority.Crowded*max(f.cpus, 1)
	switch {
	case f.nice > 0:
		c.Seen = strconv.Itoa(f.nice)
		c.Means = "candid was started with it and keeps it: on a busy machine samples may be missed"
	case f.bestNice <= enough:
	case !crowded:
		c.Means = "where many threads want each CPU candid misses samples and ends late; CAP_SYS_NICE would help"
	default:
		c.State, c.Means = Limited, fmt.Sprintf("%d threads want %s now: candid misses samples and ends late", f.runnable, plural(f.cpus, "CPU", "CPUs"))
		c.Fix = f.startWith("--cap-add SYS_NICE", keepsTime)
		if !f.inContainer() && f.container == "" && f.canHold(capResource) {
			c.Fix = &Fix{"sudo prlimit --pid $$ --nice=40:40", keepsTime}
		}
	}
	return c
}

const keepsTime = "samples and the end of a recording in time on a crowded machine"

func (f *facts) checkCPULimit() Check {
	c := Check{ID: "limits.cpu", Group: groupLimits, Name: "CPU limit of the cgroup", State: OK, Seen: "none", Means: "candid gets the CPU that it needs"}
	if f.cpuLimit > 0 {
		c.Seen = fmt.Sprintf("%.3g CPUs", f.cpuLimit)
		c.Means = "candid shares it with what else runs in this cgroup"
		if f.cpuLimit < 0.5 {
			c.State = Limited
			c.Means += ": it may come too late to its samples, and some may be lost"
		}
	}
	return c
}

func (f *facts) checkNamespaces() Check {
	c := Check{ID: "container.namespaces", Group: groupContainer, Name: "namespaces", State: OK, Seen: "the machine's own", Means: "every process of the machine can be seen"}
	what := f.container
	if what == "" {
		what = "a container"
	}
	switch {
	case f.userNS:
		c.State, c.Seen = Limited, "own user namespace"
		c.Means = "capabilities held here do not count for perf events and BPF: run candid on the machine itself"
		if f.pidNS {
			c.Seen = "own user and pid namespaces (" + what + ")"
		}
	case f.pidNS:
		c.State, c.Seen = Limited, "own pid namespace ("+what+")"
		c.Means = "only the processes in it can be seen"
		c.Fix = f.startWith("--pid=host", "all processes of the machine can be seen")
	case f.pidOne == "other":
		c.Seen = "the machine's own pids, other files"
		c.Means = "every process can be seen; files of targets are read through /proc/PID/root"
	}
	return c
}

func (f *facts) checkProc() Check {
	c := Check{ID: "container.proc", Group: groupContainer, Name: "/proc", State: OK, Seen: "shows all processes", Means: "targets can be found by their number"}
	h := hidden(f.procOptions)
	switch {
	case h == "":
	case f.ptrace() || f.uid == 0:
		c.Seen, c.Means = h, "does not bind root and CAP_SYS_PTRACE"
	default:
		c.State, c.Seen, c.Means = Limited, h, "processes of other users are hidden"
		c.Fix = &Fix{"sudo mount -o remount,hidepid=0 /proc", "processes of other users are shown"}
	}
	return c
}
