package kernel

import "strconv"

// SyscallName is the name of a system call of Linux on the architecture that
// candid was built for: "futex". One that is newer than candid is "syscall 999".
func SyscallName(number int) string {
	if number < 0 {
		return ""
	}
	if number < len(syscalls) && syscalls[number] != "" {
		return syscalls[number]
	}
	return "syscall " + strconv.Itoa(number)
}
