package nativeimage

// Marks in place of a bytecode index where each frame stands for itself.
const (
	listEnd      = -1
	listNoValues = -2
)

// maxValues bounds the variables of one frame.
const maxValues = 1 << 16

// valued are the kinds of values that a number follows: places on the stack, registers, constants
// and objects that were never allocated (FrameInfoQueryResult.ValueType).
var valued = [8]bool{1: true, 2: true, 3: true, 5: true}

// decodeList is decode for the oldest format.
func (f *frames) decodeList(r *reader, out []frame) ([]frame, bool) {
	n := len(out)
	for {
		bci := r.signed()
		if bci == listEnd && len(out) > n && !r.bad {
			return out, true
		}
		if bci != listNoValues {
			for range 3 { // locks, local variables, operands
				r.unsigned()
			}
			r.signed()
			r.values()
			if len(out) == n {
				objects := r.unsigned()
				for i := uint64(0); i < objects && !r.bad; i++ {
					r.values()
				}
			}
		}
		class, name, line := r.signed(), r.signed(), r.signed()
		if r.bad || len(out)-n >= maxInlined || class < 0 || uint64(class) >= f.classes.n || name < 0 || uint64(name) >= f.names.n || line < -3 || line >= 1<<24 {
			return out[:n], false
		}
		g := frame{uint32(class), uint32(name), int32(max(line, 0)), -1}
		if bci >= 0 {
			g.bci = bciOf(bci, 0)
		}
		out = append(out, g)
	}
}

// values skips the values of variables.
func (r *reader) values() {
	n := r.unsigned()
	if n > maxValues {
		r.bad = true
	}
	for i := uint64(0); i < n && !r.bad; i++ {
		if r.at >= uint64(len(r.b)) {
			r.bad = true
			return
		}
		kind := r.b[r.at] & 7
		if r.at++; valued[kind] {
			r.signed()
		}
	}
}
