package simd

import "math"

// conversions defines what converts between numbers and integers.
func conversions() {
	for _, t := range []*format{&single, &full} {
		letter := map[int]string{4: "S", 8: "D"}[t.size]
		define(Op{Float: true, Run: func(c *Call) {
			scalar(c, t.size, func() (uint64, bool) {
				x, ok := c.B.get(0, c.M)
				return integerTo(t, sign(x, c.M)), ok
			})
		}}, "CVTSI2S"+letter)
		for prefix, round := range map[string]func(float64) float64{"CVTT": math.Trunc, "CVT": math.RoundToEven} {
			define(Op{Float: true, One: true, Run: func(c *Call) {
				x, ok := c.B.get(0, t.size)
				if ok && t.known(x) {
					c.R.put(0, 8, toInteger(round(t.of(x)), c.N)&bits64(c.N))
				}
			}}, prefix+"S"+letter+"2SI")
		}
		define(Op{Float: true, One: true, Elem: t.size, Run: func(c *Call) {
			for o := 0; o < c.N; o += t.size {
				if r, ok := rounded(t, c, o); ok {
					c.R.put(o, t.size, r)
				}
			}
		}}, "ROUNDP"+letter)
		define(Op{Float: true, Run: func(c *Call) { scalar(c, t.size, func() (uint64, bool) { return rounded(t, c, 0) }) }}, "ROUNDS"+letter)
	}
	change := func(c *Call, from, to *format, off int) (uint64, bool) {
		x, ok := from.number(&c.B, off)
		if !ok {
			return 0, false
		}
		return to.result(x)
	}
	define(Op{Float: true, Run: func(c *Call) { scalar(c, 8, func() (uint64, bool) { return change(c, &single, &full, 0) }) }}, "CVTSS2SD")
	define(Op{Float: true, Run: func(c *Call) { scalar(c, 4, func() (uint64, bool) { return change(c, &full, &single, 0) }) }}, "CVTSD2SS")
	// Vectors: the sizes of the elements, how many bytes of B there are, and what becomes of one.
	vectors := func(from, to int, f func(c *Call, off int) (uint64, bool), name string) {
		define(Op{Float: true, One: true, Elem: to, Run: func(c *Call) {
			n := c.N / to
			if from > to {
				n = c.M / from
				c.R.zero(n*to, MaxBytes)
			}
			for i := range n {
				if r, ok := f(c, i*from); ok {
					c.R.put(i*to, to, r)
				}
			}
		}}, name)
	}
	integer := func(t *format) func(c *Call, off int) (uint64, bool) {
		return func(c *Call, off int) (uint64, bool) {
			x, ok := c.B.get(off, 4)
			return integerTo(t, sign(x, 4)), ok
		}
	}
	vectors(4, 4, integer(&single), "CVTDQ2PS")
	vectors(4, 8, integer(&full), "CVTDQ2PD")
	vectors(4, 8, func(c *Call, off int) (uint64, bool) { return change(c, &single, &full, off) }, "CVTPS2PD")
	vectors(8, 4, func(c *Call, off int) (uint64, bool) { return change(c, &full, &single, off) }, "CVTPD2PS")
	for prefix, round := range map[string]func(float64) float64{"CVTT": math.Trunc, "CVT": math.RoundToEven} {
		for _, t := range []*format{&single, &full} {
			letter := map[int]string{4: "S", 8: "D"}[t.size]
			vectors(t.size, 4, func(c *Call, off int) (uint64, bool) {
				x, ok := c.B.get(off, t.size)
				return toInteger(round(t.of(x)), 4), ok && t.known(x)
			}, prefix+"P"+letter+"2DQ")
		}
	}
}

// known reports whether the bits of a number can be converted to an integer whatever MXCSR says: NaN
// can.
func (f *format) known(bits uint64) bool {
	x := f.of(bits)
	return x != x || f.plain(x)
}

// bits64 returns the bits of a number's first n bytes.
func bits64(n int) uint64 {
	if n >= 8 {
		return ^uint64(0)
	}
	return 1<<(8*n) - 1
}

// integerTo converts an integer, rounding once.
func integerTo(t *format, x int64) uint64 {
	if t.size == 4 {
		return uint64(math.Float32bits(float32(x)))
	}
	return math.Float64bits(float64(x))
}

// toInteger converts a number without a fraction; one that does not fit gives the smallest integer.
func toInteger(x float64, size int) uint64 {
	limit := math.Ldexp(1, 8*size-1)
	if !(x >= -limit && x < limit) {
		return 1 << (8*size - 1)
	}
	return uint64(int64(x))
}

// rounded executes roundss and its like on an element.
func rounded(t *format, c *Call, off int) (uint64, bool) {
	x, ok := t.number(&c.B, off)
	if !ok {
		return 0, false
	}
	if c.Imm&4 != 0 {
		x = math.RoundToEven(x)
	} else {
		x = [4]func(float64) float64{math.RoundToEven, math.Floor, math.Ceil, math.Trunc}[c.Imm&3](x)
	}
	return t.bits(x), true
}
