package kallsyms

import "strconv"

// SyscallName returns the name of a system call by its number on this machine's architecture:
// "futex". For an unknown number it is "syscall 999".
func SyscallName(nr int) string {
	if nr >= 0 && nr < len(syscallNames) && syscallNames[nr] != "" {
		return syscallNames[nr]
	}
	return "syscall " + strconv.Itoa(nr)
}
