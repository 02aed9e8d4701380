package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture/bpfcopy"
)

// copyCost measures what a sample costs the program beyond the same perf event that
// copies no stack, in short pairs as suspendCost does.
func (b *bench) copyCost() {
	r := row{Section: "copy-cost", What: "target's CPU per sample above the same event without a stack copy", Unit: "µs", Bar: "≤ 3 µs"}
	pairs := 600
	if b.quick {
		pairs = 150
	}
	got, err := b.copyPairs(2000, pairs)
	if err != nil {
		r.Failed = err.Error()
	} else {
		r.Value, r.Min, r.Max = medianRange(got.perSample)
		r.Runs = len(got.perSample)
		r.Note = fmt.Sprintf("200 frames deep, in pairs, %.0f samples a second; the spread is where the median is with 95 %%", got.rate)
	}
	b.add(r)
}

func (b *bench) copyPairs(hz float64, pairs int) (*pairResult, error) {
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
	bare, err := bareEvents(uint64(opts.Period))
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, fd := range bare {
			_ = unix.Close(fd)
		}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	sink := &walker{p: p.process}
	go func() { done <- e.Run(ctx, sink) }()
	defer func() { cancel(); <-done }()
	if _, err := p.half(func() {}); err != nil { // it begins
		return nil, err
	}
	without := func() (steadyLine, error) {
		switchEvents(candid, unix.PERF_EVENT_IOC_DISABLE)
		switchEvents(bare, unix.PERF_EVENT_IOC_ENABLE)
		return p.half(func() {})
	}
	with := func() (steadyLine, uint64, error) {
		switchEvents(bare, unix.PERF_EVENT_IOC_DISABLE)
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

// bareEvents opens a clock event for each CPU that is of candid's kind, has no program and
// copies nothing.
func bareEvents(period uint64) (fds []int, err error) {
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Sample: period,
		Sample_type: unix.PERF_SAMPLE_IP | unix.PERF_SAMPLE_TID, Bits: unix.PerfBitDisabled | unix.PerfBitExcludeIdle,
	}
	attr.Size = uint32(unsafe.Sizeof(attr))
	for i := range runtime.NumCPU() {
		fd, err := unix.PerfEventOpen(&attr, -1, i, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err != nil {
			return nil, fmt.Errorf("open a perf event: %w", err)
		}
		// Without a ring to write to it would be stopped at its first sample.
		if _, err := unix.Mmap(fd, 0, 9*os.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED); err != nil {
			return nil, fmt.Errorf("map a perf event's ring: %w", err)
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

// perfEvents are this process's perf events.
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
