package doctor

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/perfevent"
	"github.com/candid-profiler/candid/internal/kallsyms"
	"github.com/candid-profiler/candid/internal/priority"
)

// sysctls are the settings that are examined.
var sysctls = []string{
	"kernel.perf_event_paranoid", "kernel.perf_event_max_sample_rate", "kernel.perf_cpu_time_max_percent",
	"kernel.perf_event_mlock_kb", "kernel.kptr_restrict", "kernel.unprivileged_bpf_disabled", "kernel.yama.ptrace_scope",
}

// gather examines this machine.
func gather() *facts {
	f := &facts{uid: os.Geteuid(), sysctl: map[string]string{}, pidOne: "unknown"}
	var uts unix.Utsname
	if unix.Uname(&uts) == nil {
		f.kernel = unix.ByteSliceToString(uts.Release[:])
	}
	f.major, f.minor = kernelVersion(f.kernel)
	if cpus, err := perfevent.OnlineCPUs(); err == nil {
		f.cpus = len(cpus)
	}
	f.user = strconv.Itoa(f.uid)
	if u, err := user.LookupId(f.user); err == nil {
		f.user = u.Username
	}
	f.self, _ = os.Executable()
	var where unix.Statfs_t
	f.nosuid = f.self != "" && unix.Statfs(f.self, &where) == nil && where.Flags&unix.ST_NOSUID != 0
	f.sysctlFixed = unix.Statfs("/proc/sys/kernel", &where) == nil && where.Flags&unix.ST_RDONLY != 0
	for _, name := range sysctls {
		if b, err := readSmall("/proc/sys/" + strings.ReplaceAll(name, ".", "/")); err == nil {
			f.sysctl[name] = b
		}
	}
	f.hz = tickRate(f.kernel)
	_, err := os.Stat("/sys/kernel/btf/vmlinux")
	f.btf = err == nil
	if s, err := readSmall("/sys/kernel/security/lockdown"); err == nil {
		// The current mode is in brackets.
		_, s, _ = strings.Cut(s, "[")
		f.lockdown, _, _ = strings.Cut(s, "]")
	}
	const clocks = "/sys/devices/system/clocksource/clocksource0/"
	f.clock, _ = readSmall(clocks + "current_clocksource")
	if s, err := readSmall(clocks + "available_clocksource"); err == nil {
		f.clocks = strings.Fields(s)
	}
	f.readStatus()
	f.readNamespaces()
	f.perf, f.perfErr = reachOfPerf()
	f.counters = hardwareCounters()
	f.vmRead = readSelf()
	if s, err := kallsyms.Load(); err != nil {
		f.namesErr = err
	} else {
		f.names = s.Len()
	}
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) == nil {
		f.openFiles = lim.Cur
	}
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &lim) == nil {
		f.locked = lim.Cur
	}
	f.nice, f.bestNice = priority.Own(), priority.Best()
	f.runnable, _, _ = priority.Runnable()
	f.cgroup, f.cpuLimit = ownCgroup()
	return f
}

// readSmall reads a file of the kernel's that contains one value.
func readSmall(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, 64<<10))
	return strings.TrimSpace(string(b)), err
}

// tickRate returns CONFIG_HZ from the kernel's configuration, 0 if that is not available.
func tickRate(release string) int {
	var r io.Reader
	file, err := os.Open("/proc/config.gz")
	if err == nil {
		defer file.Close()
		if r, err = gzip.NewReader(file); err != nil {
			return 0
		}
	} else {
		if file, err = os.Open("/boot/config-" + path.Base(release)); err != nil {
			return 0
		}
		defer file.Close()
		r = file
	}
	for s := bufio.NewScanner(io.LimitReader(r, 4<<20)); s.Scan(); {
		if v, ok := strings.CutPrefix(s.Text(), "CONFIG_HZ="); ok {
			hz, _ := strconv.Atoi(v)
			return hz
		}
	}
	return 0
}

// readStatus reads what /proc/self/status reports about privileges.
func (f *facts) readStatus() {
	f.filters = -1
	s, err := readSmall("/proc/thread-self/status")
	if err != nil {
		return
	}
	for line := range strings.Lines(s) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch name {
		case "CapEff":
			f.effective, _ = strconv.ParseUint(value, 16, 64)
		case "CapBnd":
			f.bounding, _ = strconv.ParseUint(value, 16, 64)
		case "NoNewPrivs":
			f.noNewPrivs = value == "1"
		case "Seccomp":
			f.seccomp, _ = strconv.Atoi(value)
		case "Seccomp_filters":
			if n, err := strconv.Atoi(value); err == nil {
				f.filters = n
			}
		}
	}
}

// The inodes of the machine's initial namespaces (include/linux/proc_ns.h).
const (
	firstUserNS = 0xEFFFFFFD
	firstPIDNS  = 0xEFFFFFFC
)

func namespace(pid, kind string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/"+pid+"/ns/"+kind, &st); err != nil {
		return 0, err
	}
	return st.Ino, nil
}

func (f *facts) readNamespaces() {
	if ino, err := namespace("self", "pid"); err == nil {
		f.pidNS = ino != firstPIDNS
	}
	if ino, err := namespace("self", "user"); err == nil {
		f.userNS = ino != firstUserNS
	}
	own, err1 := namespace("self", "mnt")
	first, err2 := namespace("1", "mnt")
	if err1 == nil && err2 == nil {
		f.pidOne = "other"
		if own == first {
			f.pidOne = "same"
		}
	}
	switch {
	case os.Getenv("KUBERNETES_SERVICE_HOST") != "":
		f.container = "kubernetes"
	case exists("/run/.containerenv"):
		f.container = "podman"
	case exists("/.dockerenv"):
		f.container = "docker"
	case os.Getenv("container") != "":
		f.container = os.Getenv("container")
	}
	if s, err := readSmall("/proc/self/mountinfo"); err == nil {
		f.procOptions = procOptions(s)
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// reachOfPerf finds out where perf events may be opened, by opening some.
func reachOfPerf() (perfReach, error) {
	a := perfevent.Attr{Kind: capture.CPUTime, Period: 1e9}
	cpus, err := perfevent.OnlineCPUs()
	if err == nil && len(cpus) > 0 {
		err = tryEvent(a, -1, cpus[0])
		if err == nil {
			return perfMachine, nil
		}
	}
	if tryEvent(a, 0, -1) == nil {
		return perfOwn, err
	}
	a.NoKernel = true
	if e := tryEvent(a, 0, -1); e != nil {
		return perfNothing, e
	}
	return perfUser, err
}

func tryEvent(a perfevent.Attr, tid, cpu int) error {
	fd, err := perfevent.Open(a, tid, cpu)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// hardwareCounters returns why candid cannot count cycles on this machine's CPUs.
func hardwareCounters() error {
	return tryEvent(perfevent.Attr{Kind: capture.Counter, Name: "cycles", Type: capture.TypeHardware, Period: 1 << 40, NoKernel: true}, 0, -1)
}

// marker is what readSelf reads. On the stack it might move meanwhile.
var marker, seenMarker uint64 = 0x5ca1ab1e, 0

// readSelf reads candid's own memory in the way in which it would read that of others: this is
// always permitted, unless a filter forbids the call itself.
func readSelf() error {
	local := unix.Iovec{Base: (*byte)(unsafe.Pointer(&seenMarker))}
	local.SetLen(8)
	remote := unix.RemoteIovec{Base: uintptr(unsafe.Pointer(&marker)), Len: 8}
	n, err := unix.ProcessVMReadv(os.Getpid(), []unix.Iovec{local}, []unix.RemoteIovec{remote}, 0)
	if err == nil && (n != 8 || seenMarker != marker) {
		err = errors.New("it reads wrong values")
	}
	return err
}

// ownCgroup returns the path of candid's cgroup and how many CPUs it may use (0: all), by version 2
// of cgroups, otherwise by version 1.
func ownCgroup() (name string, cpus float64) {
	s, err := readSmall("/proc/self/cgroup")
	if err != nil {
		return "", 0
	}
	for line := range strings.Lines(s) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		if f[0] == "0" && f[1] == "" {
			name = f[2]
		}
	}
	// The limit of every level applies.
	for dir := path.Clean("/" + name); ; dir = path.Dir(dir) {
		if s, err := readSmall(path.Join("/sys/fs/cgroup", dir, "cpu.max")); err == nil {
			var quota, period float64
			if n, _ := fmt.Sscan(s, &quota, &period); n == 2 && quota > 0 && period > 0 && (cpus == 0 || quota/period < cpus) {
				cpus = quota / period
			}
		}
		if dir == "/" {
			break
		}
	}
	if quota, err := readSmall("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"); err == nil && cpus == 0 {
		period, _ := readSmall("/sys/fs/cgroup/cpu/cpu.cfs_period_us")
		q, err1 := strconv.ParseFloat(quota, 64)
		p, err2 := strconv.ParseFloat(period, 64)
		if err1 == nil && err2 == nil && q > 0 && p > 0 {
			cpus = q / p
		}
	}
	return name, cpus
}
