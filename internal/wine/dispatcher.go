package wine

import (
	"golang.org/x/arch/x86/x86asm"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/x86"
)

// Dispatcher is the code that the stubs of ntdll.dll call for a system call, and by which Wine returns
// to them (dlls/ntdll/unix/signal_x86_64.c, __wine_syscall_dispatcher). It belongs to a library of the
// host: a profiler that runs in Wine itself finds it in no list of images, and its unwind data is not
// that of Windows.
//
// Wine reports a thread that runs its own code as being at the system call, but only if the stack
// pointer is below the frame of the call (usr1_handler, is_inside_syscall). In the first and the last
// instructions of the dispatcher it is not, and the thread is reported there.
type Dispatcher struct {
	start, size uint64
	at          map[uint64]dispatched // by offset from start
	back        uint64                // from the return address of a stub's call to where Wine returns
}

// dispatched says how to get from an instruction of the dispatcher to the system call.
type dispatched struct {
	stub  stubAt
	depth uint64 // what is above the stack pointer plus depth was there when the stub called
	lost  uint32 // registers that do not hold what they did in the stub, by DWARF number
}

// stubAt says where the address in the stub is.
type stubAt uint8

const (
	onStack  stubAt = iota // the return address of the stub's call
	saved                  // only in the frame of the system call
	inRCX                  // where Wine will return to
	returned               // likewise, on the stack
)

// DispatcherPointer is where a process in Wine has the address of its dispatcher: in the page behind
// the one that Windows shares with all processes (signal_init_syscalls).
const DispatcherPointer = 0x7ffe1000

// DispatcherBytes is more than the code of the dispatcher has.
const DispatcherBytes = 1024

// NewDispatcher reads the code of a dispatcher. It returns nil if that does not begin as a dispatcher
// does: it loads the address of the call's frame into rcx, and pops the return address into the frame.
func NewDispatcher(start uint64, code []byte) *Dispatcher {
	d := &Dispatcher{start: start, size: uint64(len(code)), at: map[uint64]dispatched{}}
	var here dispatched
	var rip x86asm.Mem // where the return address is in the frame
	for off := uint64(0); off < d.size; {
		inst, err := x86.Decode(code[off:])
		if err != nil {
			return nil
		}
		to, _ := inst.Args[0].(x86asm.Reg)
		mem, _ := inst.Args[0].(x86asm.Mem)
		switch len(d.at) {
		case 0:
			if inst.Op != x86asm.MOV || to != x86asm.RCX {
				return nil
			}
		case 1:
			if inst.Op != x86asm.POP || mem.Base != x86asm.RCX {
				return nil
			}
		}
		d.at[off] = here
		if to == x86asm.RSP {
			d.findReturn(code, off+uint64(inst.Len))
			return d
		}
		switch {
		case inst.Op == x86asm.POP && here.stub == onStack:
			rip, here.stub = mem, saved
		case inst.Op == x86asm.POP:
			here.depth -= 8
		case inst.Op == x86asm.PUSHFQ:
			here.depth += 8
		case inst.Op == x86asm.SUB && mem.Base != 0 && mem == rip:
			if by, ok := inst.Args[1].(x86asm.Imm); ok {
				d.back = uint64(by)
			}
		case inst.Op != x86asm.TEST && inst.Op != x86asm.CMP:
			here.lost |= preserved(to)
		}
		off += uint64(inst.Len)
	}
	return nil
}

// preserved returns the bit of a register that a called function has to preserve, 0 for all others.
func preserved(r x86asm.Reg) uint32 {
	switch r {
	case x86asm.RBX, x86asm.EBX:
		return 1 << cpu.RBX
	case x86asm.RBP, x86asm.EBP:
		return 1 << cpu.RBP
	case x86asm.RSI, x86asm.ESI:
		return 1 << cpu.RSI
	case x86asm.RDI, x86asm.EDI:
		return 1 << cpu.RDI
	}
	switch {
	case r >= x86asm.R12 && r <= x86asm.R15:
		return 1 << (cpu.R12 + r - x86asm.R12)
	case r >= x86asm.R12L && r <= x86asm.R15L:
		return 1 << (cpu.R12 + r - x86asm.R12L)
	}
	return 0
}

// findReturn finds the instructions that return to the stub, from where they are back on the stack of
// Windows code: behind off.
func (d *Dispatcher) findReturn(code []byte, off uint64) {
	type step struct {
		off  uint64
		inst x86asm.Inst
	}
	var run []step
	for off < d.size {
		inst, err := x86.Decode(code[off:])
		if err != nil {
			return
		}
		to, _ := inst.Args[0].(x86asm.Reg)
		from, _ := inst.Args[1].(x86asm.Mem)
		switch {
		case inst.Op == x86asm.MOV && to == x86asm.RSP && from.Base == x86asm.RCX:
			run = run[:0]
		case inst.Op == x86asm.MOV && to == x86asm.RCX && from.Base == x86asm.RCX,
			inst.Op == x86asm.PUSH && (to == x86asm.R11 || to == x86asm.RCX),
			inst.Op == x86asm.POPFQ:
			run = append(run, step{off, inst})
		case inst.Op == x86asm.RET:
			here := dispatched{stub: returned}
			d.at[off] = here
			for i := len(run) - 1; i >= 0; i-- {
				switch to, _ := run[i].inst.Args[0].(x86asm.Reg); {
				case run[i].inst.Op == x86asm.POPFQ:
					here.depth += 8
				case to == x86asm.R11:
					here.depth -= 8
				case run[i].inst.Op == x86asm.PUSH:
					here.stub = inRCX
				default:
					here.stub = saved
				}
				d.at[run[i].off] = here
			}
			return
		default:
			run = run[:0]
		}
		off += uint64(inst.Len)
	}
}

// Memory reads a process's memory: what was copied of a stack, and code.
type Memory interface {
	// Bytes fills p from addr; false unless all of it could be read.
	Bytes(addr uint64, p []byte) bool
}

// Stop says where in a dispatcher a thread was stopped.
type Stop uint8

const (
	// Outside: elsewhere, or it cannot be told which system call it is.
	Outside Stop = iota
	// AtCall: at a system call, in whose stub the registers are now.
	AtCall
	// BetweenStacks: the stack pointer is on the stack of Wine's own code, above the call's frame.
	BetweenStacks
)

// Holds reports whether pc is in the dispatcher. It may be called on nil.
func (d *Dispatcher) Holds(pc uint64) bool { return d != nil && pc-d.start < d.size }

// Undo moves the registers of a thread that was stopped in the dispatcher to the stub that has called
// it, where Wine would report the thread to be a few instructions later.
func (d *Dispatcher) Undo(regs *cpu.Registers, mem Memory) Stop {
	if !d.Holds(regs.PC) {
		return Outside
	}
	here, ok := d.at[regs.PC-d.start]
	if !ok {
		return BetweenStacks
	}
	sp, pc := regs.SP()+here.depth, uint64(0)
	switch here.stub {
	case onStack, returned:
		pc, ok = word(mem, sp)
		if sp += 8; here.stub == onStack {
			pc -= d.back
		}
	case inRCX:
		pc = regs.R[cpu.RCX]
	case saved:
		pc, ok = calledStub(mem, sp)
	}
	var code [3]byte
	if !ok || pc < 4096 || !mem.Bytes(pc-2, code[:]) || string(code[:]) != "\x0f\x05\xc3" { // syscall; ret
		return Outside
	}
	regs.PC = pc
	regs.SetSP(sp)
	regs.Known &^= here.lost | 1<<cpu.RAX | 1<<cpu.RCX | 1<<cpu.RDX
	return AtCall
}
