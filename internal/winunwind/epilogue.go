package winunwind

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/ehframe"
)

// Bounds of an epilogue: it frees the frame, pops at most all registers, and leaves.
const (
	maxEpilogue     = 64 // bytes
	maxEpilogueJump = 4
)

// mayEnd reports whether pc may lie in an epilogue. Version 2 lists them (dotnet/runtime,
// unwinder.cpp, "UWOP_EPILOG"): the first code of operation 6 has their common size, and in its
// argument whether one ends with the function; each further one the distance of a start from the
// function's end.
func (u *Unwinder) mayEnd(f Function, info *Info, pc uint32) bool {
	if !f.Contains(pc) {
		return false
	}
	c := info.Codes
	if info.Version < 2 || len(c) == 0 || c[1]&15 != opEpilog {
		return info.Version == 1
	}
	size := uint32(c[0])
	if c[1]>>4&1 != 0 && f.End-pc <= size {
		return true
	}
	for c = c[codeSize:]; len(c) >= codeSize && c[1]&15 == opEpilog; c = c[codeSize:] {
		back := uint32(c[0]) | uint32(c[1]>>4)<<8
		if start := f.End - back; back != 0 && back <= f.End-f.Begin && pc >= start && pc-start < size {
			return true
		}
	}
	return false
}

// epilogue returns the rule at pc if the rest of an epilogue begins there, else nil. Unwind codes of
// version 1 do not describe epilogues: they have a fixed form instead (Microsoft, "x64 prolog and
// epilog"), to which a few instructions are added here that compilers put in nevertheless.
func (u *Unwinder) epilogue(f Function, info Info, pc uint32) *ehframe.Rule {
	s := newState(u.Unix)
	jumps, done := 0, 0 // done: instructions that free or pop
	for at := pc; ; {
		var buf [16]byte
		if !f.Contains(at) || at-pc >= maxEpilogue && jumps == 0 {
			return nil
		}
		b := buf[:min(uint32(len(buf)), f.End-at)]
		if !u.Reader.ReadRVA(b, at) {
			return nil
		}
		n, how := s.execute(b)
		switch how {
		case frees:
			done++
			at += uint32(n)
			continue
		case nothing:
			at += uint32(n)
			continue
		case returns:
			return s.epilogueRule(b)
		case jumpsTo:
			to, direct := target(b, n, at)
			if direct && f.Contains(to) && to != f.Begin {
				// Compilers may merge the ends of epilogues.
				if jumps++; done == 0 || jumps > maxEpilogueJump {
					return nil
				}
				at = to
				continue
			}
			if direct && u.samePart(f, info, to) {
				return nil
			}
			if done == 0 && !u.freed(f, info, pc) {
				return nil
			}
			return s.epilogueRule(nil)
		}
		return nil
	}
}

// epilogueRule makes the rule of the code up to ret, the instruction that returns; nil is a jump.
func (s *state) epilogueRule(ret []byte) *ehframe.Rule {
	r, err := s.rule()
	if err != nil {
		return nil
	}
	if len(ret) >= 3 && ret[0] == 0xc2 {
		if n := binary.LittleEndian.Uint16(ret[1:]); n != 0 {
			r.Saves = append(r.Saves, ehframe.Save{Reg: cpu.RSP, How: ehframe.IsCFA, Off: int32(n)})
			r.Simple = false
		}
	}
	return r
}

// effect is what an instruction of an epilogue does.
type effect uint8

const (
	other effect = iota
	nothing
	frees // changes the stack pointer
	returns
	jumpsTo
)

// execute applies an instruction to the state and returns its length.
func (s *state) execute(b []byte) (int, effect) {
	rex, n := byte(0), 0
	if len(b) > 0 && b[0]&0xf0 == 0x40 {
		rex, n = b[0], 1
	}
	if len(b) < n+1 {
		return 0, other
	}
	op, rest := b[n], b[n+1:]
	switch {
	case op >= 0x58 && op <= 0x5f: // pop
		return n + 1, s.pop(op&7 | rex&1<<3)
	case op == 0xc9 && rex == 0: // leave
		if s.has&(1<<cpu.RBP) != 0 {
			return 0, other
		}
		s.sp = place{cpu.RBP, 0}
		return 1, s.pop(5)
	case op == 0xc3 && rex == 0, op == 0xc2 && rex == 0 && len(rest) >= 2:
		return 1, returns
	case (op == 0xf3 || op == 0xf2) && rex == 0 && len(rest) >= 1 && rest[0] == 0xc3: // with a prefix
		return 2, returns
	case op == 0xeb && len(rest) >= 1:
		return n + 2, jumpsTo
	case op == 0xe9 && len(rest) >= 4:
		return n + 5, jumpsTo
	case op == 0xff && len(rest) >= 1 && rest[0]>>3&7 == 4:
		return n + 2, jumpsTo
	case bytes.HasPrefix(b, vzeroupper):
		return len(vzeroupper), nothing
	case op == 0x90 && n == 0:
		return 1, nothing
	case rex&^1 == 0x48:
		size, how := s.setSP(rex, op, rest)
		return n + 1 + size, how
	}
	return 0, other
}

// vzeroupper is put before returns by compilers that use wide vectors.
var vzeroupper = []byte{0xc5, 0xf8, 0x77}

func (s *state) pop(reg uint8) effect {
	if hardware[reg] == cpu.RSP {
		return other
	}
	if r := hardware[reg]; s.keep&(1<<r) != 0 {
		s.save(reg, s.sp)
	}
	s.sp.off += 8
	return frees
}

// setSP applies an instruction with 64-bit operands that changes the stack pointer and returns its
// length after the opcode.
func (s *state) setSP(rex, op byte, b []byte) (int, effect) {
	if len(b) < 1 {
		return 0, other
	}
	mod, reg, rm := b[0]>>6, b[0]>>3&7, b[0]&7
	base := hardware[rm|rex&1<<3]
	switch {
	case (op == 0x81 || op == 0x83) && rex == 0x48 && mod == 3 && rm == 4 && (reg == 0 || reg == 5): // add, sub
		v, n, ok := immediate(b[1:], op == 0x83)
		if reg == 5 {
			v = -v
		}
		if !ok || v <= 0 {
			return 0, other
		}
		s.sp.off += v
		return 1 + n, frees
	case op == 0x8d && reg == 4 && mod < 3: // lea rsp, [base+disp]
		skip := 1
		if rm == 4 {
			if len(b) < 2 || b[1]>>3&7 != 4 { // an index
				return 0, other
			}
			base, skip = hardware[b[1]&7|rex&1<<3], 2
		}
		v, n, ok := int64(0), 0, true
		if mod != 0 {
			v, n, ok = immediate(b[skip:], mod == 1)
		} else if base == cpu.RBP || base == cpu.R13 {
			return 0, other // relative to rip, or without a base
		}
		if !ok || !s.move(base, v) {
			return 0, other
		}
		return skip + n, frees
	case op == 0x8b && mod == 3 && reg == 4: // mov rsp, base
		if !s.move(base, 0) {
			return 0, other
		}
		return 1, frees
	case op == 0x89 && rex == 0x48 && mod == 3 && rm == 4: // mov rsp, reg
		if !s.move(hardware[reg], 0) {
			return 0, other
		}
		return 1, frees
	}
	return 0, other
}

// move sets the stack pointer to a register plus off; false if the register was popped before.
func (s *state) move(base uint8, off int64) bool {
	if base == cpu.RSP {
		s.sp.off += off
		return off >= 0
	}
	s.sp = place{base, off}
	return s.has&(1<<base) == 0
}

// immediate reads a signed number of 1 or 4 bytes.
func immediate(b []byte, short bool) (v int64, n int, ok bool) {
	switch {
	case short && len(b) >= 1:
		return int64(int8(b[0])), 1, true
	case !short && len(b) >= 4:
		return int64(int32(binary.LittleEndian.Uint32(b))), 4, true
	}
	return 0, 0, false
}

// target returns where the jump b of n bytes at an address leads; false if it is not known.
func target(b []byte, n int, at uint32) (uint32, bool) {
	switch b[0] {
	case 0xeb:
		return at + 2 + uint32(int32(int8(b[1]))), true
	case 0xe9:
		return at + 5 + binary.LittleEndian.Uint32(b[1:]), true
	}
	return 0, false
}

// samePart reports whether a jump out of f to the address to stays in the same function, which may
// have several parts with entries of their own.
func (u *Unwinder) samePart(f Function, info Info, to uint32) bool {
	if to == f.Begin && info.Flags&FlagChained == 0 {
		return false
	}
	if u.Find == nil {
		return false
	}
	g, ok := u.Find(to)
	if !ok {
		return false
	}
	return u.Primary(f) == u.Primary(g)
}

// Primary returns the entry that the chain of f ends with: that of the part with which the function
// begins. It is f itself if it is not chained, or its unwind information cannot be read.
func (u *Unwinder) Primary(f Function) Function {
	var buf [MaxInfoSize]byte
	for links := 0; links < maxChain; links++ {
		g, err := u.follow(f)
		if err != nil {
			return f
		}
		info, err := u.info(g, &buf)
		if err != nil || info.Flags&FlagChained == 0 {
			return g
		}
		f = info.Chain
	}
	return f
}

// freed reports whether the frame has been freed before the jump at pc: a jump to another function
// is the end of an epilogue, but compilers also jump to parts of the same function that lie
// elsewhere and are not marked as such. The instructions before the jump tell: they pop everything
// that the prologue pushes.
func (u *Unwinder) freed(f Function, info Info, pc uint32) bool {
	s, err := u.frame(f, info, math.MaxUint32)
	if err != nil || s.machine {
		return false
	}
	if s.sp == (place{cpu.RSP, 0}) {
		return true // there is no frame
	}
	var pops []byte
	for _, r := range s.pushes {
		if r >= 8 {
			pops = append(pops, 0x41)
		}
		pops = append(pops, 0x58+r&7)
	}
	var buf [2*16 + 16]byte
	n := min(uint32(len(buf)), pc-f.Begin)
	b := buf[:n]
	if len(pops) > 2*16 || !u.Reader.ReadRVA(b, pc-n) {
		return false
	}
	b = bytes.TrimSuffix(b, vzeroupper)
	if len(pops) > 0 {
		if bytes.HasSuffix(b, []byte{0xc9}) && pops[len(pops)-1] == 0x5d {
			return true // leave
		}
		return bytes.HasSuffix(b, pops)
	}
	for _, size := range []int{4, 5, 7, 8} {
		if len(b) < size {
			break
		}
		t := newState(u.Unix)
		if l, how := t.execute(b[len(b)-size:]); l == size && how == frees {
			return true
		}
	}
	return false
}
