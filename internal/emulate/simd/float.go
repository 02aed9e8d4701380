package simd

import "math"

// format is one of the two formats of numbers; what is computed is given as
// numbers of 8 bytes, which hold those of 4 exactly.
type format struct {
	size     int
	of       func(bits uint64) float64
	bits     func(x float64) uint64
	smallest float64 // of the normal numbers
}

var (
	single = format{4, func(b uint64) float64 { return float64(math.Float32frombits(uint32(b))) },
		func(x float64) uint64 { return uint64(math.Float32bits(float32(x))) }, 0x1p-126}
	full = format{8, math.Float64frombits, math.Float64bits, 0x1p-1022}
)

// plain reports whether a number means the same whatever MXCSR says: not denormal, not NaN.
func (f *format) plain(x float64) bool {
	a := math.Abs(x)
	return a == 0 || a >= f.smallest
}

// result returns a result's bits; false if it may depend on MXCSR, or is NaN. For numbers of 4
// bytes, sums, products, quotients and square roots that are rounded to 8 bytes first are the same
// as those rounded once.
func (f *format) result(x float64) (uint64, bool) {
	a := math.Abs(x)
	if a != 0 && a <= 2*f.smallest || x != x {
		return 0, false
	}
	return f.bits(x), true
}

// number reads an element.
func (f *format) number(v *Vec, off int) (float64, bool) {
	b, ok := v.get(off, f.size)
	x := f.of(b)
	return x, ok && f.plain(x)
}

// arithmetic defines an instruction on numbers in its four forms: PS, PD, SS, SD. Of the last two,
// only the first element is computed, the others are A's.
func arithmetic(name string, run func(f *format, c *Call, off int) (uint64, bool)) {
	for _, f := range []*format{&single, &full} {
		letter := map[int]string{4: "S", 8: "D"}[f.size]
		define(Op{Float: true, Elem: f.size, Run: func(c *Call) {
			for o := 0; o < c.N; o += f.size {
				if r, ok := run(f, c, o); ok {
					c.R.put(o, f.size, r)
				}
			}
		}}, name+"P"+letter)
		op := Op{Float: true, Elem: f.size, Run: func(c *Call) { scalar(c, f.size, func() (uint64, bool) { return run(f, c, 0) }) }}
		if name == "CMP" && f == &full {
			define(op, "CMPSD_XMM", "VCMPSD") // CMPSD alone is the string instruction
			continue
		}
		define(op, name+"S"+letter)
	}
}

// scalar computes the first element; the others are A's.
func scalar(c *Call, size int, f func() (uint64, bool)) {
	c.R = c.A
	r, ok := f()
	if c.R.Known &^= Bytes(size); ok {
		c.R.put(0, size, r)
	}
}

// twoNumbers is arithmetic on two numbers.
func twoNumbers(name string, f func(x, y float64) float64) {
	arithmetic(name, func(t *format, c *Call, off int) (uint64, bool) {
		x, ok := t.number(&c.A, off)
		y, too := t.number(&c.B, off)
		if !ok || !too {
			return 0, false
		}
		return t.result(f(x, y))
	})
}

func init() {
	twoNumbers("ADD", func(x, y float64) float64 { return x + y })
	twoNumbers("SUB", func(x, y float64) float64 { return x - y })
	twoNumbers("MUL", func(x, y float64) float64 { return x * y })
	twoNumbers("DIV", func(x, y float64) float64 { return x / y })
	arithmetic("SQRT", func(t *format, c *Call, off int) (uint64, bool) {
		x, ok := t.number(&c.B, off)
		if !ok {
			return 0, false
		}
		return t.result(math.Sqrt(x))
	})
	// The smaller and the larger number: B, unless A is (two zeros are equal).
	for name, less := range map[string]func(x, y float64) bool{
		"MIN": func(x, y float64) bool { return x < y }, "MAX": func(x, y float64) bool { return x > y },
	} {
		arithmetic(name, func(t *format, c *Call, off int) (uint64, bool) {
			x, ok := t.number(&c.A, off)
			y, too := t.number(&c.B, off)
			if !ok || !too {
				return 0, false
			}
			if less(x, y) {
				return t.bits(x), true
			}
			return t.bits(y), true
		})
	}
	arithmetic("CMP", func(t *format, c *Call, off int) (uint64, bool) {
		x, ok := c.A.get(off, t.size)
		y, too := c.B.get(off, t.size)
		a, b := t.of(x), t.of(y)
		nan := a != a || b != b
		if !ok || !too || !nan && (!t.plain(a) || !t.plain(b)) {
			return 0, false
		}
		var is bool
		switch c.Imm & 7 {
		case 0:
			is = a == b
		case 1:
			is = a < b
		case 2:
			is = a <= b
		case 3:
			is = nan
		case 4:
			is = a != b
		case 5:
			is = !(a < b)
		case 6:
			is = !(a <= b)
		case 7:
			is = !nan
		}
		if c.Imm&8 != 0 { // AVX only: equal or unordered, and so on
			is = [8]bool{a == b || nan, !(a >= b), !(a > b), false, a != b && !nan, a >= b, a > b, true}[c.Imm&7]
		}
		return ones(is), true
	})
	for _, t := range []*format{&single, &full} {
		letter := map[int]string{4: "S", 8: "D"}[t.size]
		define(Op{Float: true, Flags: true, Run: func(c *Call) { compareNumbers(t, c) }}, "UCOMIS"+letter, "COMIS"+letter)
	}
	fused()
	conversions()
}

// compareNumbers executes ucomiss and ucomisd.
func compareNumbers(t *format, c *Call) {
	x, ok := c.A.get(0, t.size)
	y, too := c.B.get(0, t.size)
	a, b := t.of(x), t.of(y)
	nan := a != a || b != b
	if !ok || !too || !nan && (!t.plain(a) || !t.plain(b)) {
		return
	}
	switch {
	case nan:
		c.R.put(0, 8, zero|parity|carry)
	default:
		c.R.put(0, 8, bit(a == b)*zero|bit(a < b)*carry)
	}
}

// fused defines multiplication and addition that are rounded once, for numbers of 8 bytes.
func fused() {
	for order, pick := range map[string]func(c *Call) [3]*Vec{
		"132": func(c *Call) [3]*Vec { return [3]*Vec{&c.Old, &c.B, &c.A} },
		"213": func(c *Call) [3]*Vec { return [3]*Vec{&c.A, &c.Old, &c.B} },
		"231": func(c *Call) [3]*Vec { return [3]*Vec{&c.A, &c.B, &c.Old} },
	} {
		for name, signs := range map[string][2]float64{"FMADD": {1, 1}, "FMSUB": {1, -1}, "FNMADD": {-1, 1}, "FNMSUB": {-1, -1}} {
			one := func(c *Call, off int) (uint64, bool) {
				v := pick(c)
				x, ok := full.number(v[0], off)
				y, too := full.number(v[1], off)
				z, all := full.number(v[2], off)
				if !ok || !too || !all {
					return 0, false
				}
				return full.result(math.FMA(signs[0]*x, y, signs[1]*z))
			}
			define(Op{Float: true, Old: true, Elem: 8, Run: func(c *Call) {
				for o := 0; o < c.N; o += 8 {
					if r, ok := one(c, o); ok {
						c.R.put(o, 8, r)
					}
				}
			}}, "V"+name+order+"PD")
			define(Op{Float: true, Old: true, Elem: 8, Run: func(c *Call) {
				r, ok := one(c, 0)
				if c.R = c.Old; !ok {
					c.R.Known &^= 0xff
					return
				}
				c.R.put(0, 8, r)
			}}, "V"+name+order+"SD")
		}
	}
}
