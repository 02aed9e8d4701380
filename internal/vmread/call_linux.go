package vmread

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// MaxRanges is UIO_MAXIOV of include/uapi/linux/uio.h.
	MaxRanges = 1024
	// MaxBytes bounds a call, so that a long read does not hold the target's mmap lock for long.
	MaxBytes = 1 << 20

	patience  = 500 * time.Millisecond // how long a call may sleep
	tick      = 20 * time.Millisecond  // between two looks at a call that takes long
	mostStuck = 16                     // helpers that are given up and have not returned, in all
	mostIdle  = 4                      // helpers that wait for calls

	// MostStuck is how many calls of one user may be given up, without returning, before it should
	// make no more.
	MostStuck = 4

	keptBytes = 64 << 10 // of memory that an idle helper keeps
)

// Call is one call of process_vm_readv for several ranges. It is used by one goroutine at a time.
// The zero value is ready for Add.
type Call struct {
	h  *helper
	to [MaxRanges][]byte
	ok [MaxRanges]*bool
}

// helper makes calls for others.
type helper struct {
	local  [MaxRanges]unix.Iovec
	remote [MaxRanges]unix.RemoteIovec
	n      int // ranges
	bytes  int // in all of them
	tid    int
	room   []byte // what is read
	got    int
	err    error

	begin chan struct{}
	done  chan struct{}
	timer *time.Timer
	state atomic.Int32
	stuck *Stuck // of the caller that gave up
}

// The states of a helper.
const (
	busy = iota
	finished
	givenUp
)

// Stuck counts the calls of one user that were given up and have not returned.
type Stuck struct {
	n    atomic.Int32
	ends atomic.Pointer[Ends]
}

// End makes the calls of this user be given up when ends says so.
func (s *Stuck) End(ends *Ends) { s.ends.Store(ends) }

// Count returns how many there are.
func (s *Stuck) Count() int { return int(s.n.Load()) }

// allStuck counts those of all users.
var allStuck atomic.Int32

// idle are helpers that wait for calls.
var idle struct {
	sync.Mutex
	helpers []*helper
}

func newHelper() *helper {
	idle.Lock()
	defer idle.Unlock()
	if n := len(idle.helpers); n > 0 {
		h := idle.helpers[n-1]
		idle.helpers = idle.helpers[:n-1]
		return h
	}
	h := &helper{begin: make(chan struct{}), done: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	h.timer.Stop()
	go h.serve()
	return h
}

// Free gives the helper back. The Call can be used again.
func (c *Call) Free() {
	if c.h == nil {
		return
	}
	c.forget()
	h := c.h
	if c.h = nil; len(h.room) > keptBytes {
		h.room = nil
	}
	idle.Lock()
	defer idle.Unlock()
	if len(idle.helpers) < mostIdle {
		idle.helpers = append(idle.helpers, h)
		return
	}
	close(h.begin)
}

// Add adds a range that is to be read into to, and whose ok is to be set when all of it was read;
// false if there is no room for it.
func (c *Call) Add(addr uint64, to []byte, ok *bool) bool {
	if c.h == nil {
		c.h = newHelper()
	}
	h := c.h
	if h.n == MaxRanges || h.bytes+len(to) > MaxBytes {
		return false
	}
	h.remote[h.n] = unix.RemoteIovec{Base: uintptr(addr), Len: len(to)}
	c.to[h.n], c.ok[h.n] = to, ok
	h.n++
	h.bytes += len(to)
	return true
}

// Len returns how many ranges were added.
func (c *Call) Len() int {
	if c.h == nil {
		return 0
	}
	return c.h.n
}

// Do reads the ranges from the memory of the thread tid's process and forgets them. A call ends at
// the first address that cannot be read: failed is the ok of the first range that was not read
// completely, nil if there is none. The error is a unix.Errno, ErrTooMany or
// ErrGivenUp; with the last one nothing is written to any buffer any more.
func (c *Call) Do(tid int, stuck *Stuck) (failed *bool, err error) {
	_, failed, err = c.do(tid, stuck)
	return failed, err
}

func (c *Call) do(tid int, stuck *Stuck) (got int, failed *bool, err error) {
	h := c.h
	if h == nil || h.n == 0 {
		return 0, nil, nil
	}
	if allStuck.Load() >= mostStuck {
		failed = c.ok[0]
		c.forget()
		return 0, failed, ErrTooMany
	}
	if len(h.room) < h.bytes {
		h.room = make([]byte, max(h.bytes, 4096))
	}
	at := 0
	for i := range h.n {
		size := h.remote[i].Len
		if h.local[i].Base = nil; size > 0 {
			h.local[i].Base = &h.room[at]
		}
		h.local[i].SetLen(size)
		at += size
	}
	h.tid, h.stuck = tid, stuck
	h.state.Store(busy)
	h.begin <- struct{}{}
	if !h.wait() {
		failed = c.ok[0]
		clear(c.to[:h.n])
		clear(c.ok[:h.n])
		c.h = nil
		return 0, failed, ErrGivenUp
	}
	left := h.got
	at = 0
	for i := range h.n {
		size := len(c.to[i])
		n := copy(c.to[i], h.room[at:at+min(size, left)])
		left -= n
		at += size
		if n < size {
			failed = c.ok[i]
			break
		}
		*c.ok[i] = true
	}
	c.forget()
	return h.got, failed, h.err
}

// forget drops what was added.
func (c *Call) forget() {
	h := c.h
	clear(c.to[:h.n])
	clear(c.ok[:h.n])
	h.n, h.bytes = 0, 0
}

// serve makes calls until one of them is given up.
func (h *helper) serve() {
	for range h.begin {
		h.got, h.err = unix.ProcessVMReadv(h.tid, h.local[:h.n], h.remote[:h.n], 0)
		if h.err != nil {
			h.got = 0
		}
		if !h.state.CompareAndSwap(busy, finished) {
			h.stuck.n.Add(-1)
			allStuck.Add(-1)
			return
		}
		h.done <- struct{}{}
	}
}

// wait waits for the end of a call; false if it was given up.
func (h *helper) wait() bool {
	var begin time.Duration
	asleep := 0
	h.timer.Reset(tick)
	for {
		select {
		case <-h.done:
			h.timer.Stop()
			return true
		case <-h.timer.C:
		}
		now := time.Since(began)
		if begin == 0 {
			begin = now
		}
		if h.sleeps() {
			asleep++
		} else {
			asleep = 0
		}
		// The second look makes sure that the thread was not just waiting for a lock.
		if asleep >= 2 && (now-begin >= patience || h.stuck.ends.Load().passed(now)) {
			h.stuck.n.Add(1)
			allStuck.Add(1)
			if h.state.CompareAndSwap(busy, givenUp) {
				return false
			}
			h.stuck.n.Add(-1)
			allStuck.Add(-1)
			<-h.done
			return true
		}
		h.timer.Reset(tick)
	}
}

// sleeps reports whether a thread of candid's sleeps in the helper's call. A thread that waits for a
// CPU does not sleep.
func (h *helper) sleeps() bool {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return false
	}
	want := []string{strconv.Itoa(unix.SYS_PROCESS_VM_READV), "0x" + strconv.FormatUint(uint64(h.tid), 16),
		"0x" + strconv.FormatUint(uint64(uintptr(unsafe.Pointer(&h.local[0]))), 16)}
	for _, t := range tasks {
		b, err := os.ReadFile("/proc/self/task/" + t.Name() + "/syscall")
		if err != nil {
			continue
		}
		if f := strings.Fields(string(b)); len(f) > 3 && f[0] == want[0] && f[1] == want[1] && f[2] == want[2] {
			return true
		}
	}
	return false
}

// Some reads as much as it can of a process's memory from an address on, and returns how many bytes
// it read.
func Some(pid int, to []byte, addr uint64, stuck *Stuck) int {
	if stuck.Count() >= MostStuck {
		return 0
	}
	c := calls.Get().(*Call)
	defer calls.Put(c)
	defer c.Free()
	for n := 0; n < len(to); {
		ok := false
		c.Add(addr+uint64(n), to[n:min(len(to), n+MaxBytes)], &ok)
		got, _, _ := c.do(pid, stuck)
		if n += got; !ok {
			return n
		}
	}
	return len(to)
}

// calls are kept: a Call takes 32 KiB.
var calls = sync.Pool{New: func() any { return new(Call) }}
