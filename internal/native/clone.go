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

// exits are the codes with which C libraries end a thread whose function has returned to where the
// thread began: they make the system call exit (60), and nothing follows.
var exits = [...]string{
	"\x89\xc7\x31\xc0\xb0\x3c\x0f\x05", // mov %eax,%edi; xor %eax,%eax; mov $60,%al; syscall: musl
}

// begins reports whether pc is the return address of the call with which a thread began. musl has
// no tables that say so.
func begins(c *walk.Cursor, pc uint64) bool {
	if c.Leaf || c.Regs.Arch != cpu.AMD64 {
		return false
	}
	for _, code := range exits {
		if string(c.Code(pc, len(code))) == code {
			return true
		}
	}
	return false
}

// startWords is how many words the frame of a C library's function that calls a thread's own takes
// at most, with the return address: 4 in musl.
const startWords = 8

// started moves the Cursor to the call with which its thread or its program began, if that lies just
// above and nothing else does that could be a return address. The function that is called there
// never returns (musl's end in calls of pthread_exit and exit, or jump through a register), so
// reading it says nothing about its frame.
func (s *Stepper) started(c *walk.Cursor) bool {
	sp := c.Regs.SP()
	for i := uint64(0); i < startWords && !c.Leaf && c.Regs.Arch == cpu.AMD64; i++ {
		v, ok := c.Copy.Word(sp + 8*i)
		if !ok {
			return false
		}
		if v < 4096 || !s.Executable(v-1) || !c.AfterCall(v) {
			continue
		}
		if !begins(c, v) && !s.entered(c, v) {
			return false
		}
		c.Regs.PC = v
		c.Regs.SetSP(sp + 8*i + 8)
		c.Regs.Known = 1 << cpu.RSP
		c.Unextended, c.LeafCallee = 0, true
		c.Prov = max(c.Prov, walk.Derived)
		return true
	}
	return false
}

// entered reports whether v is the return address of a call by the code at a program's entry point.
func (s *Stepper) entered(c *walk.Cursor, v uint64) bool {
	a, ok := s.find(v - 1)
	if !ok || s.reader == nil {
		return false
	}
	m := s.modules[a.module]
	return m.loaded && m.File != nil && m.File.Entry != 0 && s.reader.entered(c.Regs.Arch, c.Mem, m.File.Entry+m.Bias, v-1)
}
