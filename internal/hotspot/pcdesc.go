package hotspot

import (
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/target"
)

// Bounds on the tables of pcs.
const (
	maxPCDescs    = 1 << 18 // of one nmethod; the largest seen have some 10,000
	maxAllPCDescs = 1 << 24 // of all nmethods together
	sizeofPCDesc  = 16      // 8 to 27: four int32 (25 share/code/pcDesc.hpp)
	codeAhead     = 1 << 17 // bytes of code that are read along with the table
)

// debugInfo is the bounds of an nmethod's tables.
type debugInfo struct {
	pcsLo, pcsHi       uint64
	scopesLo, scopesHi uint64
	metadata           uint64
}

// size returns the size of the table of pcs in bytes; 0 if it cannot be one.
func (d *debugInfo) size() uint64 {
	n := (d.pcsHi - d.pcsLo) / sizeofPCDesc
	if d.pcsLo == 0 || d.pcsHi < d.pcsLo || n > maxPCDescs {
		return 0
	}
	return n * sizeofPCDesc
}

// readDebugInfo reads the table of pcs of b, and with it what naming b needs next: its scopes, and
// the methods in them if these lie before the scopes, and the code if a thread was stopped there. The
// first pc and those at the end that lie outside the code are sentinels and are left out.
func (vm *VM) readDebugInfo(b *blob) {
	nm, d := b.nm, &b.nm.debug
	size := d.size()
	if size == 0 {
		return
	}
	if vm.code.pcs+int(size/sizeofPCDesc) > maxAllPCDescs {
		vm.Note("the compiled methods have more debug information than can be kept: positions in new ones are unknown")
		return
	}
	reqs := [4]target.Read{{Addr: d.pcsLo, Buf: make([]byte, size)}}
	if n := d.scopesSize(); n > 0 {
		reqs[1] = target.Read{Addr: d.scopesLo, Buf: make([]byte, n)}
		if n := d.scopesLo - d.metadata; d.metadata < d.scopesLo && n <= 8*maxMetadata {
			reqs[2] = target.Read{Addr: d.metadata, Buf: make([]byte, n&^7)}
		}
	}
	if n := b.codeEnd - b.codeBegin; vm.code.leaf && n > 0 && n <= codeAhead && vm.code.copied+int(n) <= keepCode {
		reqs[3] = target.Read{Addr: b.codeBegin, Buf: make([]byte, n)}
	}
	vm.Mem.ReadV(reqs[:])
	if len(reqs[3].Buf) > 0 && reqs[3].OK {
		b.code = reqs[3].Buf
		vm.code.copied += len(b.code)
	}
	nm.read = vm.Mem.Reads
	if !reqs[0].OK {
		return
	}
	if nm.torn = !wholePCs(reqs[0].Buf, b.codeEnd-b.codeBegin); nm.torn {
		return
	}
	nm.pcs = decodePCs(reqs[0].Buf, b.codeEnd-b.codeBegin)
	vm.code.pcs += cap(nm.pcs)
	if len(reqs[1].Buf) > 0 && reqs[1].OK {
		vm.keepScopes(nm, reqs[1].Buf)
		if reqs[2].OK {
			vm.keepMetadata(nm.scopes, reqs[2].Buf)
		}
	}
}

// wholePCs reports whether a table of pcs of code of the given size begins and ends with a pc
// outside the code, as all do (share/code/nmethod.cpp, copy_scopes_pcs): the VM writes the table
// after the header, and frees it before the header.
func wholePCs(raw []byte, size uint64) bool {
	first, last := int32(binary.LittleEndian.Uint32(raw)), int32(binary.LittleEndian.Uint32(raw[len(raw)-sizeofPCDesc:]))
	return first < 0 && last > 0 && uint64(last) > size
}

// decodePCs decodes a table of pcs of code of the given size. It stops at the first entry that is
// out of order; a VM writes none.
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
