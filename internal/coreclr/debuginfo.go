package coreclr

import "encoding/binary"

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

	instructionBias = 3 // offsets of instructions are stored with it; below are prologues and the like
)

// boundary says that from an offset in the code on, the code is of an instruction.
type boundary struct {
	native uint32
	il     int32 // -1 for none, -2 the prologue, -3 the epilogue
}

// boundaries reads which code of a method is of which instruction, by ascending offset.
func (vm *VM) boundaries(c *code) []boundary {
	at := c.debug
	if at == 0 {
		return nil
	}
	var b [32]byte
	if !vm.mem.Bytes(at, b[:1]) || b[0]&^(debugPatchpoints|debugRich) != 0 {
		return nil
	}
	flags := b[0]
	at++
	if flags&debugPatchpoints != 0 {
		if !vm.mem.Bytes(at+patchpointLocals, b[:4]) {
			return nil
		}
		n := binary.LittleEndian.Uint32(b[:4])
		if n > maxLocals {
			return nil
		}
		at += patchpointSize + 4*uint64(n)
	}
	if flags&debugRich != 0 {
		if !vm.mem.Bytes(at, b[:4]) {
			return nil
		}
		n := binary.LittleEndian.Uint32(b[:4])
		if n > maxBounds {
			return nil
		}
		at += 4 + uint64(n)
	}
	n := 24
	for n > 0 && !vm.mem.Bytes(at, b[:n]) {
		n -= 8
	}
	r := nibbles{b: b[:n]}
	size, skip := r.number(), uint32(0)
	if vm.lay.packed && size == debugInstrumented {
		size, skip = r.number(), r.number()
	}
	r.number() // of what is known of variables
	if skip > maxBounds {
		return nil
	}
	if r.bad || size == 0 || size > maxBounds {
		return nil
	}
	data := make([]byte, size)
	if !vm.mem.Bytes(at+uint64(r.next()), data) {
		return nil
	}
	if vm.lay.packed {
		return unpackBoundaries(data)
	}
	return decodeBoundaries(data)
}

// unpackBoundaries decodes them in the form that they have since .NET 10: their number, the numbers
// of bits that distances and instructions take, less one each, and then so many bits for each, after
// two for what is known there.
func unpackBoundaries(data []byte) []boundary {
	r := nibbles{b: data}
	n, native, il := r.number(), uint(r.number())+1, uint(r.number())+1
	if r.bad || uint64(n) > 8*uint64(len(data)) || native > 32 || il > 30 {
		return nil
	}
	bits := data[min(r.next(), len(data)):]
	pos := uint(0)
	read := func(n uint) (v uint64, ok bool) {
		for i := range n {
			if pos/8 >= uint(len(bits)) {
				return 0, false
			}
			v |= uint64(bits[pos/8]>>(pos%8)&1) << i
			pos++
		}
		return v, true
	}
	out := make([]boundary, 0, n)
	at := uint32(0)
	for range n {
		_, ok1 := read(2)
		delta, ok2 := read(native)
		offset, ok3 := read(il)
		if !ok1 || !ok2 || !ok3 {
			return nil
		}
		at += uint32(delta)
		out = append(out, boundary{at, int32(offset) - instructionBias})
	}
	return out
}

// decodeBoundaries decodes them: their number, then for each the distance in the code from the one
// before, the instruction's offset, and what is known there.
func decodeBoundaries(data []byte) []boundary {
	r := nibbles{b: data}
	n := r.number()
	if r.bad || uint64(n) > uint64(len(data)) {
		return nil
	}
	out := make([]boundary, 0, n)
	at := uint32(0)
	for range n {
		at += r.number()
		il := int32(r.number()) - instructionBias
		r.number()
		if r.bad {
			return nil
		}
		out = append(out, boundary{at, il})
	}
	return out
}

// instructionAt returns the offset of the instruction to which the code at an offset belongs: the
// prologue to the first, code that belongs to none to the one before. It is false if nothing is
// known.
func instructionAt(all []boundary, off uint32) (uint32, bool) {
	il, ok := uint32(0), len(all) > 0
	for _, b := range all {
		if b.native > off {
			break
		}
		if b.il >= 0 {
			il = uint32(b.il)
		}
	}
	return il, ok
}

// nibbles reads numbers of four bits each, of which the highest says that more follow; the higher
// bits come first, and the lower half of a byte.
type nibbles struct {
	b   []byte
	at  int // in nibbles
	bad bool
}

func (r *nibbles) number() uint32 {
	v := uint32(0)
	for n := 0; n < 11; n++ {
		if r.at/2 >= len(r.b) {
			break
		}
		x := r.b[r.at/2] >> (4 * (r.at & 1)) & 15
		r.at++
		v = v<<3 | uint32(x&7)
		if x&8 == 0 {
			return v
		}
	}
	r.bad = true
	return 0
}

// next returns the next whole byte.
func (r *nibbles) next() int { return (r.at + 1) / 2 }
