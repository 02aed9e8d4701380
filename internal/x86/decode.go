// Package x86 decodes x86-64 instructions with golang.org/x/arch.
package x86

import "golang.org/x/arch/x86/x86asm"

// Decode decodes the instruction that code begins with. The errors are x86asm's.
//
// x86asm gives negative displacements of four bytes as large positive numbers ([RBP+0xfffffe00] for
// [RBP-0x200]); the processor extends their sign, and so does Decode.
func Decode(code []byte) (x86asm.Inst, error) {
	inst, err := x86asm.Decode(code, 64)
	if err != nil {
		return inst, err
	}
	if op := inst.Opcode >> 24; op >= 0xa0 && op <= 0xa3 {
		return inst, nil // the addresses in these have eight bytes
	}
	for i, a := range inst.Args {
		if m, ok := a.(x86asm.Mem); ok && m.Disp>>32 == 0 {
			m.Disp = int64(int32(m.Disp))
			inst.Args[i] = m
		}
	}
	return inst, nil
}
