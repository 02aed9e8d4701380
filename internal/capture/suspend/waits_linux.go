package suspend

import "golang.org/x/sys/unix"

// interruptible are the system calls all of whose sleeps a signal can end; for other calls the
// state has to be looked up.
var interruptible = callSet(append([]int{
	unix.SYS_FUTEX, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_PPOLL, unix.SYS_PSELECT6, unix.SYS_EPOLL_PWAIT,
	unix.SYS_RT_SIGTIMEDWAIT, unix.SYS_RT_SIGSUSPEND, unix.SYS_ACCEPT, unix.SYS_ACCEPT4, unix.SYS_WAIT4, unix.SYS_WAITID,
	unix.SYS_SEMTIMEDOP, unix.SYS_SEMOP, unix.SYS_MSGRCV,
}, olderCalls...))

func callSet(calls []int) (set [512]bool) {
	for _, n := range calls {
		set[n] = true
	}
	return set
}
