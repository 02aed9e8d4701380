package perfevent

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
)

// Timers are the sampling events of a machine, one per CPU, whose periods are redrawn from time to
// time so that they do not run in lockstep with anything.
//
// To change a period, the kernel restarts the timer, so that the time since the last tick is not
// sampled: half a period on average. That time is added to the weight of the next tick.
type Timers struct {
	kind  capture.EventKind
	base  time.Duration // between samples, of CPU time
	asked time.Duration // base as requested
	list  []timer
	byCPU []int32 // index into list, -1 for none
}

// regime is a time in which a CPU's period stayed the same.
type regime struct {
	since  uint64 // ns, CLOCK_MONOTONIC
	period uint64
	carry  uint64 // time before since that no tick stands for, ns
}

// regimes is how many regimes are kept: samples are read later than they were taken.
const regimes = 4

type timer struct {
	fd, cpu int
	due     uint64 // when the next period is drawn
	ticked  bool   // a sample came since the last draw
	past    [regimes]regime
}

// OpenTimers opens an event per CPU, disabled. The caller uses the descriptors, Close closes them.
func OpenTimers(a Attr, cpus []int, period time.Duration) (*Timers, error) {
	t := &Timers{kind: a.Kind, base: period, asked: period, byCPU: make([]int32, slices.Max(cpus)+1)}
	for i := range t.byCPU {
		t.byCPU[i] = -1
	}
	for _, c := range cpus {
		if a.Kind == capture.CPUTime {
			a.Period = uint64(capture.Jitter(period))
		}
		fd, err := Open(a, -1, c)
		if err != nil {
			t.Close()
			return nil, err
		}
		tm := timer{fd: fd, cpu: c}
		tm.past[0].period = a.Period
		t.byCPU[c] = int32(len(t.list))
		t.list = append(t.list, tm)
	}
	return t, nil
}

// Each calls f with every CPU's event.
func (t *Timers) Each(f func(cpu, fd int) error) error {
	for i := range t.list {
		if err := f(t.list[i].cpu, t.list[i].fd); err != nil {
			return err
		}
	}
	return nil
}

// Start starts the events. Their phases differ by their start and, soon, by their periods.
func (t *Timers) Start() error {
	for i := range t.list {
		tm := &t.list[i]
		if t.base != t.asked && t.kind == capture.CPUTime { // begin slowly
			period := uint64(capture.Jitter(t.base))
			if err := setPeriod(tm.fd, period); err != nil {
				return fmt.Errorf("set the sampling period of cpu %d: %w", tm.cpu, err)
			}
			tm.past[0].period = period
		}
		if err := Enable(tm.fd); err != nil {
			return fmt.Errorf("start the perf event of cpu %d: %w", tm.cpu, err)
		}
		now := Now()
		tm.past[0].since, tm.past[0].carry = now, 0
		tm.due = now + t.interval()
	}
	return nil
}

// Stop stops the events.
func (t *Timers) Stop() {
	for i := range t.list {
		_ = unix.IoctlSetInt(t.list[i].fd, unix.PERF_EVENT_IOC_DISABLE, 0)
	}
}

// interval returns how long a period stays, in ns: at least a hundred ticks, so that restarting
// costs little, and not the same for all CPUs.
func (t *Timers) interval() uint64 {
	least := max(500*time.Millisecond, 100*t.base)
	return uint64(float64(least) * (1 + rand.Float64()/2))
}

// Retune draws new periods when it is time. CPUs that took no sample since the last draw are left
// alone, so that they can sleep.
func (t *Timers) Retune(now uint64) error {
	if t.kind != capture.CPUTime {
		return nil // a counter's phase drifts by itself
	}
	for i := range t.list {
		tm := &t.list[i]
		if now < tm.due || !tm.ticked {
			continue
		}
		period := uint64(capture.Jitter(t.base))
		before := Now()
		if err := setPeriod(tm.fd, period); err != nil {
			return fmt.Errorf("change the sampling period of cpu %d: %w", tm.cpu, err)
		}
		since := before + (Now()-before)/2
		// The timer ticked at exact multiples of its period.
		last := tm.past[0]
		carry := since - last.since
		if carry >= last.period {
			carry %= last.period
		} else {
			carry += last.carry // there was not one tick in between
		}
		copy(tm.past[1:], tm.past[:regimes-1])
		tm.past[0] = regime{since: since, period: period, carry: carry}
		tm.due, tm.ticked = now+t.interval(), false
	}
	return nil
}

// Slow makes the next Retune lengthen the periods to that many times the requested one. The weight
// of a sample follows from when it was taken.
func (t *Timers) Slow(times int) {
	t.base = t.asked * time.Duration(max(times, 1))
	for i := range t.list {
		t.list[i].due = 0
	}
}

// setPeriod changes an event's period; the kernel takes a pointer to it.
func setPeriod(fd int, period uint64) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.PERF_EVENT_IOC_PERIOD, uintptr(unsafe.Pointer(&period)))
	if errno != 0 {
		return errno
	}
	return nil
}

// Weight returns what a sample of this CPU and time stands for, in ns. It applies to CPUTime: the
// samples of a counter carry their own weight.
func (t *Timers) Weight(cpu uint32, at uint64) uint64 {
	if int(cpu) >= len(t.byCPU) || t.byCPU[cpu] < 0 {
		return uint64(t.base)
	}
	tm := &t.list[t.byCPU[cpu]]
	tm.ticked = true
	for i := range tm.past {
		r := &tm.past[i]
		if at < r.since && i+1 < regimes && tm.past[i+1].period != 0 {
			continue
		}
		if r.carry != 0 && at-r.since < r.period+r.period/2 {
			return r.period + r.carry
		}
		return r.period
	}
	return uint64(t.base)
}

// Close closes the events.
func (t *Timers) Close() {
	for i := range t.list {
		_ = unix.Close(t.list[i].fd)
	}
	t.list = nil
}
