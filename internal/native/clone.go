package native

import (
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/walk"
)

// cloneCalls are the system calls that start a thread, as C libraries make them:
// clone (56) and clone3 (435).
var cloneCalls = [...]string{
	"\xb8\x38\x00\x00\x00\x0f\x05", // mov $56,%eax; syscall
	"\xb8\xb3\x01\x00\x00\x0f\x05", // mov $435,%eax; syscall
	"\xb0\x38\x0f\x05",             // mov $56,%al; syscall: musl
}

// afterClone is how many bytes after the system call parent and child still run the same code: test
// %rax,%rax; jl; jz.
const afterClone = 9

// clones reports whether pc lies just after a system call that starts a thread.
func clones(mem walk.Memory, pc uint64) bool {
	var b [afterClone + 7]byte
	if !mem.Bytes(pc-uint64(len(b)), b[:]) {
		return false
	}
	for back := range afterClone + 1 {
		for _, call := range cloneCalls {
			if end := len(b) - back; end >= len(call) && string(b[end-len(call):end]) == call {
				return true
			}
		}
	}
	return false
}

// newborn reports whether the thread, stopped just after the system call that started it, is the
// new one. Its stack is then empty, because nothing called it. The tables of C libraries do not
// cover these instructions.
func newborn(c *walk.Cursor) bool {
	return c.Leaf && c.Regs.Arch == cpu.AMD64 && c.Regs.R[cpu.RAX] == 0
}
