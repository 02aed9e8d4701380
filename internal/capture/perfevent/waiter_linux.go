package perfevent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Waiter sleeps until a ring is to be read, a process ends, or a context does.
type Waiter struct {
	epoll, wake, timer int

	// file is the epoll descriptor for Go's own poller: a goroutine that sleeps there costs
	// nothing, while one in a system call keeps the runtime's monitor thread active, which costs
	// some 200 µs for each sleep. The timeout is a descriptor too: a Go deadline would make each
	// Wait wake the thread that sleeps in the poller, to make it sleep shorter.
	file   *os.File
	raw    syscall.RawConn
	events [16]unix.EpollEvent

	mu    sync.Mutex // guards procs
	procs map[int32]int
}

// NewWaiter returns a Waiter that waits for nothing yet.
func NewWaiter() (*Waiter, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("wait for samples: %w", err)
	}
	ev, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(ep)
		return nil, fmt.Errorf("wait for samples: %w", err)
	}
	w := &Waiter{epoll: ep, wake: ev, timer: -1, procs: map[int32]int{}}
	if err := unix.SetNonblock(ep, true); err == nil {
		w.file = os.NewFile(uintptr(ep), "epoll")
		if w.raw, err = w.file.SyscallConn(); err != nil || w.file.SetReadDeadline(time.Time{}) != nil {
			w.raw = nil
		}
	}
	if err := w.add(ev, unix.EPOLLIN); err != nil {
		w.Close()
		return nil, err
	}
	if w.raw == nil {
		return w, nil
	}
	if w.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err == nil {
		// Each expiry is an edge, so that the timer need not be read.
		err = w.add(w.timer, unix.EPOLLIN|unix.EPOLLET)
	}
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("wait for samples: %w", err)
	}
	return w, nil
}

func (w *Waiter) add(fd int, events uint32) error {
	e := unix.EpollEvent{Events: events, Fd: int32(fd)}
	if err := unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return fmt.Errorf("wait for samples: %w", err)
	}
	return nil
}

// Add also waits for a ring: only for what the kernel thinks worth a wakeup, not for every byte in
// it.
func (w *Waiter) Add(fd int) error { return w.add(fd, unix.EPOLLIN|unix.EPOLLET) }

// AddProcess also waits for the end of a process. If the kernel cannot report that (before 5.3),
// the caller must check for it.
func (w *Waiter) AddProcess(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EMFILE):
		return nil
	case errors.Is(err, unix.ESRCH):
		return fmt.Errorf("there is no process %d: %w", pid, err)
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
		return fmt.Errorf("%d is a thread, not a process: %w", pid, err)
	case err != nil:
		return fmt.Errorf("watch process %d: %w", pid, err)
	}
	w.mu.Lock()
	w.procs[int32(fd)] = pid
	w.mu.Unlock()
	if err := w.add(fd, unix.EPOLLIN); err != nil {
		_ = unix.Close(fd)
		return err
	}
	return nil
}

// WakeOn makes Wait return when ctx ends; the returned function undoes that. It must be called
// before the first Wait, but after candid has started the programs that it starts.
func (w *Waiter) WakeOn(ctx context.Context) func() bool {
	easeWatcher()
	return context.AfterFunc(ctx, w.Wake)
}

// Wake makes Wait return, and each further Wait too.
func (w *Waiter) Wake() { _, _ = unix.Write(w.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// Wait sleeps for at most d and returns the processes that have ended.
func (w *Waiter) Wait(d time.Duration) (gone []int, err error) {
	n, err := w.poll(d)
	if err != nil {
		if errors.Is(err, unix.EINTR) {
			return nil, nil
		}
		return nil, fmt.Errorf("wait for samples: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events[:n] {
		if pid, ok := w.procs[e.Fd]; ok {
			gone = append(gone, pid)
			delete(w.procs, e.Fd)
			_ = unix.Close(int(e.Fd))
		}
	}
	return gone, nil
}

// poll waits for events.
func (w *Waiter) poll(d time.Duration) (n int, err error) {
	if w.raw == nil {
		return unix.EpollWait(w.epoll, w.events[:], int(d.Milliseconds()))
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(d.Nanoseconds(), 1))} // 0 would mean never
	if err := unix.TimerfdSettime(w.timer, 0, &spec, nil); err != nil {
		return 0, err
	}
	closed := w.raw.Read(func(fd uintptr) bool {
		n, err = unix.EpollWait(int(fd), w.events[:], 0)
		return n > 0 || err != nil
	})
	return n, cmp.Or(err, closed)
}

// Close closes everything that the Waiter opened itself.
func (w *Waiter) Close() {
	if w == nil {
		return
	}
	if w.file != nil {
		_ = w.file.Close()
	} else {
		_ = unix.Close(w.epoll)
	}
	_ = unix.Close(w.wake)
	if w.timer >= 0 {
		_ = unix.Close(w.timer)
	}
	for fd := range w.procs {
		_ = unix.Close(int(fd))
	}
	w.procs = nil
}
