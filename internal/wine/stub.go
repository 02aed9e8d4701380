package wine

import (
	"encoding/binary"

	"golang.org/x/arch/x86/x86asm"

	"github.com/candid-profiler/candid/internal/x86"
)

// Bounds of what is read of the function that has led to a stub.
const (
	maxFunction     = 1024 // bytes
	maxInstructions = 400
	maxBranches     = 64
)

// calledStub returns where the stub goes on after its system call that the return address at sp is of.
// The call before that address is of the stub, or of a function that ends with a jump to it:
// RtlRestoreContext with one to NtContinue. If it may jump to several stubs, it is not told which.
func calledStub(mem Memory, sp uint64) (uint64, bool) {
	var b [6]byte
	ra, ok := word(mem, sp)
	if !ok || ra < 4096 || !mem.Bytes(ra-6, b[:]) {
		return 0, false
	}
	to := ra + relative(b[2:])
	switch {
	case b[1] == 0xe8: // call rel32
	case b[0] == 0xff && b[1] == 0x15: // call [rip+rel32]
		if to, ok = word(mem, to); !ok {
			return 0, false
		}
	default:
		return 0, false
	}
	const behind = 0x14 // mov r10,rcx; mov eax,number; test; jne; syscall
	if isStub(mem, to) {
		return to + behind, true
	}
	if to, ok = jumpsToStub(mem, to); !ok {
		return 0, false
	}
	return to + behind, true
}

// isStub reports whether the stub of a system call is at an address, by its first instructions.
func isStub(mem Memory, addr uint64) bool {
	var b [4]byte
	return addr >= 4096 && mem.Bytes(addr, b[:]) && string(b[:]) == "\x4c\x8b\xd1\xb8"
}

// jumpsToStub returns the only stub to which the function at start jumps.
func jumpsToStub(mem Memory, start uint64) (stub uint64, ok bool) {
	var room [maxFunction]byte
	code := room[:]
	for ; !mem.Bytes(start, code); code = code[:len(code)/4] { // it may be the last of its section
		if len(code) < 16 {
			return 0, false
		}
	}
	size := uint64(len(code))
	var seen [maxFunction]bool
	var later [maxBranches]uint64 // offsets
	waiting := 1                  // the function's start
	for n := 0; waiting > 0; {
		waiting--
		for off := later[waiting]; off < size && !seen[off]; {
			if n++; n > maxInstructions {
				return 0, false
			}
			seen[off] = true
			inst, err := x86.Decode(code[off:])
			if err != nil {
				return 0, false
			}
			next := off + uint64(inst.Len)
			rel, direct := inst.Args[0].(x86asm.Rel)
			to := next + uint64(int64(rel))
			switch {
			case inst.Op == x86asm.RET, inst.Op == x86asm.INT, inst.Op == x86asm.UD2:
				off = size
			case inst.Op == x86asm.JMP:
				off = to
				if !direct || to >= size {
					off = size
					at := start + to
					if m, ok := inst.Args[0].(x86asm.Mem); ok && m.Base == x86asm.RIP {
						at, _ = word(mem, start+next+uint64(m.Disp))
					} else if !direct {
						break
					}
					if !isStub(mem, at) {
						break
					}
					if ok && stub != at {
						return 0, false
					}
					stub, ok = at, true
				}
			case direct && inst.Op != x86asm.CALL:
				if to < size && waiting < maxBranches {
					later[waiting] = to
					waiting++
				}
				off = next
			default:
				off = next
			}
		}
	}
	return stub, ok
}

// relative reads a distance of 4 bytes.
func relative(b []byte) uint64 { return uint64(int64(int32(binary.LittleEndian.Uint32(b)))) }

func word(mem Memory, addr uint64) (uint64, bool) {
	var b [8]byte
	ok := mem.Bytes(addr, b[:])
	return binary.LittleEndian.Uint64(b[:]), ok
}
