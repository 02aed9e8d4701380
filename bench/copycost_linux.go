package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture/bpfcopy"
	"github.com/candid-profiler/candid/internal/capture/perfevent"
)

// copyCost measures in short pairs, as suspendCost does, what candid's perf events cost the
// program: compared with nothing, and with events that stop it as often and copy no stack.
func (b *bench) copyCost() {
	for _, c := range []struct {
		what, unit, bar string
		hz              float64
		pairs           int
		beside          func(time.Duration) ([]int, func(), error)
	}{
		{"target's CPU per sample above the same event, its registers and kernel chain, without a stack copy", "µs", "≤ 3 µs", 2000, 400, sameEvents},
		{"target's CPU per sample above an event that tells only the pc", "µs", "≤ 3 µs", 2000, 400, bareEvents},
		{"target's CPU per unit of work, candid's perf engine at 99 Hz, short pairs", "% more", "≤ 0.5 %", 99, 600, nil},
		{"target's CPU per unit of work, candid's perf engine at 1 kHz, short pairs", "% more", "≤ 2.5 %", 1000, 300, nil},
	} {
		r := row{Section: "copy-cost", What: c.what, Unit: c.unit, Bar: c.bar}
		if b.quick {
			c.pairs /= 4
		}
		got, err := b.copyPairs(c.hz, c.pairs, c.beside)
		if err != nil {
			r.Failed = err.Error()
			b.add(r)
			continue
		}
		v := got.perSample
		if c.beside == nil {
			v = got.share
		}
		r.Value, r.Min, r.Max = medianRange(v)
		r.Runs = len(v)
		r.Note = fmt.Sprintf("200 frames deep, in pairs, %.0f samples a second; the spread is where the median is with 95 %%", got.rate)
		b.add(r)
	}
}

// copyPairs measures candid's events against others, or against nothing if beside is nil.
func (b *bench) copyPairs(hz float64, pairs int, beside func(time.Duration) ([]int, func(), error)) (*pairResult, error) {
	p, err := b.steady()
	if err != nil {
		return nil, err
	}
	defer p.stop()
	opts := p.options(hz)
	e, err := bpfcopy.Open(opts, bpfcopy.Auto)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	candid := perfEvents()
	if len(candid) == 0 {
		return nil, fmt.Errorf("no perf event of candid's is found")
	}
	// record also sets this for a Java program.
	if err := e.RunsGo(p.pid(), false); err != nil {
		return nil, err
	}
	var others []int
	if beside != nil {
		var end func()
		others, end, err = beside(opts.Period)
		defer end()
		if err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	sink := &walker{p: p.process}
	go func() { done <- e.Run(ctx, sink) }()
	defer func() { cancel(); <-done }()
	if _, err := p.half(func() {}); err != nil { // the engine starts during this half
		return nil, err
	}
	without := func() (steadyLine, error) {
		switchEvents(candid, unix.PERF_EVENT_IOC_DISABLE)
		switchEvents(others, unix.PERF_EVENT_IOC_ENABLE)
		return p.half(func() {})
	}
	with := func() (steadyLine, uint64, error) {
		switchEvents(others, unix.PERF_EVENT_IOC_DISABLE)
		switchEvents(candid, unix.PERF_EVENT_IOC_ENABLE)
		sum, err := p.half(func() {})
		return sum, uint64(sum.cpu / float64(opts.Period)), err
	}
	got, err := pairUp(pairs, with, without)
	if err == nil && sink.count.Load() == 0 {
		err = fmt.Errorf("no sample was taken")
	}
	return got, err
}

// bareEvents opens a clock event for each CPU that is of the same kind as candid's and has no
// program.
func bareEvents(period time.Duration) (fds []int, end func(), err error) {
	return openEvents(period, unix.PerfEventAttr{Sample_type: unix.PERF_SAMPLE_IP | unix.PERF_SAMPLE_TID})
}

// sameEvents opens a clock event for each CPU that records everything that candid's does except for
// the stack.
func sameEvents(period time.Duration) (fds []int, end func(), err error) {
	return openEvents(period, unix.PerfEventAttr{
		Sample_type: unix.PERF_SAMPLE_IP | unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME | unix.PERF_SAMPLE_CPU |
			unix.PERF_SAMPLE_PERIOD | unix.PERF_SAMPLE_CALLCHAIN | unix.PERF_SAMPLE_REGS_USER,
		Bits:             unix.PerfBitExcludeCallchainUser,
		Sample_regs_user: perfevent.RegsMask,
	})
}

// openEvents opens such events. end closes them, also after an error.
func openEvents(period time.Duration, attr unix.PerfEventAttr) (fds []int, end func(), err error) {
	var rings [][]byte
	end = func() {
		for _, ring := range rings { // an event lives as long as it is mapped
			_ = unix.Munmap(ring)
		}
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}
	attr.Type, attr.Config, attr.Sample = unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CPU_CLOCK, uint64(period)
	attr.Bits |= unix.PerfBitDisabled | unix.PerfBitExcludeIdle
	attr.Size = uint32(unsafe.Sizeof(attr))
	for i := range runtime.NumCPU() {
		fd, err := unix.PerfEventOpen(&attr, -1, i, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err != nil {
			return fds, end, fmt.Errorf("open a perf event: %w", err)
		}
		fds = append(fds, fd)
		// Without a ring to write to it would be stopped at its first sample.
		ring, err := unix.Mmap(fd, 0, 9*os.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			return fds, end, fmt.Errorf("map a perf event's ring: %w", err)
		}
		rings = append(rings, ring)
	}
	return fds, end, nil
}

// perfEvents returns this process's perf events.
func perfEvents() (fds []int) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && to == "anon_inode:[perf_event]" {
			if fd, err := strconv.Atoi(e.Name()); err == nil {
				fds = append(fds, fd)
			}
		}
	}
	return fds
}

func switchEvents(fds []int, how uint) {
	for _, fd := range fds {
		_ = unix.IoctlSetInt(fd, how, 0)
	}
}
