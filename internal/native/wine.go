package native

import (
	"golang.org/x/arch/x86/x86asm"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/ehframe"
	"github.com/candid-profiler/candid/internal/walk"
	"github.com/candid-profiler/candid/internal/x86"
)

// A system call of Windows code in Wine saves the registers of its caller in a frame, and goes on on
// another stack. From there Wine's unwind table leads past the Windows code, to whoever entered it,
// so that debuggers of Linux see a stack of Wine's own code: the CFA is then syscall_cfa of the frame
// (Wine 10.0, dlls/ntdll/unix/signal_x86_64.c: struct syscall_frame, and "stitch unwind info with
// previous frame" in __wine_syscall_dispatcher and __wine_unix_call_dispatcher).
const (
	wineLibrary = "ntdll.so"

	wineFrameRIP = 0x70
	wineFrameRSP = 0x88
	wineFrameRBP = 0x98
	wineFrameCFA = 0xa8 // syscall_cfa
)

// wineFrame has the places of the registers in the frame that have to be preserved.
var wineFrame = [...]struct {
	reg uint8
	off int32
}{
	{cpu.RBX, 0x08}, {cpu.RSI, 0x20}, {cpu.RDI, 0x28}, {cpu.R12, 0x50}, {cpu.R13, 0x58}, {cpu.R14, 0x60},
	{cpu.R15, 0x68}, {cpu.RSP, wineFrameRSP}, {cpu.RBP, wineFrameRBP},
}

// wineRule returns the rule that leads to the Windows code that made a system call, if r is one of
// those of Wine that lead past it; else r. pc is the address of the frame, the instruction itself if
// leaf.
func wineRule(c *walk.Cursor, m *Module, r *ehframe.Rule, pc uint64) *ehframe.Rule {
	if m.Name() != wineLibrary {
		return r
	}
	if c.Leaf && string(c.Code(pc, 2)) == "\x48\xcf" {
		// iretq: everything else has been restored, and the table's registers hold other values.
		return &returnFromInterrupt
	}
	reg, off, ok := derefOf(r.CFAExpr)
	if !ok || r.RA.How != ehframe.AtCFA || r.RA.Off != -8 {
		return r
	}
	off -= wineFrameCFA
	if c.Leaf && reg == cpu.RBP && returnsByRCX(c, pc) {
		// Whoever jumped here has left rbp as it was: __wine_syscall_dispatcher_return, which a thread's
		// start, callbacks and faults end with, and __wine_unix_call_dispatcher.
		reg, off = cpu.RCX, 0
	}
	out := &ehframe.Rule{CFAReg: reg, CFAOff: off, RA: ehframe.Save{Reg: 16, How: ehframe.AtCFA, Off: wineFrameRIP}}
	for _, s := range wineFrame {
		out.Saves = append(out.Saves, ehframe.Save{Reg: s.reg, How: ehframe.AtCFA, Off: s.off})
	}
	return out
}

// maxReturn bounds the instructions that are read to the point at which a dispatcher restores rbp.
const maxReturn = 40

// returnsByRCX reports whether the code at pc restores rbp from the frame that rcx points to, without
// having changed rcx.
func returnsByRCX(c *walk.Cursor, pc uint64) bool {
	for range maxReturn {
		code := c.Code(pc, 15)
		inst, err := x86.Decode(code)
		if err != nil {
			return false
		}
		to := inst.Args[0]
		from, _ := inst.Args[1].(x86asm.Mem)
		switch {
		case inst.Op == x86asm.MOV && to == x86asm.RBP:
			return from.Base == x86asm.RCX && from.Index == 0 && from.Disp == wineFrameRBP
		case inst.Op == x86asm.JMP:
			rel, ok := to.(x86asm.Rel)
			if !ok {
				return false
			}
			pc += uint64(int64(rel))
		case to == x86asm.RCX || to == x86asm.ECX, inst.Op == x86asm.CALL, inst.Op == x86asm.RET, inst.Op == x86asm.SYSCALL:
			return false
		}
		pc += uint64(inst.Len)
	}
	return false
}

// returnFromInterrupt is the rule at the instruction iretq: rip, cs, rflags, rsp and ss are on the
// stack.
var returnFromInterrupt = ehframe.Rule{
	CFAReg: cpu.RSP, CFAOff: 40, Keep: 1<<16 - 1,
	RA:    ehframe.Save{Reg: 16, How: ehframe.AtCFA, Off: -40},
	Saves: []ehframe.Save{{Reg: cpu.RSP, How: ehframe.AtCFA, Off: -16}},
}

// derefOf takes apart an expression that is the word at a register plus an offset.
func derefOf(e []byte) (reg uint8, off int32, ok bool) {
	if len(e) < 3 || len(e) > 5 || e[0] < opBreg0 || e[0] > opBreg0+15 || e[len(e)-1] != opDeref {
		return 0, 0, false
	}
	shift := 0
	for i, b := range e[1 : len(e)-1] {
		off |= int32(b&0x7f) << shift
		shift += 7
		if last := i == len(e)-3; last != (b&0x80 == 0) {
			return 0, 0, false
		} else if last && b&0x40 != 0 {
			off -= 1 << shift
		}
	}
	return e[0] - opBreg0, off, true
}

// changeStack continues on another stack that was copied with the sample, if the caller is there.
func changeStack(c *walk.Cursor) {
	sp := c.Regs.SP()
	if c.InCopy(sp) {
		return
	}
	for i := range c.Regions {
		r := &c.Regions[i]
		if n := uint64(len(r.Bytes)); sp-r.Addr < n {
			c.Copy = walk.StackCopy{Base: r.Addr, Bytes: r.Bytes}
			c.Low, c.High = r.Addr, r.Addr+n
			return
		}
	}
}
