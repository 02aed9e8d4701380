package emulate

import "golang.org/x/arch/x86/x86asm"

// maxRepeats bounds how often a string instruction is repeated.
const maxRepeats = 256

const (
	rax = 0
	rcx = 1
	rsi = 6
	rdi = 7
)

// stringOps are the string instructions: what they do and on how many bytes.
var stringOps = map[x86asm.Op]struct {
	verb byte // m: copy, s: store, l: load, f: find, c: compare
	size uint8
}{
	x86asm.MOVSB: {'m', 1}, x86asm.MOVSW: {'m', 2}, x86asm.MOVSD: {'m', 4}, x86asm.MOVSQ: {'m', 8},
	x86asm.STOSB: {'s', 1}, x86asm.STOSW: {'s', 2}, x86asm.STOSD: {'s', 4}, x86asm.STOSQ: {'s', 8},
	x86asm.LODSB: {'l', 1}, x86asm.LODSW: {'l', 2}, x86asm.LODSD: {'l', 4}, x86asm.LODSQ: {'l', 8},
	x86asm.SCASB: {'f', 1}, x86asm.SCASW: {'f', 2}, x86asm.SCASD: {'f', 4}, x86asm.SCASQ: {'f', 8},
	x86asm.CMPSB: {'c', 1}, x86asm.CMPSW: {'c', 2}, x86asm.CMPSD: {'c', 4}, x86asm.CMPSQ: {'c', 8},
}

// strings executes a string instruction with its repetitions.
func (m *Machine) strings(o *op) {
	s := stringOps[o.code]
	uses := [5]bool{rcx: o.repeat != repeatNone}
	if uses[rcx] && m.known[rcx] != 0xff || m.flags&direction != 0 {
		m.end(Unknown)
		return
	}
	from, to := s.verb != 's' && s.verb != 'f', s.verb != 'l'
	if from && m.known[rsi] != 0xff || to && m.known[rdi] != 0xff {
		m.end(Unknown)
		return
	}
	count := uint64(1)
	if uses[rcx] {
		if count = m.r[rcx]; count > maxRepeats {
			m.end(Limit)
			return
		}
		m.late = m.late || m.lateR>>rcx&1 != 0
	}
	for ; count > 0; count-- {
		var v, w value
		if from {
			v = m.mem.load(m.r[rsi], s.size)
			m.r[rsi] += uint64(s.size)
		}
		at := m.r[rdi]
		if to {
			m.r[rdi] += uint64(s.size)
		}
		if uses[rcx] {
			m.r[rcx]--
		}
		switch s.verb {
		case 's':
			v = value{m.r[rax], m.known[rax], m.lateR&1 != 0}
			fallthrough
		case 'm':
			if !m.mem.store(at, s.size, v) {
				m.end(Limit)
				return
			}
			continue
		case 'l':
			m.setReg(rax, s.size, false, v)
			continue
		case 'f':
			v = value{m.r[rax], m.known[rax], m.lateR&1 != 0}.extend(s.size)
		}
		w = m.mem.load(at, s.size)
		m.sub(v, w, 0, s.size, true)
		if o.repeat == repeatNone {
			continue
		}
		if m.flagsOK&zero == 0 {
			m.end(Unknown)
			return
		}
		m.late = m.late || m.lateF
		if m.flags&zero != 0 != (o.repeat == repeatEqual) {
			return
		}
	}
}

// loop executes loop, loope and loopne.
func (m *Machine) loop(o *op) {
	if m.known[rcx] != 0xff || o.code != x86asm.LOOP && m.flagsOK&zero == 0 || o.narrow {
		m.end(Unknown)
		return
	}
	m.late = m.late || m.lateR>>rcx&1 != 0 || o.code != x86asm.LOOP && m.lateF
	m.r[rcx]--
	if m.r[rcx] != 0 && (o.code == x86asm.LOOP || m.flags&zero != 0 == (o.code == x86asm.LOOPE)) {
		m.jump(o.target)
	}
}

// clobber executes an instruction that writes registers that are no operands: they are not known
// any more.
func (m *Machine) clobber(o *op) {
	lose := func(registers ...uint8) {
		for _, r := range registers {
			m.setReg(r, 8, false, value{})
		}
	}
	switch o.code {
	case x86asm.CPUID:
		lose(rax, 3, rcx, 2)
	case x86asm.XGETBV:
		lose(rax, 2)
	case x86asm.RDTSCP:
		lose(rax, 2, rcx)
	case x86asm.PCMPESTRI, x86asm.PCMPISTRI, x86asm.VPCMPESTRI, x86asm.VPCMPISTRI:
		m.flagsOK &= direction
		lose(rcx)
	case x86asm.PCMPESTRM, x86asm.PCMPISTRM, x86asm.VPCMPESTRM, x86asm.VPCMPISTRM:
		m.flagsOK &= direction
		m.x[0].Known = 0
	case x86asm.LDMXCSR, x86asm.VLDMXCSR:
		m.mxcsrSet = true
	}
}
