package simd

// first copies the first n bytes of B and clears what is above in a register.
func first(n int) func(*Call) {
	return func(c *Call) {
		c.R.copy(0, &c.B, 0, n)
		c.R.zero(n, MaxBytes)
	}
}

func init() {
	copies := func(c *Call) { c.R = c.B }
	define(Op{One: true, Run: copies}, "MOVDQA", "MOVDQU", "LDDQU", "MOVNTDQ", "MOVNTDQA")
	define(Op{One: true, Run: copies, Elem: 4}, "MOVAPS", "MOVUPS", "MOVNTPS", "VMOVDQA32", "VMOVDQU32")
	define(Op{One: true, Run: copies, Elem: 8}, "MOVAPD", "MOVUPD", "MOVNTPD", "VMOVDQA64", "VMOVDQU64")
	define(Op{One: true, Run: copies, Elem: 1}, "VMOVDQU8")
	define(Op{One: true, Run: copies, Elem: 2}, "VMOVDQU16")
	define(Op{One: true, Run: first(4)}, "MOVD")
	define(Op{One: true, Run: first(8)}, "MOVQ")
	for name, n := range map[string]int{"MOVSS": 4, "MOVSD_XMM": 8, "VMOVSD": 8} {
		define(Op{Elem: n, Run: func(c *Call) {
			if c.R = c.A; c.FromMemory {
				c.R.zero(0, 16)
			}
			c.R.copy(0, &c.B, 0, n)
		}}, name)
	}
	define(Op{Run: func(c *Call) {
		if !c.ToMemory {
			c.R = c.A
		}
		c.R.copy(0, &c.B, 0, 8)
	}}, "MOVLPS", "MOVLPD")
	define(Op{Run: func(c *Call) {
		if c.ToMemory {
			c.R.copy(0, &c.B, 8, 8)
			return
		}
		c.R = c.A
		c.R.copy(8, &c.B, 0, 8)
	}}, "MOVHPS", "MOVHPD", "MOVLHPS")
	define(Op{Run: func(c *Call) {
		c.R = c.A
		c.R.copy(0, &c.B, 8, 8)
	}}, "MOVHLPS")
	double := func(name string, size, from, to int) {
		define(Op{One: true, Elem: size, Run: func(c *Call) {
			for o := 0; o < c.N; o += 2 * size {
				c.R.copy(o, &c.B, o+from, size)
				c.R.copy(o+size, &c.B, o+to, size)
			}
		}}, name)
	}
	double("MOVDDUP", 8, 0, 0)
	double("MOVSLDUP", 4, 0, 0)
	double("MOVSHDUP", 4, 4, 4)
	inserts()
	broadcasts()
	extensions()
}

// inserts defines what moves elements into vectors and out of them.
func inserts() {
	for l, n := range sizes {
		extract := func(c *Call) {
			c.R.copy(0, &c.B, int(c.Imm)*n&15, n)
			c.R.zero(n, 8)
		}
		define(Op{One: true, Run: extract}, "PEXTR"+string(l))
		define(Op{Run: func(c *Call) {
			c.R = c.A
			c.R.copy(int(c.Imm)*n&15, &c.B, 0, n)
		}}, "PINSR"+string(l))
		if l == 'D' {
			define(Op{One: true, Run: extract}, "EXTRACTPS")
		}
		if l == 'W' {
			define(Op{One: true, Run: extract}, "VPEXTRW_C5")
		}
	}
	define(Op{Run: func(c *Call) {
		c.R = c.A
		from := int(c.Imm>>6) * 4
		if c.FromMemory {
			from = 0
		}
		c.R.copy(int(c.Imm>>4&3)*4, &c.B, from, 4)
		for i := range 4 {
			if c.Imm>>i&1 != 0 {
				c.R.zero(4*i, 4*i+4)
			}
		}
	}}, "INSERTPS")
	for _, p := range []struct {
		suffix     string
		size, elem int
	}{
		{"F128", 16, 0}, {"I128", 16, 0}, {"F32X4", 16, 4}, {"I32X4", 16, 4}, {"F64X2", 16, 8}, {"I64X2", 16, 8},
		{"F32X8", 32, 4}, {"I32X8", 32, 4}, {"F64X4", 32, 8}, {"I64X4", 32, 8},
	} {
		n := p.size
		define(Op{One: true, Elem: p.elem, Run: func(c *Call) {
			if at := int(c.Imm) * n; at < c.M {
				c.R.copy(0, &c.B, at, n)
			}
		}}, "VEXTRACT"+p.suffix)
		define(Op{Elem: p.elem, Run: func(c *Call) {
			if at := int(c.Imm) * n; at < c.N {
				c.R = c.A
				c.R.copy(at, &c.B, 0, n)
			}
		}}, "VINSERT"+p.suffix)
	}
	perm := func(c *Call) {
		for i := range 2 {
			switch s := c.Imm >> (4 * i); {
			case s&8 != 0:
				c.R.zero(16*i, 16*i+16)
			case s&2 != 0:
				c.R.copy(16*i, &c.B, int(s&1)*16, 16)
			default:
				c.R.copy(16*i, &c.A, int(s&1)*16, 16)
			}
		}
	}
	define(Op{Run: perm}, "VPERM2F128", "VPERM2I128")
}

// broadcasts defines what repeats the beginning of B.
func broadcasts() {
	for name, n := range map[string]int{
		"VPBROADCASTB": 1, "VPBROADCASTW": 2, "VPBROADCASTD": 4, "VPBROADCASTQ": 8, "VBROADCASTSS": 4, "VBROADCASTSD": 8,
		"VBROADCASTF128": 16, "VBROADCASTI128": 16,
	} {
		elem := n
		if n > 8 {
			elem = 0
		}
		define(Op{One: true, Elem: elem, Run: func(c *Call) {
			for o := 0; o < c.N; o += n {
				c.R.copy(o, &c.B, 0, n)
			}
		}}, name)
	}
}

// extensions defines what widens and narrows elements.
func extensions() {
	for _, p := range []string{"BW", "BD", "BQ", "WD", "WQ", "DQ"} {
		from, to := sizes[rune(p[0])], sizes[rune(p[1])]
		widen := func(f func(x uint64) uint64) func(*Call) {
			return func(c *Call) {
				for i := range c.N / to {
					if x, ok := c.B.get(i*from, from); ok {
						c.R.put(i*to, to, f(x))
					}
				}
			}
		}
		define(Op{One: true, Elem: to, Run: widen(func(x uint64) uint64 { return x })}, "PMOVZX"+p)
		define(Op{One: true, Elem: to, Run: widen(func(x uint64) uint64 { return uint64(sign(x, from)) })}, "PMOVSX"+p)
		// Narrowing with the letters the other way round: VPMOVWB.
		define(Op{One: true, Elem: from, Run: func(c *Call) {
			n := c.M / to * from
			for i := range c.M / to {
				c.R.copy(i*from, &c.B, i*to, from)
			}
			c.R.zero(n, MaxBytes)
		}}, "VPMOV"+p[1:]+p[:1])
	}
	pack := func(name string, from int, signed bool) {
		to := from / 2
		define(Op{Elem: to, Run: func(c *Call) {
			for l := 0; l < c.N; l += 16 {
				for i := range 16 / to {
					v := &c.A
					o := i * from
					if i >= 8/to {
						v, o = &c.B, o-16
					}
					if x, ok := v.get(l+o, from); ok {
						c.R.put(l+i*to, to, saturate(sign(x, from), to, signed))
					}
				}
			}
		}}, name)
	}
	pack("PACKSSWB", 2, true)
	pack("PACKSSDW", 4, true)
	pack("PACKUSWB", 2, false)
	pack("PACKUSDW", 4, false)
}
