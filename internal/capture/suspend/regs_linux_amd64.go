package suspend

import "github.com/candid-profiler/candid/internal/cpu"

// redZone is how many bytes below its stack pointer a leaf function may keep data.
const redZone = 128

// Words of struct user_regs_struct of x86-64 (asm/user_64.h).
const (
	regWords = 27
	regRAX   = 10
	regOrig  = 15
	regRIP   = 16
	regRSP   = 19
	regFS    = 21
)

// regOrder maps the first words of user_regs_struct to DWARF numbers.
var regOrder = [15]uint8{
	cpu.R15, cpu.R14, cpu.R13, cpu.R12, cpu.RBP, cpu.RBX, cpu.R11, cpu.R10,
	cpu.R9, cpu.R8, cpu.RAX, cpu.RCX, cpu.RDX, cpu.RSI, cpu.RDI,
}

// words are a thread's registers as the kernel returns them.
type words [regWords]uint64

func (w *words) sp() uint64 { return w[regRSP] }

// threadBase returns the thread register, which C libraries point at the thread's descriptor.
func (w *words) threadBase() uint64 { return w[regFS] }

// inCall reports whether the thread was in a system call or on its way out of one, and whether that
// call was interrupted for good.
func (w *words) inCall() (in, broken bool) {
	return int64(w[regOrig]) >= 0, int64(w[regOrig]) >= 0 && int64(w[regRAX]) == -eintr
}

func (w *words) decode(r *cpu.Registers) {
	r.Arch, r.Known = cpu.AMD64, 0xffff
	for i, n := range regOrder {
		r.R[n] = w[i]
	}
	r.PC = w[regRIP]
	r.R[cpu.RSP] = w[regRSP]
}

// place sets the registers to those of a thread of which only these are known.
func (w *words) place(pc, sp uint64) {
	*w = words{regRIP: pc, regRSP: sp, regOrig: 1<<64 - 1}
}

// placeKnown are the registers that place sets.
const placeKnown = 1 << cpu.RSP
