package bpfcopy

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/perfevent"
)

// points are the events that are neither a CPU's clock nor time off the CPU: counters, tracepoints
// and probes.
type points struct {
	coll         *ebpf.Collection // nil if there are only counters
	point, probe *ebpf.Program
	fds          []int // of events, and of the links of programs to them
	events       []int // the descriptors in fds of events that are started and stopped
}

// eventBits is how many bits of a cookie hold the event's index.
const eventBits = 16

// loadPoints loads the programs for tracepoints and probes, which use the maps of main.
func loadPoints(main *ebpf.Collection, opts capture.Options, ev *events, variant Variant, ringSize int, cache *btf.Cache) (*points, error) {
	p := &points{}
	names := map[string]**ebpf.Program{}
	kind := "exact"
	if variant == Sized {
		kind = "sized"
	}
	for _, i := range ev.points {
		switch opts.Events[i].Kind {
		case capture.Tracepoint:
			names["point_"+kind] = &p.point
		case capture.Probe:
			names["probe_"+kind] = &p.probe
		}
	}
	if len(names) == 0 {
		return p, nil
	}
	spec, err := loadProbe()
	if err != nil {
		return nil, fmt.Errorf("read the BPF programs built into candid: %w", err)
	}
	for name := range spec.Programs {
		if names[name] == nil {
			delete(spec.Programs, name)
		}
	}
	if err := configure(spec, opts, ringSize); err != nil {
		return nil, err
	}
	use := map[string]*ebpf.Map{}
	for _, name := range shared {
		use[name] = main.Maps[name]
	}
	if p.coll, err = newCollection(spec, use, cache); err != nil {
		return nil, loadError(err)
	}
	for name, to := range names {
		*to = p.coll.Programs[name]
	}
	return p, nil
}

// open opens the events in stopped state.
func (p *points) open(opts capture.Options, ev *events, sample, count *ebpf.Program, cpus []int) error {
	for _, i := range ev.points {
		e := opts.Events[i]
		var a perfevent.Attr
		a.For(e, opts.Period)
		switch e.Kind {
		case capture.Counter:
			prog, cookie := sample, uint64(i)
			if everyHit(e) {
				prog, cookie = count, cookie|uint64(opts.Period)<<eventBits
				a.Freq, a.Period = 0, hitEvery(e)
			}
			for _, cpu := range cpus {
				if err := p.add(a, -1, cpu, prog, cookie); err != nil {
					return err
				}
			}
		case capture.Tracepoint:
			id, err := perfevent.TracepointID(e.Point)
			if err != nil {
				return err
			}
			// One event stands for all CPUs: the program runs on whichever CPU reaches the point.
			a.Config, a.Period = id, 1
			if err := p.add(a, -1, cpus[0], p.point, uint64(i)|max(e.Period, 1)<<eventBits); err != nil {
				return err
			}
		}
	}
	return nil
}

// addProcess sets the probes in a process.
func (p *points) addProcess(pid int, opts capture.Options, ev *events, running bool) error {
	if p == nil {
		return nil
	}
	for _, i := range ev.points {
		e := opts.Events[i]
		if e.Kind != capture.Probe {
			continue
		}
		place, err := perfevent.FindPlace(pid, e.Place)
		if err != nil {
			return err
		}
		var a perfevent.Attr
		a.For(e, opts.Period)
		a.Place, a.Period, a.Inherit = place, 1, opts.Children
		n := len(p.events)
		err = p.add(a, pid, -1, p.probe, uint64(i)|max(e.Period, 1)<<eventBits)
		_ = place.File.Close()
		if err != nil {
			return err
		}
		if running {
			if err := perfevent.Enable(p.events[n]); err != nil {
				return fmt.Errorf("start %s in process %d: %w", e.Name, pid, err)
			}
		}
	}
	return nil
}

func (p *points) add(a perfevent.Attr, pid, cpu int, prog *ebpf.Program, cookie uint64) error {
	fd, err := perfevent.Open(a, pid, cpu)
	if err != nil {
		return err
	}
	p.fds, p.events = append(p.fds, fd), append(p.events, fd)
	l, err := attachEvent(prog, fd, cookie)
	if err != nil {
		return fmt.Errorf("put the BPF program on the event %s: %w", a.Name, err)
	}
	p.fds = append(p.fds, l)
	return nil
}

func (p *points) start() error {
	if p == nil {
		return nil
	}
	for _, fd := range p.events {
		if err := perfevent.Enable(fd); err != nil {
			return fmt.Errorf("start an event: %w", err)
		}
	}
	return nil
}

func (p *points) stop() {
	if p == nil {
		return
	}
	for _, fd := range p.events {
		_ = unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_DISABLE, 0)
	}
}

func (p *points) close() {
	if p == nil {
		return
	}
	// The links were made last and are closed first.
	for i := len(p.fds) - 1; i >= 0; i-- {
		_ = unix.Close(p.fds[i])
	}
	p.fds, p.events = nil, nil
	if p.coll != nil {
		p.coll.Close()
	}
}
