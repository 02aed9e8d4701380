package suspend

import "golang.org/x/sys/unix"

// Register sets (linux/elf.h).
const (
	ntPRStatus      = 1
	ntARMTLS        = 0x401
	ntARMSystemCall = 0x404
)

// read reads a stopped thread's registers.
func (w *words) read(tid int) unix.Errno {
	if errno := regset(tid, ntPRStatus, w[:regWords]); errno != 0 {
		return errno
	}
	if regset(tid, ntARMTLS, w[regTLS:regTLS+1]) != 0 {
		w[regTLS] = 0
	}
	w[regCall] = 0
	if regset(tid, ntARMSystemCall, w[regCall:]) != 0 {
		w[regCall] = 1<<32 - 1 // not in a call
	}
	return 0
}

// baseIsTop reports whether the thread register is the stack's top. On arm64 the first word there
// does not show that.
func baseIsTop(base, _ uint64) bool { return base != 0 }
