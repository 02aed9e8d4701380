package clrdebug

// Nibbles reads numbers of four bits each, of which the highest says that more follow; the higher
// bits come first, and the lower half of a byte.
type Nibbles struct {
	Bad bool // a number was not there, or too long
	b   []byte
	at  int // in nibbles
}

// NewNibbles returns a reader of b, which must not change.
func NewNibbles(b []byte) *Nibbles { return &Nibbles{b: b} }

// Number reads a number of up to 32 bits; 0, and Bad, if there is none.
func (r *Nibbles) Number() uint32 {
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
	r.Bad = true
	return 0
}

// Signed reads a number whose lowest bit is its sign.
func (r *Nibbles) Signed() int32 {
	v := r.Number()
	if v&1 != 0 {
		return -int32(v >> 1)
	}
	return int32(v >> 1)
}

// Word reads 64 bits as they are, the lowest four first.
func (r *Nibbles) Word() (v uint64) {
	for shift := 0; shift < 64; shift += 4 {
		if r.at/2 >= len(r.b) {
			r.Bad = true
			return 0
		}
		v |= uint64(r.b[r.at/2]>>(4*(r.at&1))&15) << shift
		r.at++
	}
	return v
}

// Next returns the next whole byte.
func (r *Nibbles) Next() int { return (r.at + 1) / 2 }
