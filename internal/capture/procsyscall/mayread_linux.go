package procsyscall

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// MayRead reports whether this process may read where the threads of a process wait; tasks is the
// process's open /proc/PID/task. Whatever ptrace permits, the file is only for the process's user
// and for processes with CAP_DAC_READ_SEARCH.
func MayRead(tasks, pid int) bool {
	return unix.Faccessat(tasks, strconv.Itoa(pid)+"/syscall", unix.R_OK, unix.AT_EACCESS) != unix.EACCES
}
