package hotspot

import "encoding/binary"

// Bounds on the tables of pcs.
const (
	maxPCDescs    = 1 << 18 // of one nmethod; the largest seen have some 10,000
	maxAllPCDescs = 1 << 24 // of all nmethods together
	sizeofPCDesc  = 16      // 8 to 27: four int32 (25 share/code/pcDesc.hpp)
)

// debugInfo is where an nmethod's tables lie.
type debugInfo struct {
	pcsLo, pcsHi       uint64
	scopesLo, scopesHi uint64
	metadata           uint64
}

// readPCs reads the table of pcs of b. The first element and those at the end
// whose pc lies outside the code are sentinels and are left out.
func (vm *VM) readPCs(b *blob) {
	nm := b.nm
	lo, hi := nm.debug.pcsLo, nm.debug.pcsHi
	if lo == 0 || hi < lo || (hi-lo)/sizeofPCDesc > maxPCDescs {
		return
	}
	n := int((hi - lo) / sizeofPCDesc)
	if vm.code.pcs+n > maxAllPCDescs {
		vm.note("the compiled methods have more debug information than can be kept: positions in new ones are unknown")
		return
	}
	raw := make([]byte, n*sizeofPCDesc)
	if n == 0 || vm.peek.r.ReadAt(raw, lo) != nil {
		return
	}
	nm.pcs = decodePCs(raw, b.codeEnd-b.codeBegin)
	vm.code.pcs += len(nm.pcs)
}

// decodePCs decodes a table of pcs of code of the given size. It stops where
// the order is broken, which a VM never does.
func decodePCs(raw []byte, size uint64) []pcDesc {
	out := make([]pcDesc, 0, len(raw)/sizeofPCDesc)
	last := int32(-1)
	for ; len(raw) >= sizeofPCDesc; raw = raw[sizeofPCDesc:] {
		d := pcDesc{pc: int32(binary.LittleEndian.Uint32(raw)), scope: int32(binary.LittleEndian.Uint32(raw[4:]))}
		if d.pc < 0 {
			continue
		}
		// The end of the code is kept: a call may be the last instruction.
		if uint64(d.pc) > size || d.pc < last {
			break
		}
		out, last = append(out, d), d.pc
	}
	return out
}
