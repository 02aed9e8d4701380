package procsyscall

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// MayRead reports whether this process may read where the threads of a process wait, by
// tasks, its open /proc/PID/task. Whatever ptrace permits, the file is for the
// process's user alone, and for whoever has CAP_DAC_READ_SEARCH.
func MayRead(tasks, pid int) bool {
	return unix.Faccessat(tasks, strconv.Itoa(pid)+"/syscall", unix.R_OK, unix.AT_EACCESS) != unix.EACCES
}
