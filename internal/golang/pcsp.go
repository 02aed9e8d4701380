package golang

// pcsp runs the table of frame sizes at off, up to an instruction that lies at
// from its function's start. The table is a list of pairs of variable-length
// numbers: by how much the size changes (in zigzag), and for how many units of
// code the new one holds. It ends with a change of 0 that is not the first.
func (t *Table) pcsp(off uint32, from uint64) (int32, bool) {
	if off == 0 {
		return 0, false
	}
	in := varints{t: t, at: t.pcs + int64(off)}
	size, pc := int32(-1), uint64(0)
	for first := true; in.read < maxTable; first = false {
		change, ok := in.next()
		if !ok || change == 0 && !first {
			return 0, false
		}
		length, ok := in.next()
		if !ok {
			return 0, false
		}
		size += int32(change>>1) ^ -int32(change&1)
		pc += uint64(length) * t.step
		if from < pc {
			return size, true
		}
	}
	return 0, false
}

// maxTable bounds one function's table, in bytes. A pair stands for at least one
// instruction.
const maxTable = 1 << 20

// varints reads the numbers that start at an offset of the table.
type varints struct {
	t    *Table
	at   int64
	read int
	buf  [128]byte
	i, n int
}

func (v *varints) byte() (byte, bool) {
	if v.i == v.n {
		v.n, _ = v.t.r.ReadAt(v.buf[:], v.at)
		v.at += int64(v.n)
		if v.i = 0; v.n == 0 {
			return 0, false
		}
	}
	v.i++
	v.read++
	return v.buf[v.i-1], true
}

func (v *varints) next() (uint32, bool) {
	var out uint32
	for shift := 0; shift < 35; shift += 7 {
		b, ok := v.byte()
		if !ok {
			return 0, false
		}
		out |= uint32(b&0x7f) << shift
		if b&0x80 == 0 {
			return out, true
		}
	}
	return 0, false
}
