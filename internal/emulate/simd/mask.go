package simd

// bitsOf collects a bit for each element of A and B.
func bitsOf(size int, f func(c *Call, x, y uint64) bool) func(*Call) {
	return func(c *Call) {
		var r, unknown uint64
		for o := 0; o < c.N; o += size {
			x, ok := c.A.get(o, size)
			y, too := c.B.get(o, size)
			if !ok || !too {
				unknown |= 1 << (o / size)
			} else if f(c, x, y) {
				r |= 1 << (o / size)
			}
		}
		c.R.setBits(r, unknown)
	}
}

// masks are the instructions of AVX-512 that make a mask of vectors, by their names: those that make
// a vector of vectors if they have a VEX prefix are here, too.
var masks = map[string]*Op{}

// Mask returns how an instruction is executed whose destination is a register of masks; nil if it is
// none of those that this package knows.
func Mask(name string) *Op { return masks[name] }

func init() {
	order := func(imm byte, less, equal bool) bool {
		return [8]bool{equal, less, less || equal, false, !equal, !less, !less && !equal, true}[imm&7]
	}
	for l, n := range sizes {
		s := string(l)
		mask := func(name string, f func(c *Call, x, y uint64) bool) { masks[name] = &Op{Elem: n, Run: bitsOf(n, f)} }
		mask("VPCMPEQ"+s, func(_ *Call, x, y uint64) bool { return x == y })
		mask("VPCMPGT"+s, func(_ *Call, x, y uint64) bool { return sign(x, n) > sign(y, n) })
		mask("VPTESTM"+s, func(_ *Call, x, y uint64) bool { return x&y != 0 })
		mask("VPTESTNM"+s, func(_ *Call, x, y uint64) bool { return x&y == 0 })
		mask("VPCMP"+s, func(c *Call, x, y uint64) bool { return order(c.Imm, sign(x, n) < sign(y, n), x == y) })
		mask("VPCMPU"+s, func(c *Call, x, y uint64) bool { return order(c.Imm, x < y, x == y) })
		masks["VPMOV"+s+"2M"] = &Op{One: true, Run: highBits(n)}
	}
}
