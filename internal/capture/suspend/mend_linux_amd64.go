package suspend

import "golang.org/x/sys/unix"

// mends says that calls which a stop interrupted can be made to go on.
const mends = true

// restartNoHand is ERESTARTNOHAND of the kernel (include/linux/errno.h), which programs never see:
// a call that ends with it is restarted, unless a signal's handler is to run; then it returns
// EINTR. poll and msgrcv end with it when they are interrupted.
const restartNoHand = 514

// mendable are the calls that the kernel ends with EINTR for any wakeup, also one by ptrace, and
// that have done nothing yet when they do so: restarted with the same arguments they go on waiting.
var mendable = [...]uint64{
	unix.SYS_EPOLL_WAIT, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2,
	unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_RT_SIGTIMEDWAIT,
	// Calls on sockets with a time limit. If a part was transferred, its length is returned, not
	// EINTR.
	unix.SYS_RECVFROM, unix.SYS_RECVMSG, unix.SYS_RECVMMSG, unix.SYS_READ, unix.SYS_READV,
	unix.SYS_SENDTO, unix.SYS_SENDMSG, unix.SYS_WRITE, unix.SYS_WRITEV,
	unix.SYS_ACCEPT, unix.SYS_ACCEPT4,
	unix.SYS_IO_GETEVENTS, unix.SYS_IO_PGETEVENTS, unix.SYS_IO_URING_ENTER,
}

// mend lets a call that a stop interrupted go on. The thread is stopped on its way out of the call,
// at the place where the kernel decides what becomes of it, and that decision is changed from
// "return EINTR" to "as if this call were one that is restarted". No instruction of the program has
// run in between, and a pending signal interrupts the call as it would have done anyway.
func (w *words) mend(tid int) bool {
	for _, n := range mendable {
		if w[regOrig] == n {
			return ptrace(unix.PTRACE_POKEUSR, tid, regRAX*8, ^uintptr(restartNoHand)+1) == 0
		}
	}
	return false
}
