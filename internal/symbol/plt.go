package symbol

import (
	"debug/elf"
	"strings"

	"github.com/candid-profiler/candid/internal/objfile"
)

// pltSuffix marks a stub that jumps to the function of that name in another file.
const pltSuffix = "@plt"

const (
	maxPLT    = 1 << 20 // bytes of stubs
	maxRelocs = 1 << 18
)

// addPLT names the stubs through which a file calls others. A stub has no symbol; it jumps through
// a slot that a relocation fills, and the relocation has the name.
func (t *table) addPLT(m *image) {
	if !m.Wide() || (m.Machine != elf.EM_X86_64 && m.Machine != elf.EM_AARCH64) || len(t.strings) > 7 {
		return
	}
	var slots map[uint64]string
	src := uint8(len(t.strings))
	names := []byte{0}
	for i := range m.Sections {
		s := &m.Sections[i]
		if s.Flags&elf.SHF_EXECINSTR == 0 || (s.Name != ".plt" && !strings.HasPrefix(s.Name, ".plt.")) {
			continue
		}
		code, err := m.Raw(s, maxPLT)
		if err != nil {
			continue
		}
		if slots == nil {
			slots = m.relocatedSlots()
		}
		stubs := stubsX86
		if m.Machine == elf.EM_AARCH64 {
			stubs = stubsARM64
		}
		stubs(code, s.Addr, func(start, end, slot uint64) {
			name, ok := slots[slot]
			if !ok {
				return
			}
			t.syms = append(t.syms, entry{addr: start, size: uint32(end - start), name: uint32(len(names)), rank: rankLocal, src: src})
			names = append(append(names, name...), pltSuffix+"\x00"...)
		})
	}
	if len(names) > 1 {
		t.strings = append(t.strings, strtab{mem: names})
	}
}

// relocatedSlots maps the address of every slot that the dynamic linker fills with a function's
// address to the function's name.
func (m *image) relocatedSlots() map[uint64]string {
	slots := map[uint64]string{}
	jump, glob := uint32(elf.R_X86_64_JMP_SLOT), uint32(elf.R_X86_64_GLOB_DAT)
	if m.Machine == elf.EM_AARCH64 {
		jump, glob = uint32(elf.R_AARCH64_JUMP_SLOT), uint32(elf.R_AARCH64_GLOB_DAT)
	}
	// Relocations that only add the load address come first, and are nearly all.
	d := m.Dynamic()
	for i := range m.Sections {
		s := &m.Sections[i]
		dyn := m.Linked(s)
		if s.Type != elf.SHT_RELA || dyn == nil || dyn.Type != elf.SHT_DYNSYM {
			continue
		}
		section := *s
		if skip := d[elf.DT_RELACOUNT]; d[elf.DT_RELA] == s.Addr && skip <= s.Size/24 {
			section.Offset, section.Size = s.Offset+skip*24, s.Size-skip*24
		}
		rela, err := m.Raw(&section, maxRelocs*24)
		if err != nil {
			continue
		}
		syms, err := m.Raw(dyn, 64<<20)
		if err != nil {
			continue
		}
		strs, err := m.Raw(m.Linked(dyn), 64<<20)
		if err != nil {
			continue
		}
		for ; len(rela) >= 24; rela = rela[24:] {
			info := m.Order.Uint64(rela[8:])
			typ, sym := uint32(info), info>>32
			if (typ != jump && typ != glob) || sym == 0 || (sym+1)*24 > uint64(len(syms)) {
				continue
			}
			if name := objfile.CString(strs, uint64(m.Order.Uint32(syms[sym*24:])), maxRawName); name != "" {
				slots[m.Order.Uint64(rela)] = name
			}
		}
	}
	return slots
}

// stubsX86 finds `jmp *slot(%rip)` in each entry of a PLT. Entries are 16 bytes (8 in .plt.got
// without endbr64); a jump belongs to the entry that it lies in.
func stubsX86(code []byte, base uint64, yield func(start, end, slot uint64)) {
	size := 16
	if len(code) >= 8 && code[0] == 0xff && code[1] == 0x25 && code[6] == 0x66 && code[7] == 0x90 {
		size = 8
	}
	for off := 0; off+size <= len(code); off += size {
		e := code[off : off+size]
		i := 0
		if size == 16 && e[0] == 0xf3 && e[1] == 0x0f && e[2] == 0x1e && e[3] == 0xfa {
			i = 4
		}
		if e[i] == 0xf2 { // bnd
			i++
		}
		if i+6 > size || e[i] != 0xff || e[i+1] != 0x25 {
			continue
		}
		disp := int32(uint32(e[i+2]) | uint32(e[i+3])<<8 | uint32(e[i+4])<<16 | uint32(e[i+5])<<24)
		start := base + uint64(off)
		yield(start, start+uint64(size), start+uint64(i)+6+uint64(int64(disp)))
	}
}

// stubsARM64 finds `adrp x16, page; ldr x17, [x16, #off]`, with which every
// entry begins (after an optional bti).
func stubsARM64(code []byte, base uint64, yield func(start, end, slot uint64)) {
	word := func(i int) uint32 {
		return uint32(code[i]) | uint32(code[i+1])<<8 | uint32(code[i+2])<<16 | uint32(code[i+3])<<24
	}
	const btiC = 0xd503245f
	start, slot := uint64(0), uint64(0)
	for i := 0; i+8 <= len(code); i += 4 {
		adrp, ldr := word(i), word(i+4)
		if adrp&0x9f00001f != 0x90000010 || ldr&0xffc003ff != 0xf9400211 {
			continue
		}
		at := base + uint64(i)
		begin := at
		if i >= 4 && word(i-4) == btiC {
			begin -= 4
		}
		if start != 0 {
			yield(start, begin, slot)
		}
		imm := int64(uint64(adrp>>5&0x7ffff)<<2|uint64(adrp>>29&3)) << 43 >> 43 // 21 bits, signed
		start = begin
		slot = at&^0xfff + uint64(imm<<12) + uint64(ldr>>10&0xfff)*8
	}
	if start != 0 {
		yield(start, base+uint64(len(code)), slot)
	}
}
