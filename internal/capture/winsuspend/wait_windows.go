package winsuspend

import (
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/winsys"
)

// wait waits until due, ns of winsys.Clock, or for a while.
func (s *sampler) wait(due uint64) {
	now := winsys.Clock()
	if due <= now {
		return
	}
	left := min(due-now, uint64(atMost))
	in := -int64(left / 100) // negative: from now on, in units of 100 ns
	set := uintptr(0)
	if s.timer != 0 {
		set, _, _ = setTimer.Call(uintptr(s.timer), uintptr(unsafe.Pointer(&in)), 0, 0, 0, 0)
	}
	if set == 0 {
		_, _ = windows.WaitForSingleObject(s.wake, uint32(left/uint64(time.Millisecond)+1))
		return
	}
	_, _ = windows.WaitForMultipleObjects([]windows.Handle{s.wake, s.timer}, false, windows.INFINITE)
}

var createTimer = windows.NewLazySystemDLL("kernel32.dll").NewProc("CreateWaitableTimerExW")
var setTimer = windows.NewLazySystemDLL("kernel32.dll").NewProc("SetWaitableTimer")

// newTimer makes a timer of high resolution (Windows 10 1803), or an ordinary one.
func newTimer() windows.Handle {
	const highResolution, all = 2, 0x1f0003
	h, _, _ := createTimer.Call(0, 0, highResolution, all)
	if h == 0 {
		h, _, _ = createTimer.Call(0, 0, 0, all)
	}
	return windows.Handle(h)
}

// raise lets the calling thread, which suspends others, run as soon as it wants to, until lower is
// called: if it lost its CPU while a thread is suspended, that thread would stand for as long.
func raise() (lower func()) {
	const normal, timeCritical = 0, 15
	setPriority.Call(uintptr(windows.CurrentThread()), timeCritical)
	return func() { setPriority.Call(uintptr(windows.CurrentThread()), normal) }
}

var setPriority = windows.NewLazySystemDLL("kernel32.dll").NewProc("SetThreadPriority")

// atMost bounds one wait, so that the guard's end and new threads are noticed.
const atMost = 100 * time.Millisecond

// sleepsOn reports whether a thread still sleeps where its last sample found it, and accounts for
// that.
func (s *sampler) sleepsOn(th *thread, now uint64, state capture.State) bool {
	if th.sleep == 0 || th.full.Load() || now <= th.hot && !s.states {
		return false
	}
	if s.states && state != capture.Sleeping || s.exact && s.hasRun(th, now) {
		return false
	}
	if !s.exact && now-th.looked > coldLooks*uint64(s.e.opts.Period) {
		return false
	}
	s.wallAgain(th, now)
	return true
}

// hasRun reads whether a thread has run.
func (s *sampler) hasRun(th *thread, now uint64) bool {
	before := th.cycles
	s.countCycles(th, now)
	return th.cycles != before
}

// wallAgain gives a thread that still sleeps the time since its last sample.
func (s *sampler) wallAgain(th *thread, now uint64) {
	w := s.wallWeight(th, now)
	if w == 0 {
		return
	}
	sm := &sample{th: th, again: true}
	sm.snap.Time, sm.snap.Weight, sm.snap.PID, sm.snap.TID = now, w, uint32(th.proc.pid), th.tid
	sm.snap.Event, sm.snap.State, sm.snap.Sleep = uint16(s.e.wall), capture.Sleeping, th.sleep
	s.ready = append(s.ready, sm)
}

// wallWeight returns the time since a thread's last sample, with what was not taken of earlier ones.
func (s *sampler) wallWeight(th *thread, now uint64) uint64 {
	w := now - min(now, th.wall)
	th.wall = max(now, th.wall)
	return w + th.lost.Swap(0)
}

// wallSample makes a sample of wall time.
func (s *sampler) wallSample(th *thread, t *taken, now uint64, state capture.State) {
	asleep := state == capture.Sleeping
	sp := t.regs.SP()
	th.looked = now
	if asleep && th.sleep != 0 && !th.full.Load() && th.pc == t.regs.PC && th.sp == sp && now > th.hot {
		s.wallAgain(th, now)
		return
	}
	sm := th.snapshot(t, uint16(s.e.wall), state, s.queue.buffer(t.bytes()))
	sm.snap.Weight = s.wallWeight(th, now)
	th.sleep = 0
	if asleep {
		s.sleeps++
		th.sleep, th.pc, th.sp = s.sleeps, t.regs.PC, sp
		sm.snap.Sleep = th.sleep
	}
	th.full.Store(false)
	if sm.snap.Weight == 0 {
		s.queue.free(sm)
		return
	}
	s.ready = append(s.ready, sm)
}
