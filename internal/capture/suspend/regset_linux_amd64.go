package suspend

import "golang.org/x/sys/unix"

// ntPRStatus is the register set of the general registers (linux/elf.h).
const ntPRStatus = 1

// read reads a stopped thread's registers.
func (w *words) read(tid int) unix.Errno { return regset(tid, ntPRStatus, w[:]) }

// baseIsTop reports whether the thread register is certainly the stack's top: in the C libraries
// the descriptor's first word points to itself, and other users of the register (Go) do not do
// that.
func baseIsTop(base, word uint64) bool { return base == word }
