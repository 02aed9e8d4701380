package perfevent

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
)

// Attr is what an event is opened with; the zero value is a cpu-clock that writes nothing for user
// space.
type Attr struct {
	Kind   capture.EventKind // CPUTime, Counter, Tracepoint or Probe
	Name   string            // for errors; "": cpu-clock
	Type   uint32            // of a Counter
	Config uint64            // of a Counter, or the ID of a Tracepoint
	Place  Found             // of a Probe
	Period uint64            // ns for CPUTime, else a count
	Freq   uint64            // instead of Period: samples per second of each CPU

	Layout    Layout
	Samples   bool   // samples are written to the event's ring
	StackSize uint32 // bytes of stack in each sample, a multiple of 8
	Wakeup    uint32 // bytes in the ring that wake the reader

	Task      bool // also forks, exits, names, executable mappings
	Quiet     bool // a counter that never fires: only Task
	Inherit   bool
	NoKernel  bool // do not sample in the kernel
	NoUser    bool // sample only there
	OnlyMmaps bool // with Quiet: executable mappings and names, nothing else
}

// Open opens an event, disabled, for a thread (-1: all) on a CPU (-1: all).
func Open(a Attr, tid, onCPU int) (int, error) {
	attr := unix.PerfEventAttr{
		Type:    unix.PERF_TYPE_SOFTWARE,
		Config:  unix.PERF_COUNT_SW_CPU_CLOCK,
		Sample:  a.Period,
		Bits:    unix.PerfBitDisabled | unix.PerfBitExcludeGuest | unix.PerfBitExcludeIdle | unix.PerfBitUseClockID,
		Clockid: unix.CLOCK_MONOTONIC,
	}
	attr.Size = uint32(unsafe.Sizeof(attr))
	switch {
	case a.Quiet:
		attr.Config = unix.PERF_COUNT_SW_DUMMY
	case a.Kind == capture.Counter:
		attr.Type, attr.Config = a.Type, a.Config
	case a.Kind == capture.Tracepoint:
		attr.Type, attr.Config = unix.PERF_TYPE_TRACEPOINT, a.Config
	case a.Kind == capture.Probe:
		var err error
		if attr.Type, err = probeType(); err != nil {
			return -1, err
		}
		if a.Place.Return {
			attr.Config = 1 // retprobe in the format directory of the device
		}
		// The path through the descriptor names exactly this file, whatever namespace it is in.
		path := append([]byte(fmt.Sprintf("/proc/self/fd/%d", a.Place.File.Fd())), 0)
		attr.Ext1, attr.Ext2 = uint64(uintptr(unsafe.Pointer(&path[0]))), a.Place.Offset
		defer runtime.KeepAlive(path)
	}
	if a.Freq > 0 {
		attr.Sample = a.Freq
		attr.Bits |= unix.PerfBitFreq
	}
	if a.Samples || a.Task || a.OnlyMmaps {
		attr.Sample_type = sampleTID | sampleTime | sampleCPU | samplePeriod
		attr.Bits |= unix.PerfBitSampleIDAll | unix.PerfBitWatermark
		attr.Wakeup = a.Wakeup
	}
	if a.Samples {
		if a.Layout.Callchain {
			attr.Sample_type |= sampleCallchain
			attr.Bits |= unix.PerfBitExcludeCallchainUser
		}
		if a.Layout.RegsMask != 0 {
			attr.Sample_type |= sampleRegsUser | sampleStackUser
			attr.Sample_regs_user = a.Layout.RegsMask
			attr.Sample_stack_user = a.StackSize
		}
	}
	if a.Task {
		attr.Bits |= unix.PerfBitTask | unix.PerfBitComm | unix.PerfBitCommExec | unix.PerfBitMmap | unix.PerfBitMmap2
	}
	if a.OnlyMmaps {
		attr.Bits |= unix.PerfBitMmap | unix.PerfBitMmap2 | unix.PerfBitComm | unix.PerfBitCommExec
	}
	if a.Inherit {
		attr.Bits |= unix.PerfBitInherit
	}
	if a.NoUser {
		attr.Bits |= unix.PerfBitExcludeUser
	}
	if a.NoKernel {
		attr.Bits |= unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv
	}
	fd, err := unix.PerfEventOpen(&attr, tid, onCPU, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return -1, openError(a, tid, onCPU, err)
	}
	return fd, nil
}

// probeType returns the type of event that user probes have.
func probeType() (uint32, error) {
	b, err := os.ReadFile("/sys/bus/event_source/devices/uprobe/type")
	if err != nil {
		return 0, fmt.Errorf("put a probe into a program: %w, %w: this kernel has no user probes (CONFIG_UPROBE_EVENTS): %w",
			capture.ErrUnsupported, capture.ErrNoEvent, err)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("put a probe into a program: %w", err)
	}
	return uint32(n), nil
}

// openError returns why an event could not be opened and what helps.
func openError(a Attr, tid, onCPU int, err error) error {
	what := cmp.Or(a.Name, "cpu-clock")
	where := "of the whole machine"
	if tid >= 0 {
		where = "of thread " + strconv.Itoa(tid)
	}
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return fmt.Errorf("open perf event %s %s: %w: kernel.perf_event_paranoid is %s; run as root, give candid CAP_PERFMON, or lower it: %w",
			what, where, capture.ErrPermission, Paranoid(), err)
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV), errors.Is(err, unix.EOPNOTSUPP):
		why := "this kernel does not"
		if a.Kind == capture.Counter && a.Type != capture.TypeSoftware {
			why = "no hardware counters: virtual machine?"
		}
		return fmt.Errorf("%w, %w: this machine does not count %s (%s); use -e cpu: %w",
			capture.ErrUnsupported, capture.ErrNoEvent, what, why, err)
	case errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("open perf event %s: %w: the kernel has no perf events, or a sandbox forbids the call: %w",
			what, capture.ErrUnsupported, err)
	case errors.Is(err, unix.EMFILE):
		return fmt.Errorf("open perf event %s %s on cpu %d: too many open files (raise ulimit -n): %w", what, where, onCPU, err)
	}
	return fmt.Errorf("open perf event %s %s on cpu %d: %w", what, where, onCPU, err)
}

// Paranoid returns kernel.perf_event_paranoid as text, "unknown" if it cannot be read.
func Paranoid() string {
	b, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}

// RateNote returns a half sentence for Describe if the kernel will throttle events with this
// period, else "".
func RateNote(period time.Duration) string {
	b, err := os.ReadFile("/proc/sys/kernel/perf_event_max_sample_rate")
	if err != nil {
		return ""
	}
	most, err := strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
	if err != nil || 1/period.Seconds() <= most {
		return ""
	}
	return fmt.Sprintf(", held back by the kernel beyond kernel.perf_event_max_sample_rate=%.0f", most)
}

// OnlineCPUs returns the CPUs that events are opened on.
func OnlineCPUs() ([]int, error) {
	b, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return nil, fmt.Errorf("find the CPUs that are online: %w", err)
	}
	return parseCPUs(strings.TrimSpace(string(b)))
}

// parseCPUs reads a list like "0-3,8".
func parseCPUs(s string) ([]int, error) {
	var cpus []int
	for part := range strings.SplitSeq(s, ",") {
		lo, hi, ranged := strings.Cut(part, "-")
		a, err := strconv.Atoi(lo)
		if err != nil {
			return nil, fmt.Errorf("list of CPUs %q: %w", s, err)
		}
		b := a
		if ranged {
			if b, err = strconv.Atoi(hi); err != nil {
				return nil, fmt.Errorf("list of CPUs %q: %w", s, err)
			}
		}
		if a < 0 || b < a || b > 1<<16 {
			return nil, fmt.Errorf("list of CPUs %q: a range of %d to %d", s, a, b)
		}
		for c := a; c <= b; c++ {
			cpus = append(cpus, c)
		}
	}
	return cpus, nil
}

// For sets a up for an event of which each CPU takes a sample per period of its time.
func (a *Attr) For(e capture.Event, period time.Duration) {
	a.Kind, a.Name, a.Type, a.Config = e.Kind, e.Name, e.Type, e.Config
	a.NoUser, a.NoKernel = e.NoUser, e.NoKernel
	switch {
	case e.Kind != capture.Counter:
		a.Period = uint64(period)
	case e.Period > 0:
		a.Period = e.Period
	default:
		a.Freq = uint64(max(1, 1/period.Seconds()+0.5))
	}
}

// Enable starts an event.
func Enable(fd int) error {
	return unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0)
}

// Now returns the time of the clock that samples carry, in ns.
func Now() uint64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0
	}
	return uint64(ts.Nano())
}
