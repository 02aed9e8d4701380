package native

import (
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/walk"
)

// trampolines are the codes that a signal handler returns to: they only make the system call
// rt_sigreturn (15 on x86-64, 139 on arm64).
var trampolines = [...][]string{
	cpu.AMD64: {
		"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", // mov $15,%rax; syscall: glibc, musl, Go
		"\xb8\x0f\x00\x00\x00\x0f\x05",         // mov $15,%eax; syscall
	},
	cpu.ARM64: {"\x68\x11\x80\xd2\x01\x00\x00\xd4"}, // mov x8,#139; svc #0
}

// trampoline reports whether pc is the start of such code or, for a thread that was stopped there,
// after one of its two instructions: its frame is the same until the end of the system call.
func trampoline(c *walk.Cursor, pc uint64) bool {
	if int(c.Regs.Arch) >= len(trampolines) {
		return false
	}
	for _, t := range trampolines[c.Regs.Arch] {
		n := uint64(len(t))
		if b := c.Code(pc, len(t)); string(b) == t {
			return true
		}
		if !c.Leaf || pc < n {
			continue
		}
		first := n - 2 // the system call's 2 bytes
		if c.Regs.Arch == cpu.ARM64 {
			first = n - 4
		}
		if string(c.Code(pc-n, len(t))) == t || string(c.Code(pc-first, len(t))) == t {
			return true
		}
	}
	return false
}

// Registers in the frame that the kernel builds: struct rt_sigframe and struct
// sigcontext of arch/x86/include/uapi/asm/sigcontext.h and
// arch/arm64/include/uapi/asm/sigcontext.h. Offsets are from the stack pointer
// of the trampoline.
const (
	amd64Registers = 40            // in ucontext, which lies at the stack pointer
	arm64Registers = 128 + 168 + 8 // siginfo, then ucontext up to its regs
)

// amd64Order is the order of the registers in struct sigcontext.
var amd64Order = [16]uint8{cpu.R8, cpu.R9, cpu.R10, cpu.R11, cpu.R12, cpu.R13, cpu.R14, cpu.R15,
	cpu.RDI, cpu.RSI, cpu.RBP, cpu.RBX, cpu.RDX, cpu.RAX, cpu.RCX, cpu.RSP}

// signalFrame restores the registers that a signal interrupted.
func (s *Stepper) signalFrame(c *walk.Cursor) walk.Verdict {
	regs := c.Regs
	sp := regs.SP()
	ok := true
	word := func(at uint64) uint64 {
		v, good := c.Word(at)
		ok = ok && good
		return v
	}
	if regs.Arch == cpu.ARM64 {
		for i := range uint64(32) { // x0 to x30, then the stack pointer
			regs.R[i] = word(sp + arm64Registers + 8*i)
		}
		regs.PC = word(sp + arm64Registers + 8*32)
		regs.Known = cpu.AllKnown
	} else {
		for i, r := range amd64Order {
			regs.R[r] = word(sp + amd64Registers + 8*uint64(i))
		}
		regs.PC = word(sp + amd64Registers + 8*16)
		regs.Known = 1<<16 - 1
	}
	if !ok || !s.Owns(regs.PC) {
		return walk.Stuck
	}
	c.Regs = regs
	c.Leaf, c.Unextended, c.LeafCallee = true, 0, false
	high := c.High
	leaveSignalStack(c, sp)
	return s.interrupted(c, sp, high)
}

// interrupted decides how a walk continues at the instruction that a signal interrupted. The kernel
// has put the signal's frame at sp on a stack that ends at high. The interrupted stack may not have
// been copied, if the handler runs on one of its own.
func (s *Stepper) interrupted(c *walk.Cursor, sp, high uint64) walk.Verdict {
	if to := c.Regs.SP(); !elsewhere(to, sp, high) || c.InCopy(to) {
		return walk.Stepped
	}
	if s.runsGo {
		// Go's handlers are done long before the interrupted stack could be read. Each thread has a
		// stack for them, which was copied completely.
		return walk.Done
	}
	if sameFrame(c, sp) {
		c.Checked = true
		return walk.Stepped
	}
	a, ok := s.find(c.Regs.PC)
	if !ok || s.modules[a.module].File == nil || s.cutting {
		return walk.Stepped // a runtime's code; the runtime's stepper may know better
	}
	// The interrupted frame is known, its callers are not.
	s.cutting = true
	s.Step(c)
	s.cutting = false
	return walk.Cut
}

// maxSignalFrame is the most that the kernel puts between the interrupted stack pointer and the
// handler's, in bytes: its frame, which with the vector registers is some 3 to 11 KiB, and the red
// zone.
const maxSignalFrame = 64 << 10

// sameFrame reports whether the process still has the signal's frame at sp that was copied. If so,
// the interrupted stack is the same too.
func sameFrame(c *walk.Cursor, sp uint64) bool {
	from, n := sp+amd64Registers, uint64(8*17)
	if c.Regs.Arch == cpu.ARM64 {
		from, n = sp+arm64Registers, 8*33
	}
	for at := from; at < from+n; at += 8 {
		if !c.InCopy(at) || c.Mem == nil {
			return false
		}
		then, _ := c.Word(at)
		if now, ok := c.Mem.Word(at); !ok || now != then {
			return false
		}
	}
	return true
}

// leaveSignalStack clears the stack's bounds if a signal was handled on a stack of its own: the
// interrupted frame is then not above the handler's.
func leaveSignalStack(c *walk.Cursor, frame uint64) {
	if elsewhere(c.Regs.SP(), frame, c.High) {
		if c.Low|c.High == 0 {
			c.Low = 8 // only the change matters; no stack is there
		} else {
			c.Low, c.High = 0, 0
		}
	}
}

// elsewhere reports whether an interrupted stack pointer is on another stack than the signal's
// frame. The frame's stack ends at high if that is not 0.
func elsewhere(sp, frame, high uint64) bool {
	return sp < frame || sp-frame > maxSignalFrame || high != 0 && sp > high
}
