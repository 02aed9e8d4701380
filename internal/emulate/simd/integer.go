package simd

import "math/bits"

// saturate bounds a number to what an element of size bytes holds.
func saturate(x int64, size int, signed bool) uint64 {
	least, most := int64(0), int64(1)<<(8*size)-1
	if signed {
		least, most = -1<<(8*size-1), 1<<(8*size-1)-1
	}
	return uint64(min(max(x, least), most))
}

// packed defines an instruction for elements of the sizes that letters stand for: B, W, D, Q.
func packed(name, letters string, op Op, f func(size int) func(x, y uint64) uint64) {
	for _, l := range letters {
		size := sizes[l]
		op.Run, op.Elem = lanes(size, f(size)), size
		define(op, name+string(l))
	}
}

var sizes = map[rune]int{'B': 1, 'W': 2, 'D': 4, 'Q': 8}

func init() {
	same := Op{Same: true}
	none := Op{}
	packed("PADD", "BWDQ", none, func(int) func(x, y uint64) uint64 { return func(x, y uint64) uint64 { return x + y } })
	packed("PSUB", "BWDQ", same, func(int) func(x, y uint64) uint64 { return func(x, y uint64) uint64 { return x - y } })
	packed("PADDUS", "BW", none, func(n int) func(x, y uint64) uint64 {
		return func(x, y uint64) uint64 { return saturate(int64(x+y), n, false) }
	})
	packed("PSUBUS", "BW", same, func(n int) func(x, y uint64) uint64 {
		return func(x, y uint64) uint64 { return saturate(int64(x-y), n, false) }
	})
	packed("PADDS", "BW", none, func(n int) func(x, y uint64) uint64 {
		return func(x, y uint64) uint64 { return saturate(sign(x, n)+sign(y, n), n, true) }
	})
	packed("PSUBS", "BW", same, func(n int) func(x, y uint64) uint64 {
		return func(x, y uint64) uint64 { return saturate(sign(x, n)-sign(y, n), n, true) }
	})
	packed("PAVG", "BW", none, func(int) func(x, y uint64) uint64 { return func(x, y uint64) uint64 { return (x + y + 1) >> 1 } })
	packed("PMINU", "BWDQ", none, func(int) func(x, y uint64) uint64 { return func(x, y uint64) uint64 { return min(x, y) } })
	packed("PMAXU", "BWDQ", none, func(int) func(x, y uint64) uint64 { return func(x, y uint64) uint64 { return max(x, y) } })
	packed("PMINS", "BWDQ", none, func(n int) func(x, y uint64) uint64 {
		return func(x, y uint64) uint64 { return uint64(min(sign(x, n), sign(y, n))) }
	})
	packed("PMAXS", "BWDQ", none, func(n int) func(x, y uint64) uint64 {
		return func(x, y uint64) uint64 { return uint64(max(sign(x, n), sign(y, n))) }
	})
	packed("PCMPEQ", "BWDQ", same, func(int) func(x, y uint64) uint64 { return func(x, y uint64) uint64 { return ones(x == y) } })
	packed("PCMPGT", "BWDQ", same, func(n int) func(x, y uint64) uint64 {
		return func(x, y uint64) uint64 { return ones(sign(x, n) > sign(y, n)) }
	})
	packed("PSIGN", "BWD", none, func(n int) func(x, y uint64) uint64 {
		return func(x, y uint64) uint64 {
			switch s := sign(y, n); {
			case s < 0:
				return -x
			case s == 0:
				return 0
			}
			return x
		}
	})
	packed("PMULL", "WDQ", none, func(int) func(x, y uint64) uint64 { return func(x, y uint64) uint64 { return x * y } })
	word := func(name string, f func(x, y uint64) uint64) { define(Op{Run: lanes(2, f), Elem: 2}, name) }
	word("PMULHW", func(x, y uint64) uint64 { return uint64(sign(x, 2) * sign(y, 2) >> 16) })
	word("PMULHUW", func(x, y uint64) uint64 { return x * y >> 16 })
	word("PMULHRSW", func(x, y uint64) uint64 { return uint64((sign(x, 2)*sign(y, 2)>>14 + 1) >> 1) })
	// Even elements of 4 bytes make 8.
	define(Op{Run: lanes(8, func(x, y uint64) uint64 { return uint64(uint32(x)) * uint64(uint32(y)) }), Elem: 8}, "PMULUDQ")
	define(Op{Run: lanes(8, func(x, y uint64) uint64 { return uint64(int64(int32(x)) * int64(int32(y))) }), Elem: 8}, "PMULDQ")
	define(Op{Run: lanes(4, func(x, y uint64) uint64 {
		return uint64(sign(x, 2)*sign(y, 2) + sign(x>>16, 2)*sign(y>>16, 2))
	}), Elem: 4}, "PMADDWD")
	define(Op{Run: lanes(2, func(x, y uint64) uint64 {
		return saturate(int64(x&0xff)*sign(y, 1)+int64(x>>8&0xff)*sign(y>>8, 1), 2, true)
	}), Elem: 2}, "PMADDUBSW")
	define(Op{Run: lanes(8, func(x, y uint64) (sum uint64) {
		for i := 0; i < 64; i += 8 {
			a, b := x>>i&0xff, y>>i&0xff
			sum += max(a, b) - min(a, b)
		}
		return sum
	}), Same: true}, "PSADBW")
	for l, n := range sizes {
		define(Op{One: true, Run: each(n, func(x uint64) uint64 { s := sign(x, n); return uint64(max(s, -s)) }), Elem: n}, "PABS"+string(l))
		define(Op{One: true, Run: each(n, func(x uint64) uint64 { return uint64(bits.OnesCount64(x)) }), Elem: n}, "VPOPCNT"+string(l))
	}
	logic()
	shifts()
	define(Op{Flags: true, Run: testAll}, "PTEST")
	define(Op{One: true, Run: highBits(1)}, "PMOVMSKB")
	define(Op{One: true, Run: highBits(4)}, "MOVMSKPS")
	define(Op{One: true, Run: highBits(8)}, "MOVMSKPD")
}

// logic defines what works on bits.
func logic() {
	null := func(x byte, _ bool) (byte, bool) { return 0, x == 0 }
	for _, s := range []struct {
		ops     []string
		same    bool
		f       func(x, y byte) byte
		decides func(x byte, isA bool) (byte, bool)
	}{
		{[]string{"PAND", "AND"}, false, func(x, y byte) byte { return x & y }, null},
		{[]string{"PANDN", "ANDN"}, true, func(x, y byte) byte { return ^x & y }, func(x byte, isA bool) (byte, bool) {
			return 0, isA && x == 0xff || !isA && x == 0
		}},
		{[]string{"POR", "OR"}, false, func(x, y byte) byte { return x | y }, func(x byte, _ bool) (byte, bool) { return 0xff, x == 0xff }},
		{[]string{"PXOR", "XOR"}, true, func(x, y byte) byte { return x ^ y }, func(byte, bool) (byte, bool) { return 0, false }},
	} {
		run := bitwise(s.f, s.decides)
		define(Op{Run: run, Same: s.same}, s.ops[0])
		define(Op{Run: run, Same: s.same, Elem: 4}, "V"+s.ops[0]+"D", s.ops[1]+"PS")
		define(Op{Run: run, Same: s.same, Elem: 8}, "V"+s.ops[0]+"Q", s.ops[1]+"PD")
	}
	for l, n := range map[string]int{"D": 4, "Q": 8} {
		define(Op{Old: true, Elem: n, Run: func(c *Call) {
			for i := 0; i < c.N; i += 8 {
				r, known := ternary(c, i)
				c.R.SetWord(i, r, known)
			}
		}}, "VPTERNLOG"+l)
	}
}

// ternary computes 8 bytes of a function of three bits that its table gives.
func ternary(c *Call, off int) (r uint64, known uint8) {
	x, kx := c.Old.Word(off)
	y, ky := c.A.Word(off)
	z, kz := c.B.Word(off)
	for i := range 8 {
		if c.Imm>>i&1 != 0 {
			r |= (x ^ -bit(i&4 == 0)) & (y ^ -bit(i&2 == 0)) & (z ^ -bit(i&1 == 0))
		}
	}
	if c.Imm == 0 || c.Imm == 0xff {
		return r, 0xff
	}
	return r, kx & ky & kz
}

// shifts defines the shifts of elements.
func shifts() {
	kinds := map[string]func(size int) func(x, n uint64) uint64{
		"PSLL": func(size int) func(x, n uint64) uint64 {
			return func(x, n uint64) uint64 { return x << n * bit(n < uint64(8*size)) }
		},
		"PSRL": func(size int) func(x, n uint64) uint64 {
			return func(x, n uint64) uint64 { return x >> n * bit(n < uint64(8*size)) }
		},
		"PSRA": func(size int) func(x, n uint64) uint64 {
			return func(x, n uint64) uint64 { return uint64(sign(x, size) >> min(n, uint64(8*size-1))) }
		},
	}
	for name, kind := range kinds {
		for _, l := range "WDQ" {
			n := sizes[l]
			f := kind(n)
			define(Op{Elem: n, Shift: true, Run: func(c *Call) {
				count, ok := c.B.get(0, 8)
				if !ok {
					return
				}
				for o := 0; o < c.N; o += n {
					if x, ok := c.A.get(o, n); ok {
						c.R.put(o, n, f(x, count))
					}
				}
			}}, name+string(l))
			define(Op{Elem: n, Run: lanes(n, f)}, "V"+name+"V"+string(l))
		}
	}
	whole := func(name string, by func(n int) int) {
		define(Op{Shift: true, Run: func(c *Call) {
			n, _ := c.B.get(0, 1)
			for l := 0; l < c.N; l += 16 {
				for i := range 16 {
					if from := i + by(int(n)); from < 0 || from > 15 {
						c.R.zero(l+i, l+i+1)
					} else {
						c.R.copy(l+i, &c.A, l+from, 1)
					}
				}
			}
		}}, name)
	}
	whole("PSLLDQ", func(n int) int { return -n })
	whole("PSRLDQ", func(n int) int { return n })
}

// testAll executes ptest: the zero flag of A and B, the carry flag of not A and B.
func testAll(c *Call) {
	and, andn := uint64(0), uint64(0)
	for o := 0; o < c.N; o += 8 {
		x, ok := c.A.get(o, 8)
		y, too := c.B.get(o, 8)
		if !ok || !too {
			return
		}
		and |= x & y
		andn |= ^x & y
	}
	c.R.put(0, 8, bit(and == 0)*zero|bit(andn == 0)*carry)
}

// highBits collects the highest bit of each element of B.
func highBits(size int) func(*Call) {
	return func(c *Call) {
		var r, unknown uint64
		for o := 0; o < c.M; o += size {
			i := o / size
			if at := o + size - 1; c.B.Known>>at&1 == 0 {
				unknown |= 1 << i
			} else {
				r |= uint64(c.B.B[at]>>7) << i
			}
		}
		c.R.setBits(r, unknown)
	}
}

// setBits sets the first 8 bytes to bits, of which some are not known.
func (v *Vec) setBits(r, unknown uint64) {
	var known uint8
	for i := range 8 {
		if unknown>>(8*i)&0xff == 0 {
			known |= 1 << i
		}
	}
	v.SetWord(0, r, known)
}
