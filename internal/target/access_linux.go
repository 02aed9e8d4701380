package target

import (
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// maxIovecs is UIO_MAXIOV of include/uapi/linux/uio.h.
	maxIovecs = 1024
	// maxTransfer bounds one call, so that a long read does not hold the target's
	// mmap lock for long.
	maxTransfer = 16 << 20
)

// vmAccess reads by process_vm_readv, or by /proc/PID/mem if that system call is not available:
// container runtimes filter it more often than the file.
type vmAccess struct {
	tid   int // a living thread of the process
	pidfd int // not owned
	mem   int // /proc/PID/mem, -1 while process_vm_readv works
	p     *Process
	let   bool // the process has released its memory
}

// vectors are the lists of a transfer. They are used by one process at a time, because a machine
// has many processes, and most are read little or never.
type vectors struct {
	local  [maxIovecs]unix.Iovec
	remote [maxIovecs]unix.RemoteIovec
	index  [maxIovecs]int32 // which request an iovec belongs to
}

var vectorPool = sync.Pool{New: func() any { return new(vectors) }}

// openAccess finds a way to read the process's memory.
func openAccess(p *Process, tid int) (access, Reason) {
	a := &vmAccess{tid: tid, pidfd: p.sys.pidfd, mem: -1, p: p}
	// Address 0 is never mapped for a program, so that a permitted read fails with
	// EFAULT; the permission is checked before the address.
	var b [1]byte
	local, remote := [1]unix.Iovec{{Base: &b[0]}}, [1]unix.RemoteIovec{{Base: 0, Len: 1}}
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

func (a *vmAccess) released() bool { return a.let || a.tid == 0 }

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
	v := vectorPool.Get().(*vectors)
	defer vectorPool.Put(v)
	moved := false
	for next := 0; next < len(reqs); {
		n, bytes := 0, 0
		end := next
		for ; end < len(reqs) && n < maxIovecs; end++ {
			r := &reqs[end]
			if r.OK {
				continue
			}
			if len(r.Buf) > maxTransfer {
				break
			}
			if bytes += len(r.Buf); n > 0 && bytes > maxTransfer {
				break
			}
			v.local[n].Base = &r.Buf[0]
			v.local[n].SetLen(len(r.Buf))
			v.remote[n] = unix.RemoteIovec{Base: uintptr(r.Addr), Len: len(r.Buf)}
			v.index[n] = int32(end)
			n++
		}
		if n == 0 {
			if end == len(reqs) {
				break
			}
			reqs[end].OK = a.readLong(reqs[end].Buf, reqs[end].Addr)
			next = end + 1
			continue
		}
		got, err := unix.ProcessVMReadv(a.tid, v.local[:n], v.remote[:n], 0)
		if err == unix.ESRCH && !moved {
			// The thread that stands for the process has ended; others may run on.
			moved = true
			if tid := a.p.moveView(); tid != 0 {
				a.tid = tid
				continue
			}
		}
		if err != nil {
			got = 0
		}
		next = end
		for i := range n {
			size := v.remote[i].Len
			if got < size { // this one failed; those after it have not been tried
				next = int(v.index[i]) + 1
				break
			}
			got -= size
			reqs[v.index[i]].OK = true
		}
		clear(v.local[:n]) // so that no buffer is kept alive
		if err == unix.ESRCH || err == unix.EPERM {
			a.let = a.let || err == unix.ESRCH
			return
		}
	}
}

// readLong reads one range that is longer than a single transfer.
func (a *vmAccess) readLong(p []byte, addr uint64) bool {
	for len(p) > 0 {
		n := min(len(p), maxTransfer)
		local, remote := [1]unix.Iovec{{Base: &p[0]}}, [1]unix.RemoteIovec{{Base: uintptr(addr), Len: n}}
		local[0].SetLen(n)
		got, err := unix.ProcessVMReadv(a.tid, local[:], remote[:], 0)
		if err != nil || got != n {
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
