package ehframe

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// column is one register's rule while a program runs.
type column struct {
	how  How
	off  int32
	expr []byte // into the table's bytes
}

// state is the row that a program has built so far.
type state struct {
	cfaReg  uint8
	cfaOff  int32
	cfaExpr []byte
	regs    [columns]column
}

// key returns a byte string that is the same for equal rules.
func (st *state) key(b []byte, raColumn uint8, signal bool) []byte {
	flags := byte(0)
	if signal {
		flags = 1
	}
	b = append(b, st.cfaReg, raColumn, flags)
	b = binary.LittleEndian.AppendUint32(b, uint32(st.cfaOff))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(st.cfaExpr)))
	b = append(b, st.cfaExpr...)
	for i := range st.regs {
		c := &st.regs[i]
		if c.how == Same {
			continue
		}
		b = append(b, byte(i), byte(c.how))
		b = binary.LittleEndian.AppendUint32(b, uint32(c.off))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(c.expr)))
		b = append(b, c.expr...)
	}
	return b
}

// maxRemembered bounds DW_CFA_remember_state; compilers nest it once or twice.
const maxRemembered = 16

// machine runs the programs of one table. It is reused, so that a look-up does
// not allocate.
type machine struct {
	st         state
	initial    state // after the CIE's program, for DW_CFA_restore
	remembered [maxRemembered]state
	depth      int
}

var errProgram = errors.New("malformed call frame program")

// run executes a program that starts at the address loc and stops at the row
// that holds target. It returns the address that the row starts at.
func (m *machine) run(program []byte, c *cie, enc pointerContext, loc, target uint64) (uint64, error) {
	r := reader{b: program}
	for r.more() {
		op := r.u8()
		low := uint64(op & 0x3f)
		next := loc
		switch op >> 6 {
		case 1: // DW_CFA_advance_loc
			next = loc + low*c.codeAlign
		case 2: // DW_CFA_offset
			m.set(low, AtCFA, int64(r.uleb())*c.dataAlign, nil)
		case 3: // DW_CFA_restore
			m.restore(low)
		default:
			switch op {
			case 0x00: // DW_CFA_nop
			case 0x01: // DW_CFA_set_loc
				v, err := enc.read(&r, c.fdeEncoding)
				if err != nil {
					return 0, err
				}
				next = v
			case 0x02: // DW_CFA_advance_loc1
				next = loc + uint64(r.u8())*c.codeAlign
			case 0x03: // DW_CFA_advance_loc2
				next = loc + uint64(r.u16())*c.codeAlign
			case 0x04: // DW_CFA_advance_loc4
				next = loc + uint64(r.u32())*c.codeAlign
			case 0x1d: // DW_CFA_MIPS_advance_loc8
				next = loc + r.u64()*c.codeAlign
			case 0x05: // DW_CFA_offset_extended
				reg := r.uleb()
				m.set(reg, AtCFA, int64(r.uleb())*c.dataAlign, nil)
			case 0x06: // DW_CFA_restore_extended
				m.restore(r.uleb())
			case 0x07: // DW_CFA_undefined
				m.set(r.uleb(), Undefined, 0, nil)
			case 0x08: // DW_CFA_same_value
				m.set(r.uleb(), Same, 0, nil)
			case 0x09: // DW_CFA_register
				reg := r.uleb()
				m.set(reg, InReg, int64(r.uleb()), nil)
			case 0x0a: // DW_CFA_remember_state
				if m.depth == maxRemembered {
					return 0, fmt.Errorf("%w: states remembered too deep", errProgram)
				}
				m.remembered[m.depth] = m.st
				m.depth++
			case 0x0b: // DW_CFA_restore_state
				if m.depth == 0 {
					return 0, fmt.Errorf("%w: no state to restore", errProgram)
				}
				m.depth--
				m.st = m.remembered[m.depth]
			case 0x0c: // DW_CFA_def_cfa
				reg := r.uleb()
				m.defCFA(reg, int64(r.uleb()))
			case 0x0d: // DW_CFA_def_cfa_register
				m.defCFA(r.uleb(), int64(m.st.cfaOff))
			case 0x0e: // DW_CFA_def_cfa_offset
				m.defCFA(uint64(m.st.cfaReg), int64(r.uleb()))
			case 0x0f: // DW_CFA_def_cfa_expression
				m.st.cfaExpr = r.take(r.uleb())
			case 0x10: // DW_CFA_expression
				reg := r.uleb()
				m.set(reg, AtExpr, 0, r.take(r.uleb()))
			case 0x11: // DW_CFA_offset_extended_sf
				reg := r.uleb()
				m.set(reg, AtCFA, r.sleb()*c.dataAlign, nil)
			case 0x12: // DW_CFA_def_cfa_sf
				reg := r.uleb()
				m.defCFA(reg, r.sleb()*c.dataAlign)
			case 0x13: // DW_CFA_def_cfa_offset_sf
				m.defCFA(uint64(m.st.cfaReg), r.sleb()*c.dataAlign)
			case 0x14: // DW_CFA_val_offset
				reg := r.uleb()
				m.set(reg, IsCFA, int64(r.uleb())*c.dataAlign, nil)
			case 0x15: // DW_CFA_val_offset_sf
				reg := r.uleb()
				m.set(reg, IsCFA, r.sleb()*c.dataAlign, nil)
			case 0x16: // DW_CFA_val_expression
				reg := r.uleb()
				m.set(reg, IsExpr, 0, r.take(r.uleb()))
			case 0x2c, 0x2d: // DW_CFA_AARCH64_negate_ra_state(_with_pc): signed return addresses are always stripped
			case 0x2e: // DW_CFA_GNU_args_size: only for landing pads
				r.uleb()
			case 0x2f: // DW_CFA_GNU_negative_offset_extended
				reg := r.uleb()
				m.set(reg, AtCFA, -int64(r.uleb())*c.dataAlign, nil)
			default:
				return 0, fmt.Errorf("%w: unknown operation %#x", errProgram, op)
			}
		}
		if r.bad {
			return 0, fmt.Errorf("%w: it ends inside an operation", errProgram)
		}
		if next != loc {
			if next > target {
				return loc, nil
			}
			loc = next
		}
	}
	return loc, nil
}

func (m *machine) set(reg uint64, how How, off int64, expr []byte) {
	if reg >= columns {
		return
	}
	if off != int64(int32(off)) {
		how, off = Undefined, 0
	}
	m.st.regs[reg] = column{how, int32(off), expr}
}

func (m *machine) restore(reg uint64) {
	if reg < columns {
		m.st.regs[reg] = m.initial.regs[reg]
	}
}

func (m *machine) defCFA(reg uint64, off int64) {
	if reg >= columns || off != int64(int32(off)) {
		// Such a frame cannot be walked; noColumn makes the step fail.
		reg, off = noColumn, 0
	}
	m.st.cfaReg, m.st.cfaOff, m.st.cfaExpr = uint8(reg), int32(off), nil
}
