package bpfcopy

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/perfevent"
)

// offcpu measures the time that threads are off the CPU.
type offcpu struct {
	coll  *ebpf.Collection
	links []link.Link
	all   *link.Iter // iterates over the threads of all targets
}

// openOffCPU loads the programs for time off the CPU, which use the maps of main.
func openOffCPU(main *ebpf.Collection, opts capture.Options, ev *events, variant Variant, ringSize int, cache *btf.Cache) (*offcpu, error) {
	a, err := openOffCPUWith(main, opts, ev, variant, ringSize, cache, false)
	if err == nil || errors.Is(err, capture.ErrPermission) {
		return a, err
	}
	a, second := openOffCPUWith(main, opts, ev, variant, ringSize, cache, true)
	if second != nil {
		return nil, fmt.Errorf("watch threads sleep: %w: this kernel has neither the tracepoint sched_exit_tp (Linux 6.14) nor kprobes: %w",
			capture.ErrUnsupported, err)
	}
	return a, nil
}

func openOffCPUWith(main *ebpf.Collection, opts capture.Options, ev *events, variant Variant, ringSize int, cache *btf.Cache, probe bool) (*offcpu, error) {
	spec, err := loadOffcpu()
	if err != nil {
		return nil, fmt.Errorf("read the BPF programs built into candid: %w", err)
	}
	names := map[string]bool{"on_leave": true, "on_birth": true, "each": true}
	back := "back_"
	if probe {
		back = "back_probe_"
	}
	if variant == Sized {
		back += "sized"
	} else {
		back += "exact"
	}
	names[back] = true
	for name := range spec.Programs {
		if !names[name] {
			delete(spec.Programs, name)
		}
	}
	if err := configure(spec, opts, ringSize); err != nil {
		return nil, err
	}
	var min, wall uint64
	if ev.off >= 0 {
		min = uint64(opts.LeastSleep())
	}
	if ev.wall >= 0 {
		wall = uint64(opts.Period)
	}
	for name, value := range map[string]uint64{"min_sleep": min, "wall_period": wall} {
		if err := spec.Variables[name].Set(value); err != nil {
			return nil, fmt.Errorf("set %s of the BPF programs: %w", name, err)
		}
	}
	use := map[string]*ebpf.Map{}
	for _, name := range shared {
		use[name] = main.Maps[name]
	}
	if ev.wall >= 0 {
		use["aways"] = main.Maps["aways"]
	}
	coll, err := newCollection(spec, use, cache)
	if err != nil {
		return nil, loadError(err)
	}
	a := &offcpu{coll: coll}
	if err := a.attach(back, probe); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// switchers are the names that compilers give the function that ends a context switch.
var switchers = []string{"finish_task_switch", "finish_task_switch.isra.0", "finish_task_switch.constprop.0"}

func (a *offcpu) attach(back string, probe bool) error {
	attach := func(name string) error {
		l, err := link.AttachTracing(link.TracingOptions{Program: a.coll.Programs[name]})
		if err != nil {
			return loadError(fmt.Errorf("attach %s: %w", name, err))
		}
		a.links = append(a.links, l)
		return nil
	}
	for _, name := range []string{"on_birth", "on_leave"} {
		if err := attach(name); err != nil {
			return err
		}
	}
	var err error
	if a.all, err = link.AttachIter(link.IterOptions{Program: a.coll.Programs["each"]}); err != nil {
		return loadError(fmt.Errorf("attach each: %w", err))
	}
	if !probe {
		return attach(back)
	}
	for _, symbol := range switchers {
		l, failed := link.Kprobe(symbol, a.coll.Programs[back], nil)
		if failed == nil {
			a.links = append(a.links, l)
			return nil
		}
		err = cmp.Or(err, failed)
	}
	return loadError(fmt.Errorf("attach %s: %w", back, err))
}

// start begins to count time off the CPU, also for threads that are already asleep.
func (a *offcpu) start() error {
	if a == nil {
		return nil
	}
	if err := a.coll.Variables["started"].Set(perfevent.Now()); err != nil {
		return fmt.Errorf("begin to watch threads sleep: %w", err)
	}
	return a.each(func([]byte) {})
}

// each calls f with a record of every thread of the targets, and makes candid
// follow those that it does not follow yet.
func (a *offcpu) each(f func(look []byte)) error {
	r, err := a.all.Open()
	if err != nil {
		return fmt.Errorf("go over the targets' threads: %w", err)
	}
	defer r.Close()
	var b [256 * lookSize]byte
	have := 0
	for {
		n, err := r.Read(b[have:])
		have += n
		used := 0
		for ; have-used >= lookSize; used += lookSize {
			f(b[used : used+lookSize])
		}
		have = copy(b[:], b[used:have])
		if errors.Is(err, io.EOF) || n == 0 && err == nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("go over the targets' threads: %w", err)
		}
	}
}

func (a *offcpu) close() {
	if a == nil {
		return
	}
	for _, l := range a.links {
		_ = l.Close()
	}
	if a.all != nil {
		_ = a.all.Close()
	}
	a.coll.Close()
}
