package suspend

import "github.com/candid-profiler/candid/internal/cpu"

// redZone is 0: nothing is kept below the stack pointer.
const redZone = 0

// Words of struct user_pt_regs of arm64 (asm/ptrace.h): x0 to x30, sp, pc, pstate; then the thread
// register and the system call number, which are register sets of their own.
const (
	regWords = 34
	regSP    = 31
	regPC    = 32
	regTLS   = 34
	regCall  = 35
)

// words are a thread's registers as the kernel returns them.
type words [regCall + 1]uint64

func (w *words) sp() uint64 { return w[regSP] }

// threadBase returns the thread register, which C libraries point at the thread's descriptor.
func (w *words) threadBase() uint64 { return w[regTLS] }

// inCall reports whether the thread was in a system call or on its way out of one, and whether that
// call was interrupted for good.
func (w *words) inCall() (in, broken bool) {
	in = int32(w[regCall]) >= 0
	return in, in && int64(w[0]) == -eintr
}

func (w *words) decode(r *cpu.Registers) {
	r.Arch, r.Known = cpu.ARM64, cpu.AllKnown
	copy(r.R[:], w[:32])
	r.PC = w[regPC]
}

// place sets the registers to those of a thread of which only these are known.
func (w *words) place(pc, sp uint64) {
	*w = words{regPC: pc, regSP: sp, regCall: 1<<32 - 1}
}

// placeKnown are the registers that place sets.
const placeKnown = 1 << cpu.XSP
