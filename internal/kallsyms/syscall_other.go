//go:build !linux

package kallsyms

import "strconv"

// SyscallName has no names for the calls of this system: "syscall 999".
func SyscallName(nr int) string { return "syscall " + strconv.Itoa(nr) }
