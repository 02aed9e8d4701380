package pgo

// component returns the first of the numbers that LLVM packs into a discriminator: the block of the
// line, the number of copies that unrolling and vectorizing made, and which copy it is (LLVM:
// DebugInfoMetadata.h, getBaseDiscriminatorFromDiscriminator and the functions after it).
func component(d uint32) uint32 {
	if d&1 != 0 {
		return 0
	}
	if d >>= 1; d&0x20 != 0 {
		return d>>1&0xfe0 | d&0x1f
	}
	return d & 0x1f
}

// nextComponent returns what is behind the first number.
func nextComponent(d uint32) uint32 {
	switch {
	case d&1 != 0:
		return d >> 1
	case d&0x40 != 0:
		return d >> 14
	}
	return d >> 7
}
