package kallsyms

import "strconv"

// SyscallName is what the system call of a number is called on this machine's
// architecture: "futex". A number that is not known gives "syscall 999".
func SyscallName(nr int) string {
	if nr >= 0 && nr < len(syscallNames) && syscallNames[nr] != "" {
		return syscallNames[nr]
	}
	return "syscall " + strconv.Itoa(nr)
}
