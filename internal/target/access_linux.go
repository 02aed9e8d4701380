package target

import (
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/vmread"
)

// vmAccess reads by process_vm_readv, or by /proc/PID/mem if that system call is not available:
// container runtimes filter it more often than the file.
type vmAccess struct {
	tid   int // a living thread of the process
	pidfd int // not owned
	mem   int // /proc/PID/mem, -1 while process_vm_readv works
	p     *Process
	let   bool // the process has released its memory
	stuck vmread.Stuck
	avoid vmread.Avoided

	asking   sync.Mutex
	answered map[uint64]bool // by device, whether the program that provides its files has answered
	silent   atomic.Bool     // one has not
}

// calls are used by one process at a time, because a machine has many processes, and most are read
// little or never.
var calls = sync.Pool{New: func() any { return new(vmread.Call) }}

// openAccess finds a way to read the process's memory.
func openAccess(p *Process, tid int) (*vmAccess, Reason) {
	a := &vmAccess{tid: tid, pidfd: p.sys.pidfd, mem: -1, p: p}
	// No program has memory at this address, so that a permitted read fails with EFAULT; the
	// permission is checked before the address.
	var b [1]byte
	local, remote := [1]unix.Iovec{{Base: &b[0]}}, [1]unix.RemoteIovec{{Base: nowhereMapped, Len: 1}}
	local[0].SetLen(1)
	_, err := unix.ProcessVMReadv(tid, local[:], remote[:], 0)
	if err == nil || err == unix.EFAULT {
		return a, ReasonNone
	}
	fd, memErr := a.reopen()
	if memErr == nil {
		a.mem = fd
		return a, ReasonNone
	}
	switch {
	case err == unix.ESRCH && (memErr == unix.ENOENT || memErr == unix.ESRCH):
		return nil, ReasonNoProcess
	case err == unix.ESRCH:
		return nil, ReasonZombie // its memory is released already
	}
	return nil, ReasonPolicy
}

func (a *vmAccess) reopen() (int, error) { return a.p.openat(a.p.at("mem"), unix.O_RDONLY) }

func (a *vmAccess) close() {
	if a.mem >= 0 {
		unix.Close(a.mem)
		a.mem = -1
	}
	a.tid, a.pidfd = 0, -1
}

// released tries to read where no program has memory: the error says whether there is any.
func (a *vmAccess) released() bool {
	if !a.let && a.tid != 0 && a.mem < 0 {
		var b [1]byte
		a.readV([]Read{{Addr: uint64(nowhereMapped), Buf: b[:]}}) // fails
	}
	return a.let || a.tid == 0
}

func (a *vmAccess) gone() bool { return a.pidfd >= 0 && ended(a.pidfd) }

// readV fills the requests. A transfer ends at the first address that cannot be read; reading
// continues with the request after that one.
func (a *vmAccess) readV(reqs []Read) {
	for i := range reqs {
		reqs[i].OK = len(reqs[i].Buf) == 0
	}
	if a.tid == 0 {
		return
	}
	if a.mem >= 0 {
		for i := range reqs {
			if r := &reqs[i]; !r.OK {
				r.OK = a.pread(r.Buf, r.Addr)
			}
		}
		return
	}
	if a.stuck.Count() >= vmread.MostStuck {
		return
	}
	c := calls.Get().(*vmread.Call)
	defer calls.Put(c)
	defer c.Free()
	moved := false
	for next := 0; next < len(reqs); {
		first, end := next, next
		for ; end < len(reqs); end++ {
			r := &reqs[end]
			if r.OK || a.avoid.Has(r.Addr, len(r.Buf)) {
				continue
			}
			if len(r.Buf) > vmread.MaxBytes || !c.Add(r.Addr, r.Buf, &r.OK) {
				break
			}
		}
		if c.Len() == 0 {
			if end == len(reqs) {
				break
			}
			reqs[end].OK = a.readLong(c, reqs[end].Buf, reqs[end].Addr)
			next = end + 1
			continue
		}
		failed, err := c.Do(a.tid, &a.stuck)
		if err == unix.ESRCH && !moved {
			// The thread that stands for the process has ended; others may run on.
			moved = true
			if tid := a.p.moveView(); tid != 0 {
				a.tid = tid
				continue
			}
		}
		next = end
		for i := first; failed != nil && i < end; i++ {
			if &reqs[i].OK == failed { // those after it have not been tried
				next = i + 1
				break
			}
		}
		switch err {
		case unix.ESRCH, unix.EPERM:
			a.let = a.let || err == unix.ESRCH
			return
		case vmread.ErrTooMany:
			return
		case vmread.ErrGivenUp:
			a.givenUp(reqs[first:end])
			if next = first; a.stuck.Count() >= vmread.MostStuck {
				return
			}
		}
	}
}

// readLong reads one range that is longer than a single transfer.
func (a *vmAccess) readLong(c *vmread.Call, p []byte, addr uint64) bool {
	for len(p) > 0 {
		n := min(len(p), vmread.MaxBytes)
		ok := false
		if a.avoid.Has(addr, n) || !c.Add(addr, p[:n], &ok) {
			return false
		}
		if _, err := c.Do(a.tid, &a.stuck); err == vmread.ErrGivenUp {
			a.givenUp([]Read{{Addr: addr, Buf: p[:n]}})
		}
		if !ok {
			return false
		}
		p, addr = p[n:], addr+uint64(n)
	}
	return true
}

// pread reads through /proc/PID/mem. The file belongs to the program that ran when it was opened;
// after an exec it reads as empty and has to be reopened.
func (a *vmAccess) pread(p []byte, addr uint64) bool {
	if addr+uint64(len(p)) > 1<<63 || addr+uint64(len(p)) < addr {
		return false // no file offset, and no user address on any machine
	}
	reopened := false
	for len(p) > 0 {
		n, err := unix.Pread(a.mem, p, int64(addr))
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return false
		case n == 0:
			if reopened {
				return false
			}
			reopened = true
			fd, err := a.reopen()
			if err != nil {
				return false
			}
			unix.Close(a.mem)
			a.mem = fd
			continue
		}
		p, addr = p[n:], addr+uint64(n)
	}
	return true
}

// refine finds out why a process may not be read.
func (p *Process) refine(r Reason) Reason {
	if r != ReasonPolicy {
		return r
	}
	return deniedReason(p.uid)
}

// deniedReason returns why the memory of a process that runs as uid may not be read.
func deniedReason(uid int) Reason {
	switch {
	case uid >= 0 && uid != unix.Geteuid() && !hasPtrace():
		return ReasonOtherUser
	case yamaRestricts() && !hasPtrace():
		return ReasonYama
	case !hasPtrace():
		return ReasonCapabilities
	}
	return ReasonPolicy
}

// hasPtrace reports whether candid holds CAP_SYS_PTRACE.
func hasPtrace() bool {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return false
	}
	return data[0].Effective&(1<<unix.CAP_SYS_PTRACE) != 0
}

// yamaRestricts reports whether the Yama module forbids reading other processes of
// the same user.
func yamaRestricts() bool {
	raw := readString("/proc/sys/kernel/yama/ptrace_scope")
	raw = strings.TrimSpace(raw)
	return raw != "" && raw != "0"
}
