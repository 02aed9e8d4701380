//go:build !linux

package kallsyms

import "strconv"

// SyscallName returns "syscall 999": the names of this system's calls are not known.
func SyscallName(nr int) string { return "syscall " + strconv.Itoa(nr) }
