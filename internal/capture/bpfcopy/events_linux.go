package bpfcopy

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
)

// events are Options.Events, sorted by how they are sampled.
type events struct {
	ticks []uint16 // events that a CPU's clock samples: cpu, and the running part of wall
	wall  int      // index, -1 if not requested
	off   int      // the same
	// points are the indices of counters, tracepoints and probes.
	points []int
}

// sortEvents decides how each requested event is sampled.
func sortEvents(opts capture.Options) (*events, error) {
	list := opts.Events
	ev := &events{wall: -1, off: -1}
	if len(list) == 0 {
		ev.ticks = []uint16{0}
	}
	for i, e := range list {
		switch e.Kind {
		case capture.CPUTime:
			ev.ticks = append(ev.ticks, uint16(i))
		case capture.Wall:
			ev.ticks = append(ev.ticks, uint16(i))
			ev.wall = i
		case capture.OffCPU:
			ev.off = i
		case capture.Probe:
			if opts.All {
				return nil, fmt.Errorf("sample the whole machine by %s: %w, %w: a probe is put into the processes that are named; use -p or -- COMMAND",
					e.Name, capture.ErrUnsupported, capture.ErrNoEvent)
			}
			ev.points = append(ev.points, i)
		default:
			ev.points = append(ev.points, i)
		}
	}
	return ev, nil
}

// everyHit reports whether a program runs at the hits of a counter and counts off the period
// itself: the kernel does not do that well for its software counters.
func everyHit(e capture.Event) bool {
	return e.Kind == capture.Counter && e.Type == capture.TypeSoftware && e.Period == 0
}

// hitEvery returns the number of hits between two runs of the program. Page faults may be so many
// that a run at each would be noticed: the program runs at one in eight, and the weights are right
// on average.
func hitEvery(e capture.Event) uint64 {
	const pageFaults, minorFaults = 2, 5 // PERF_COUNT_SW_PAGE_FAULTS and _MIN
	if e.Config == pageFaults || e.Config == minorFaults {
		return 8
	}
	return 1
}

// counts reports whether any event is counted at every hit.
func (ev *events) counts(opts capture.Options) bool {
	return slices.ContainsFunc(ev.points, func(i int) bool { return everyHit(opts.Events[i]) })
}

// describe returns what is sampled, for people.
func (ev *events) describe(opts capture.Options) string {
	var parts []string
	if len(ev.ticks) > 0 {
		parts = append(parts, fmt.Sprintf("cpu-clock, %.4g Hz per CPU", 1/opts.Period.Seconds()))
	}
	if ev.wall >= 0 {
		parts = append(parts, "and the scheduler's switches")
	}
	if ev.off >= 0 {
		parts = append(parts, "sleeps of "+opts.LeastSleep().String()+" and longer one by one")
	}
	for _, i := range ev.points {
		e := opts.Events[i]
		switch {
		case e.Kind == capture.Counter && e.Period == 0:
			parts = append(parts, fmt.Sprintf("%s, about %.4g Hz per CPU", e.Name, 1/opts.Period.Seconds()))
		case e.Period > 1:
			parts = append(parts, fmt.Sprintf("each %dth of %s", e.Period, e.Name))
		default:
			parts = append(parts, "each "+e.Name)
		}
	}
	return strings.Join(parts, "; ")
}

// attachEvent attaches a program to a perf event: the program gets cookie with each call. Closing
// the returned link detaches it.
func attachEvent(prog *ebpf.Program, event int, cookie uint64) (fd int, err error) {
	const linkCreate, perfEvent = 28, 41 // BPF_LINK_CREATE, BPF_PERF_EVENT of linux/bpf.h
	attr := struct {
		prog, target, kind, flags uint32
		cookie                    uint64
	}{uint32(prog.FD()), uint32(event), perfEvent, 0, cookie}
	n, _, errno := unix.Syscall(unix.SYS_BPF, linkCreate, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}
