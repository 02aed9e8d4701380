package oracle

// prefix skips the prefixes that a call or a return may carry: operand and
// segment overrides, bnd, notrack, rep, and REX.
func prefix(b []byte) []byte {
	for len(b) > 3 {
		switch c := b[0]; {
		case c == 0x66, c == 0x67, c == 0xf2, c == 0xf3, c == 0x2e, c == 0x36, c == 0x3e, c == 0x26, c == 0x64, c == 0x65:
		case c >= 0x40 && c <= 0x4f:
		default:
			return b
		}
		b = b[1:]
	}
	return b
}

// isCall recognises E8 (relative), FF /2 (indirect) and FF /3 (far) calls.
func isCall(b []byte) bool {
	b = prefix(b)
	if b[0] == 0xe8 {
		return true
	}
	op := b[1] >> 3 & 7
	return b[0] == 0xff && (op == 2 || op == 3)
}

// isRet recognises C3, C2 and the far CB and CA.
func isRet(b []byte) bool {
	b = prefix(b)
	switch b[0] {
	case 0xc3, 0xc2, 0xcb, 0xca:
		return true
	}
	return false
}
