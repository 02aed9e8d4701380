package simd

// shuffled defines an instruction that takes each element of each 16 bytes from one of A's or B's.
// If one is set it is always B's. from returns it: an index of the 16 bytes, and whether they are B's.
func shuffled(one bool, size int, from func(imm byte, lane, i int) (int, bool), names ...string) {
	define(Op{One: one, Elem: size, Run: func(c *Call) {
		for l := 0; l < c.N; l += 16 {
			for i := range 16 / size {
				at, isB := from(c.Imm, l/16, i)
				v := &c.A
				if isB {
					v = &c.B
				}
				c.R.copy(l+i*size, v, l+at*size, size)
			}
		}
	}}, names...)
}

func init() {
	for l, n := range sizes {
		pair := map[rune]string{'B': "BW", 'W': "WD", 'D': "DQ", 'Q': "QDQ"}[l]
		half := 8 / n
		low := func(_ byte, _, i int) (int, bool) { return i / 2, i&1 != 0 }
		high := func(_ byte, _, i int) (int, bool) { return half + i/2, i&1 != 0 }
		shuffled(false, n, low, "PUNPCKL"+pair)
		shuffled(false, n, high, "PUNPCKH"+pair)
		if l == 'D' {
			shuffled(false, n, low, "UNPCKLPS")
			shuffled(false, n, high, "UNPCKHPS")
		} else if l == 'Q' {
			shuffled(false, n, low, "UNPCKLPD")
			shuffled(false, n, high, "UNPCKHPD")
		}
	}
	two := func(imm byte, i int) int { return int(imm >> (2 * i) & 3) }
	shuffled(true, 4, func(imm byte, _, i int) (int, bool) { return two(imm, i), true }, "PSHUFD")
	shuffled(true, 2, func(imm byte, _, i int) (int, bool) {
		if i < 4 {
			return two(imm, i), true
		}
		return i, true
	}, "PSHUFLW")
	shuffled(true, 2, func(imm byte, _, i int) (int, bool) {
		if i < 4 {
			return i, true
		}
		return 4 + two(imm, i-4), true
	}, "PSHUFHW")
	shuffled(false, 4, func(imm byte, _, i int) (int, bool) { return two(imm, i), i >= 2 }, "SHUFPS")
	shuffled(false, 8, func(imm byte, lane, i int) (int, bool) { return int(imm >> (2*lane + i) & 1), i == 1 }, "SHUFPD")
	shuffled(false, 2, func(imm byte, _, i int) (int, bool) { return i, imm>>i&1 != 0 }, "PBLENDW")
	shuffled(false, 4, func(imm byte, lane, i int) (int, bool) { return i, imm>>(4*lane+i)&1 != 0 }, "BLENDPS", "VPBLENDD")
	shuffled(false, 8, func(imm byte, lane, i int) (int, bool) { return i, imm>>(2*lane+i)&1 != 0 }, "BLENDPD")
	define(Op{Run: alignRight, Elem: 1}, "PALIGNR")
	define(Op{Run: shuffleBytes, Elem: 1}, "PSHUFB")
	for name, n := range map[string]int{"PBLENDVB": 1, "BLENDVPS": 4, "BLENDVPD": 8} {
		define(Op{Run: func(c *Call) {
			for o := 0; o < c.N; o += n {
				if at := o + n - 1; c.C.Known>>at&1 == 0 {
					continue
				} else if c.C.B[at]>>7 != 0 {
					c.R.copy(o, &c.B, o, n)
				} else {
					c.R.copy(o, &c.A, o, n)
				}
			}
		}}, name)
	}
	for name, n := range map[string]int{"VPERMD": 4, "VPERMPS": 4} {
		define(Op{Elem: n, Run: func(c *Call) { // A has the indices
			for o := 0; o < c.N; o += n {
				if i, ok := c.A.get(o, n); ok {
					c.R.copy(o, &c.B, int(i)*n&(c.N-1), n)
				}
			}
		}}, name)
	}
}

// alignRight executes palignr.
func alignRight(c *Call) {
	for l := 0; l < c.N; l += 16 {
		for i := range 16 {
			switch at := i + int(c.Imm); {
			case at < 16:
				c.R.copy(l+i, &c.B, l+at, 1)
			case at < 32:
				c.R.copy(l+i, &c.A, l+at-16, 1)
			default:
				c.R.zero(l+i, l+i+1)
			}
		}
	}
}

// shuffleBytes executes pshufb.
func shuffleBytes(c *Call) {
	for i := range c.N {
		if c.B.Known>>i&1 == 0 {
			continue
		}
		if s := c.B.B[i]; s&0x80 != 0 {
			c.R.zero(i, i+1)
		} else {
			c.R.copy(i, &c.A, i&^15+int(s&15), 1)
		}
	}
}
