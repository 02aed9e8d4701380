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

// helper makes calls for others, on a goroutine of its own.
type helper struct {
	local  [1]unix.Iovec // all of what is read
	remote [MaxRanges]unix.RemoteIovec
	n      int    // ranges
	bytes  int    // in all of them
	room   []byte // what is read
	got    int
	err    error

	tid   atomic.Int64
	state atomic.Uint64         // the number of the last call and its state
	stuck atomic.Pointer[Stuck] // of the caller

	handed   *handed   // nil until a call is handed over
	switched *switched // nil until it is switched to
}

// The states of a helper's call.
const (
	busy = iota
	finished
	givenUp
	stateBits = 2
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
	return new(helper)
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
	keep := len(idle.helpers) < mostIdle
	if keep {
		idle.helpers = append(idle.helpers, h)
	}
	idle.Unlock()
	if !keep {
		h.handed.end()
		h.switched.end()
	}
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
	if h.room == nil || len(h.room) < h.bytes {
		h.room = make([]byte, max(h.bytes, 4096))
	}
	h.local[0].Base = &h.room[0]
	h.local[0].SetLen(h.bytes)
	h.tid.Store(int64(tid))
	h.stuck.Store(stuck)
	number := h.state.Load()>>stateBits + 1
	h.state.Store(number<<stateBits | busy)
	if stuck.ends.Load().switches() {
		err = h.switchTo(number)
	} else {
		err = h.handOver(number)
	}
	if err != nil {
		failed = c.ok[0]
		clear(c.to[:h.n])
		clear(c.ok[:h.n])
		c.h = nil
		return 0, failed, err
	}
	left, at := h.got, 0
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

// read makes the call with a number; false if it was given up meanwhile.
func (h *helper) read(number uint64) bool {
	stuck := h.stuck.Load()
	h.got, h.err = unix.ProcessVMReadv(int(h.tid.Load()), h.local[:], h.remote[:h.n], 0)
	if h.err != nil {
		h.got = 0
	}
	if h.state.CompareAndSwap(number<<stateBits|busy, number<<stateBits|finished) {
		return true
	}
	stuck.n.Add(-1)
	allStuck.Add(-1)
	return false
}

// giveUp gives up the call with a number, which counts as stuck until it returns; false if it has
// returned already.
func (h *helper) giveUp(number uint64) bool {
	stuck := h.stuck.Load()
	stuck.n.Add(1)
	allStuck.Add(1)
	if h.state.CompareAndSwap(number<<stateBits|busy, number<<stateBits|givenUp) {
		return true
	}
	stuck.n.Add(-1)
	allStuck.Add(-1)
	return false
}

// look is what is known of a call that takes long.
type look struct {
	number uint64
	first  time.Duration // when it was first looked at
	asleep int           // how many of the last looks found it asleep
}

// tooLong looks at a call and reports whether it is to be given up. It is called again and again, at
// least a tick apart.
func (l *look) tooLong(h *helper, now time.Duration) bool {
	if l.first == 0 {
		l.first = now
	}
	if h.sleeps() {
		l.asleep++
	} else {
		l.asleep = 0
	}
	// The second look makes sure that the thread was not just waiting for a lock.
	return l.asleep >= 2 && (now-l.first >= patience || h.stuck.Load().ends.Load().passed(now))
}

// sleeps reports whether a thread of candid's sleeps in the helper's call. A thread that waits for a
// CPU does not sleep.
func (h *helper) sleeps() bool {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return false
	}
	want := []string{strconv.Itoa(unix.SYS_PROCESS_VM_READV), "0x" + strconv.FormatUint(uint64(h.tid.Load()), 16),
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
