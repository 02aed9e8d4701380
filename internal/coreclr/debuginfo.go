package coreclr

import (
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/clrdebug"
)

// Parts of a method's debug information (src/coreclr/vm/debuginfostore.cpp;
// docs/design/datacontracts/DebugInfo.md).
const (
	debugPatchpoints = 1 // a PatchpointInfo comes first
	debugRich        = 2 // then what is known of inlined methods, if the program was told to keep that

	patchpointSize   = 32 // PatchpointInfo (inc/patchpointinfo.h), and where its number of locals is
	patchpointLocals = 8
	maxLocals        = 1 << 16
	maxBounds        = 1 << 20 // bytes
	// debugInstrumented comes first if there are two tables: of the code with a profiler's changes,
	// and of the original.
	debugInstrumented = 0xffffffff
)

// debugInfo is where the parts of a method's debug information are.
type debugInfo struct {
	rich     uint64 // what is known of inlined methods
	richSize uint32 // 0: nothing
	rest     uint64 // the sizes of the other parts, which follow
}

// debugInfoOf finds the parts of a method's debug information; false if there is none.
func (vm *VM) debugInfoOf(c *code) (d debugInfo, ok bool) {
	at := c.debug
	if at == 0 {
		return d, false
	}
	var b [4]byte
	if !vm.mem.Bytes(at, b[:1]) || b[0]&^(debugPatchpoints|debugRich) != 0 {
		return d, false
	}
	flags := b[0]
	at++
	if flags&debugPatchpoints != 0 {
		if !vm.mem.Bytes(at+patchpointLocals, b[:4]) {
			return d, false
		}
		n := binary.LittleEndian.Uint32(b[:4])
		if n > maxLocals {
			return d, false
		}
		at += patchpointSize + 4*uint64(n)
	}
	if flags&debugRich != 0 {
		if !vm.mem.Bytes(at, b[:4]) {
			return d, false
		}
		n := binary.LittleEndian.Uint32(b[:4])
		if n > maxBounds {
			return d, false
		}
		d.rich, d.richSize = at+4, n
		at += 4 + uint64(n)
	}
	d.rest = at
	return d, true
}

// boundaries reads which code of a method is of which instruction, by ascending offset.
func (vm *VM) boundaries(c *code) []clrdebug.Boundary {
	d, ok := vm.debugInfoOf(c)
	if !ok {
		return nil
	}
	var b [32]byte
	at := d.rest
	n := 24
	for n > 0 && !vm.mem.Bytes(at, b[:n]) {
		n -= 8
	}
	r := clrdebug.NewNibbles(b[:n])
	size, skip := r.Number(), uint32(0)
	if vm.lay.packed && size == debugInstrumented {
		size, skip = r.Number(), r.Number()
	}
	r.Number() // of what is known of variables
	if skip > maxBounds {
		return nil
	}
	if r.Bad || size == 0 || size > maxBounds {
		return nil
	}
	data := make([]byte, size)
	if !vm.mem.Bytes(at+uint64(r.Next()), data) {
		return nil
	}
	if vm.lay.packed {
		return clrdebug.UnpackBoundaries(data)
	}
	return clrdebug.DecodeBoundaries(data)
}
