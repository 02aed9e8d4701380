package clrdebug

const instructionBias = 3 // offsets of instructions are stored with it; below are prologues and the like

// Boundary says that from an offset in the code on, the code is of an instruction.
type Boundary struct {
	Native uint32
	IL     int32 // -1 for none, -2 the prologue, -3 the epilogue
}

// UnpackBoundaries decodes them in the form that they have since .NET 10: their number, the numbers
// of bits that distances and instructions take, less one each, and then so many bits for each, after
// two for what is known there.
func UnpackBoundaries(data []byte) []Boundary {
	r := NewNibbles(data)
	n, native, il := r.Number(), uint(r.Number())+1, uint(r.Number())+1
	if r.Bad || uint64(n) > 8*uint64(len(data)) || native > 32 || il > 30 {
		return nil
	}
	bits := data[min(r.Next(), len(data)):]
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
	out := make([]Boundary, 0, n)
	at := uint32(0)
	for range n {
		_, ok1 := read(2)
		delta, ok2 := read(native)
		offset, ok3 := read(il)
		if !ok1 || !ok2 || !ok3 {
			return nil
		}
		at += uint32(delta)
		out = append(out, Boundary{at, int32(offset) - instructionBias})
	}
	return out
}

// DecodeBoundaries decodes them: their number, then for each the distance in the code from the one
// before, the instruction's offset, and what is known there.
func DecodeBoundaries(data []byte) []Boundary {
	r := NewNibbles(data)
	n := r.Number()
	if r.Bad || uint64(n) > uint64(len(data)) {
		return nil
	}
	out := make([]Boundary, 0, n)
	at := uint32(0)
	for range n {
		at += r.Number()
		il := int32(r.Number()) - instructionBias
		r.Number()
		if r.Bad {
			return nil
		}
		out = append(out, Boundary{at, il})
	}
	return out
}

// InstructionAt returns the offset of the instruction to which the code at an offset belongs: the
// prologue to the first, code that belongs to none to the one before. It is false if nothing is
// known.
func InstructionAt(all []Boundary, off uint32) (uint32, bool) {
	il, ok := uint32(0), len(all) > 0
	for _, b := range all {
		if b.Native > off {
			break
		}
		if b.IL >= 0 {
			il = uint32(b.IL)
		}
	}
	return il, ok
}
