package winsuspend

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/windows"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/winsys"
)

// Stopper copies single threads of processes, as the engine does. It is used from one goroutine.
type Stopper struct {
	watch   *watchman
	objects bool
	stopper *stopper
	open    map[int]*process
}

// Copied is a thread as it was at one moment.
type Copied struct {
	capture.Snapshot               // its slices are the caller's
	Stood            time.Duration // how long the thread was suspended
	Waits            bool          // it was waiting
	Ready            bool          // it waited for a CPU only
	Suspended        bool          // others had suspended it
}

// NewStopper makes a Stopper. The error wraps capture.ErrUnsupported where threads cannot be
// suspended.
func NewStopper() (*Stopper, error) {
	if err := supported(); err != nil {
		return nil, err
	}
	s := &Stopper{open: map[int]*process{}}
	var err error
	if s.watch, err = newWatchman(); err != nil {
		return nil, err
	}
	if s.objects = haveStateChange() && os.Getenv("CANDID_GUARD") == ""; !s.objects {
		if err = s.watch.start(); err == nil {
			err = s.watch.await()
		}
	}
	if err != nil {
		s.watch.close()
		return nil, err
	}
	s.stopper = newStopper(largestStack, s.objects)
	return s, nil
}

// Close releases what the Stopper holds, and ends the guard.
func (s *Stopper) Close() {
	for _, p := range s.open {
		p.close()
	}
	clear(s.open)
	s.stopper.close()
	s.watch.close()
}

// copy copies a thread. A copy during which the guard let go of the thread is made again.
func (s *Stopper) copy(th *thread, out *taken, took func(ns uint64)) (v verdict) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	lower := raise()
	defer lower()
	for range mostVoid {
		if v = s.stopper.copyThread(th, s.watch, out, took); v != void {
			break
		}
	}
	return v
}

// mostVoid is how many copies of a thread may be void until it is given up.
const mostVoid = 10

// errStarved says that the guard let go of a thread before it was copied, each time.
var errStarved = errors.New("candid gets no CPU while it has the thread suspended, so the guard lets go of it: the machine is too busy")

// errElsewhere says that a thread's stack was not found.
var errElsewhere = errors.New("it is on a stack that is not known")

// Copy suspends a thread for a copy and resumes it. The error wraps target.ErrNoProcess if it has
// ended, or is one of target.Open.
func (s *Stopper) Copy(pid int, tid uint32) (*Copied, error) {
	if pid == os.Getpid() {
		return nil, fmt.Errorf("copy thread %d of process %d: it is candid itself, which cannot suspend the thread that copies: %w", tid, pid, capture.ErrUnsupported)
	}
	p := s.open[pid]
	if p == nil {
		var err error
		if p, err = openProcess(pid); err != nil {
			return nil, err
		}
		s.open[pid] = p
	}
	if s.watch.gone() {
		if err := s.watch.start(); err != nil {
			return nil, err
		}
		if err := s.watch.await(); err != nil {
			return nil, err
		}
	}
	th, err := p.openThread(tid, s.objects)
	switch {
	case errors.Is(err, windows.ERROR_INVALID_PARAMETER):
		return nil, fmt.Errorf("copy thread %d of process %d: %w", tid, pid, target.ErrNoProcess)
	case err != nil:
		return nil, fmt.Errorf("copy thread %d of process %d: %w", tid, pid, err)
	}
	defer th.close()
	if of, _, _ := processOf.Call(uintptr(th.handle)); int(of) != pid {
		return nil, fmt.Errorf("copy thread %d of process %d: it is another process's now: %w", tid, pid, target.ErrNoProcess)
	}
	suspends, _ := winsys.SuspendCount(th.handle)
	c := &Copied{Suspended: suspends > 0}
	now, told := winsys.ThreadNow(th.handle)
	var t taken
	v := s.copy(th, &t, func(ns uint64) { c.Stood += time.Duration(ns) })
	switch v {
	case void:
		return nil, fmt.Errorf("copy thread %d of process %d: %w", tid, pid, errStarved)
	case refused:
		return nil, fmt.Errorf("copy thread %d of process %d: %w", tid, pid, target.ErrNoProcess)
	case unread:
		return nil, fmt.Errorf("copy thread %d of process %d: its registers cannot be read", tid, pid)
	case elsewhere:
		return nil, fmt.Errorf("copy thread %d of process %d: %w", tid, pid, errElsewhere)
	}
	c.Snapshot = th.snapshot(&t, 0, capture.Running, nil).snap
	c.Waits = p.waits.holds(p, t.regs.PC)
	if told {
		state := stateOf(&now)
		c.Waits, c.Ready = state == capture.Sleeping, state == capture.Runnable
	}
	return c, nil
}

var processOf = windows.NewLazySystemDLL("kernel32.dll").NewProc("GetProcessIdOfThread")
