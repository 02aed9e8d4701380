package winunwind

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/ehframe"
)

// place is an address relative to a register of the frame (DWARF number).
type place struct {
	reg uint8
	off int64
}

// state is where the caller's registers are, as far as the prologue has been undone.
type state struct {
	sp    place
	saved [16]place // by DWARF number
	has   uint16    // the registers that saved has
	keep  uint32
	unix  bool
	// machine says that the processor itself pushed the frame, of which sp is the first word: rip.
	machine bool
	pushes  []uint8 // the registers whose pushes were undone, in this order (hardware numbers)
}

func newState(unix bool) state {
	s := state{sp: place{cpu.RSP, 0}, unix: unix, keep: keepWindows}
	if unix {
		s.keep = keepUnix
	}
	return s
}

// maxOffset bounds all offsets from registers, in bytes: more than the largest stack.
const maxOffset = 1 << 30

func (s *state) save(reg uint8, at place) {
	s.saved[hardware[reg]] = at
	s.has |= 1 << hardware[reg]
}

// undo undoes the part of the prologue that had been executed at off bytes from its start.
func (s *state) undo(u *Info, off uint32) error {
	if off >= uint32(u.Prolog) {
		off = math.MaxUint32
	}
	base, set := frameBase(u, off)
	if !set {
		base = s.sp
	} else if s.has&(1<<base.reg) != 0 {
		return fmt.Errorf("the frame register was restored before it is used: %w", ErrFormat)
	}
	for c := u.Codes; len(c) > 0; {
		at, op, info := uint32(c[0]), c[1]&15, c[1]>>4
		n := slots(u.Version, op, info)
		if n == 0 || n*codeSize > len(c) {
			return fmt.Errorf("unwind operation %d (%d): %w", op, info, ErrFormat)
		}
		arg := c[codeSize : n*codeSize]
		c = c[n*codeSize:]
		if off < at || s.machine {
			continue // not executed
		}
		switch op {
		case opPush:
			s.save(info, s.sp)
			s.sp.off += 8
			s.pushes = append(s.pushes, info)
		case opAllocLarge:
			if info == 0 {
				s.sp.off += 8 * int64(binary.LittleEndian.Uint16(arg))
			} else {
				s.sp.off += int64(binary.LittleEndian.Uint32(arg))
			}
		case opAllocSmall:
			s.sp.off += 8*int64(info) + 8
		case opSetFrame, opFrameLarge:
			if u.FrameReg == 0 || op == opFrameLarge && !s.unix {
				return fmt.Errorf("unwind operation %d: %w", op, ErrFormat)
			}
			s.sp = base
		case opSave:
			s.save(info, place{base.reg, base.off + 8*int64(binary.LittleEndian.Uint16(arg))})
		case opSaveFar:
			s.save(info, place{base.reg, base.off + int64(binary.LittleEndian.Uint32(arg))})
		case opMachine:
			s.sp.off += 8 * int64(info&1)
			s.machine = true
		}
		if s.sp.off > maxOffset || s.sp.off < -maxOffset {
			return fmt.Errorf("frame of %d bytes: %w", s.sp.off, ErrFormat)
		}
	}
	return nil
}

// frameBase returns the address of which the frame register tells, from which registers are saved,
// if the register had been set off bytes after the prologue's start.
func frameBase(u *Info, off uint32) (place, bool) {
	base := place{hardware[u.FrameReg], -16 * int64(u.FrameOffset)}
	if u.FrameReg == 0 {
		return base, false
	}
	for c := u.Codes; len(c) > 0; {
		op := c[1] & 15
		n := slots(u.Version, op, c[1]>>4)
		if n == 0 || n*codeSize > len(c) {
			return base, false
		}
		if op == opFrameLarge {
			base.off = -16 * int64(binary.LittleEndian.Uint32(c[codeSize:])&0x0fffffff)
		}
		if op == opSetFrame || op == opFrameLarge {
			return base, off >= uint32(c[0])
		}
		c = c[n*codeSize:]
	}
	// A part of a function that another part's prologue belongs to.
	return base, off == math.MaxUint32
}

// rule makes a rule of the state after everything has been undone.
func (s *state) rule() (*ehframe.Rule, error) {
	if s.machine {
		return s.machineRule()
	}
	r := &ehframe.Rule{CFAReg: s.sp.reg, CFAOff: int32(s.sp.off + 8), RA: atCFA(returnAddress, -8), Keep: s.keep}
	r.Simple = true
	for reg := range s.saved {
		if s.has&(1<<reg) == 0 || reg == cpu.RSP {
			continue
		}
		save, err := s.from(uint8(reg), s.saved[reg], place{r.CFAReg, int64(r.CFAOff)})
		if err != nil {
			return nil, err
		}
		r.Saves = append(r.Saves, save)
		r.Keep |= 1 << reg
		if reg == cpu.RBP && save.How == ehframe.AtCFA && save.Off != 0 {
			r.FPOff = save.Off
		} else {
			r.Simple = false
		}
	}
	return r, nil
}

// machineRule makes the rule of a frame that the processor pushed: rip, cs, rflags, rsp, ss.
// Everything that is not restored is as it was when the interrupt came.
func (s *state) machineRule() (*ehframe.Rule, error) {
	const size = 5 * 8
	r := &ehframe.Rule{CFAReg: s.sp.reg, CFAOff: int32(s.sp.off + size), RA: atCFA(returnAddress, -size), Signal: true, Keep: 1<<16 - 1}
	for reg := range s.saved {
		if s.has&(1<<reg) == 0 || reg == cpu.RSP {
			continue
		}
		save, err := s.from(uint8(reg), s.saved[reg], place{r.CFAReg, int64(r.CFAOff)})
		if err != nil {
			return nil, err
		}
		r.Saves = append(r.Saves, save)
	}
	r.Saves = append(r.Saves, atCFA(cpu.RSP, -16))
	return r, nil
}

// from describes the place of a saved register.
func (s *state) from(reg uint8, at, cfa place) (ehframe.Save, error) {
	if at.off > math.MaxInt32/2 || at.off < -math.MaxInt32/2 {
		return ehframe.Save{}, fmt.Errorf("register saved at %d: %w", at.off, ErrFormat)
	}
	if at.reg == cfa.reg {
		return atCFA(reg, int32(at.off-cfa.off)), nil
	}
	return ehframe.Save{Reg: reg, How: ehframe.AtExpr, Expr: ehframe.RegisterPlus(at.reg, int32(at.off))}, nil
}
