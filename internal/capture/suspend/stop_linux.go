package suspend

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// eintr is the error of a call that a signal or a stop interrupted.
const eintr = int64(unix.EINTR)

// ptrace makes a ptrace request. All requests but the first are raw system calls: they do not
// block, and a stopped thread must not have to wait for Go's scheduler.
func ptrace(request, tid int, addr, data uintptr) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), addr, data, 0, 0)
	return errno
}

// seize makes the calling OS thread the tracer of a thread, which runs on undisturbed. The thread
// will report its own end, so that waiting for it cannot last until its whole process ends. It must
// not be killed with candid, so PTRACE_O_EXITKILL is never set.
//
// This request may block for as long as a thread of the same process is in exec, which waits for
// all other threads to end and, if one of them is traced, for its tracer to reap it: the tracer may
// be another sampling thread, which must not lack Go's P for it.
func seize(tid int) unix.Errno {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(tid), 0, unix.PTRACE_O_TRACEEXIT, 0, 0)
	return errno
}

// interrupt asks a seized thread to stop before it executes its next
// instruction.
func interrupt(tid int) unix.Errno { return ptrace(unix.PTRACE_INTERRUPT, tid, 0, 0) }

// release detaches from a stopped thread and delivers the signal that it stopped for, if any. A
// thread whose process is stopped stays stopped.
func release(tid int, signal int) unix.Errno {
	return ptrace(unix.PTRACE_DETACH, tid, 0, uintptr(signal))
}

func regset(tid int, set uintptr, to []uint64) unix.Errno {
	iov := unix.Iovec{Base: (*byte)(unsafe.Pointer(&to[0])), Len: uint64(len(to) * 8)}
	if errno := ptrace(unix.PTRACE_GETREGSET, tid, set, uintptr(unsafe.Pointer(&iov))); errno != 0 {
		return errno
	}
	if int(iov.Len) != len(to)*8 {
		return unix.EOPNOTSUPP // the registers of a 32-bit program have another layout
	}
	return 0
}

// stop is what wait reports of a traced thread.
type stop struct {
	ended   bool
	exiting bool // on its way out: it will not run any more code of its own
	signal  int  // to deliver at release
}

// Parts of a wait status (wait(2), ptrace(2)).
const (
	waitStopped    = 0x7f
	statusEventPos = 16
)

func decodeStop(status uint32) stop {
	switch {
	case status&0xff != waitStopped:
		return stop{ended: true}
	case status>>statusEventPos != 0:
		// This is the stop that was requested, the stop of the whole process, or the thread's end:
		// it contains no signal to be delivered.
		return stop{exiting: status>>statusEventPos == unix.PTRACE_EVENT_EXIT}
	}
	return stop{signal: int(status >> 8 & 0xff)}
}

// childInfo is siginfo_t as waitid fills it in.
type childInfo struct {
	signo, errno, code, _ int32
	pid, uid, status      int32
	_                     [100]byte
}

// Values of childInfo.code (asm-generic/siginfo.h).
const (
	childExited = 1
	childDumped = 3
)

// waitStop waits until a thread that the calling OS thread traces stops or ends. Unless keeps is
// set it gives up Go's P while it waits, because a thread that is held back (by a quota, or by
// busier ones) may take a while to stop. A signal to the OS thread (the reminder) ends the wait
// with EINTR. The event stays waitable, so that a parent that waits for the same process still
// finds its end.
func waitStop(tid int, keeps bool) (s stop, errno unix.Errno) {
	var info childInfo
	const what = unix.WEXITED | unix.WSTOPPED | unix.WNOWAIT | unix.WALL | unix.WNOTHREAD
	call := unix.Syscall6
	if keeps {
		call = unix.RawSyscall6
	}
	if _, _, errno = call(unix.SYS_WAITID, unix.P_PID, uintptr(tid), uintptr(unsafe.Pointer(&info)), what, 0, 0); errno != 0 {
		return stop{}, errno
	}
	if info.code >= childExited && info.code <= childDumped {
		return stop{ended: true}, 0
	}
	return decodeStop(uint32(info.status)<<8 | waitStopped), 0
}

// bury makes the kernel reap a thread that ended while it was traced, or notify its parent. It
// reports whether that was done; it is not for a child of candid's, whose end belongs to the code
// that started it.
func bury(tid int, own bool) bool {
	if own {
		return false
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_WAIT4, uintptr(tid), 0, unix.WALL|unix.WNOTHREAD|unix.WNOHANG, 0, 0, 0)
	return errno == 0 && int(n) == tid
}

// stopOf returns the stop that a thread is in. ok is false if it is in none.
func stopOf(tid int) (s stop, ok bool) {
	var info childInfo
	switch ptrace(unix.PTRACE_GETSIGINFO, tid, 0, uintptr(unsafe.Pointer(&info))) {
	case 0:
	case unix.EINVAL:
		return stop{}, true // its whole process is stopped
	default:
		return stop{}, false
	}
	// In the stop of the whole process signo is the signal that stopped it.
	if event := info.code >> 8; event == unix.PTRACE_EVENT_STOP || event > 0 && info.signo == int32(unix.SIGTRAP) {
		return stop{exiting: event == unix.PTRACE_EVENT_EXIT}, true
	}
	return stop{signal: int(info.signo)}, true
}
