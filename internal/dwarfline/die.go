package dwarfline

// Numbers from the DWARF 5 standard, section 7.5; GNU extensions from GCC's
// include/dwarf2.def.
const (
	tagClass           = 0x02
	tagLexicalBlock    = 0x0b
	tagCompileUnit     = 0x11
	tagStruct          = 0x13
	tagUnion           = 0x17
	tagInlined         = 0x1d
	tagModule          = 0x1e
	tagCatch           = 0x25
	tagSubprogram      = 0x2e
	tagTry             = 0x32
	tagNamespace       = 0x39
	atSibling          = 0x01
	atName             = 0x03
	atStmtList         = 0x10
	atLowPC            = 0x11
	atHighPC           = 0x12
	atCompDir          = 0x1b
	atOrigin           = 0x31
	atDeclLine         = 0x3b
	atSpecification    = 0x47
	atRanges           = 0x55
	atCallFile         = 0x58
	atCallLine         = 0x59
	atLinkageName      = 0x6e
	atGNUDiscriminator = 0x2136
	atStrOffsetsBase   = 0x72
	atAddrBase         = 0x73
	atRnglistsBase     = 0x74
	atMIPSLinkage      = 0x2007
	atGNUAddrBase      = 0x2133
	formAddr           = 0x01
	formBlock2         = 0x03
	formBlock4         = 0x04
	formData2          = 0x05
	formData4          = 0x06
	formData8          = 0x07
	formString         = 0x08
	formBlock          = 0x09
	formBlock1         = 0x0a
	formData1          = 0x0b
	formFlag           = 0x0c
	formSdata          = 0x0d
	formStrp           = 0x0e
	formUdata          = 0x0f
	formRefAddr        = 0x10
	formRef1           = 0x11
	formRef2           = 0x12
	formRef4           = 0x13
	formRef8           = 0x14
	formRefUdata       = 0x15
	formIndirect       = 0x16
	formSecOffset      = 0x17
	formExprloc        = 0x18
	formFlagPresent    = 0x19
	formStrx           = 0x1a
	formAddrx          = 0x1b
	formRefSup4        = 0x1c
	formStrpSup        = 0x1d
	formData16         = 0x1e
	formLineStrp       = 0x1f
	formRefSig8        = 0x20
	formImplicitConst  = 0x21
	formLoclistx       = 0x22
	formRnglistx       = 0x23
	formRefSup8        = 0x24
	formStrx1          = 0x25
	formStrx2          = 0x26
	formStrx3          = 0x27
	formStrx4          = 0x28
	formAddrx1         = 0x29
	formAddrx2         = 0x2a
	formAddrx3         = 0x2b
	formAddrx4         = 0x2c
	formGNUAddrIndex   = 0x1f01
	formGNUStrIndex    = 0x1f02
	formGNURefAlt      = 0x1f20
	formGNUStrpAlt     = 0x1f21
)

// value is an attribute's value as stored in the file; form 0 means that it is absent.
type value struct {
	form uint16
	v    uint64 // for formString the offset in .debug_info
}

// die holds the attributes of a debugging entry that are used here.
type die struct {
	tag                        uint16
	children                   bool
	name, linkage              value
	low, high, ranges          value
	origin                     value // abstract origin, else specification
	callFile, callLine         value
	declLine                   value
	discriminator              value // of the call that was inlined
	sibling, stmtList, compDir value
	strBase, addrBase, rngBase value
}

// readDIE reads the entry at b; false at the end of a list of siblings or if the data is invalid.
func (d *Data) readDIE(b *buf, u *unit, out *die) bool {
	code := b.uleb()
	if code == 0 || b.bad {
		return false
	}
	ab := u.abbrevs.get(code)
	if ab == nil {
		b.bad = true
		return false
	}
	*out = die{tag: ab.tag, children: ab.children}
	for i := range ab.attrs {
		s := &ab.attrs[i]
		val := b.form(s.form, s.implicit, u)
		if b.bad {
			return false
		}
		switch s.at {
		case atSibling:
			out.sibling = val
		case atName:
			out.name = val
		case atLinkageName, atMIPSLinkage:
			out.linkage = val
		case atLowPC:
			out.low = val
		case atHighPC:
			out.high = val
		case atRanges:
			out.ranges = val
		case atOrigin:
			out.origin = val
		case atSpecification:
			if out.origin.form == 0 {
				out.origin = val
			}
		case atCallFile:
			out.callFile = val
		case atCallLine:
			out.callLine = val
		case atDeclLine:
			out.declLine = val
		case atGNUDiscriminator:
			out.discriminator = val
		case atStmtList:
			out.stmtList = val
		case atCompDir:
			out.compDir = val
		case atStrOffsetsBase:
			out.strBase = val
		case atAddrBase, atGNUAddrBase:
			out.addrBase = val
		case atRnglistsBase:
			out.rngBase = val
		}
	}
	return true
}

// form reads an attribute's value.
func (b *buf) form(form uint16, implicit int64, u *unit) value {
	for n := 0; form == formIndirect; n++ {
		if n == 4 {
			b.bad = true
			return value{}
		}
		f := b.uleb()
		if f >= 1<<16 {
			b.bad = true
		}
		form = uint16(f)
	}
	v := value{form: form}
	switch form {
	case formAddr:
		v.v = b.uint(u.addrSize)
	case formData1, formRef1, formFlag, formStrx1, formAddrx1:
		v.v = uint64(b.u8())
	case formData2, formRef2, formStrx2, formAddrx2:
		v.v = uint64(b.u16())
	case formStrx3, formAddrx3:
		v.v = b.uint(3)
	case formData4, formRef4, formStrx4, formAddrx4, formRefSup4:
		v.v = uint64(b.u32())
	case formData8, formRef8, formRefSig8, formRefSup8:
		v.v = b.u64()
	case formData16:
		b.skip(16)
	case formSdata:
		v.v = uint64(b.sleb())
	case formUdata, formRefUdata, formStrx, formAddrx, formLoclistx, formRnglistx, formGNUAddrIndex, formGNUStrIndex:
		v.v = b.uleb()
	case formStrp, formLineStrp, formSecOffset, formStrpSup, formGNURefAlt, formGNUStrpAlt:
		v.v = b.offset(u.wide)
	case formRefAddr:
		if u.version <= 2 {
			v.v = b.uint(u.addrSize)
		} else {
			v.v = b.offset(u.wide)
		}
	case formString:
		v.v = b.off
		b.skipString()
	case formBlock1:
		b.skip(uint64(b.u8()))
	case formBlock2:
		b.skip(uint64(b.u16()))
	case formBlock4:
		b.skip(uint64(b.u32()))
	case formBlock, formExprloc:
		b.skip(b.uleb())
	case formFlagPresent:
		v.v = 1
	case formImplicitConst:
		v.v = uint64(implicit)
	default:
		b.bad = true
	}
	return v
}

// ref returns the offset in .debug_info that a reference points at.
func (u *unit) ref(v value) (uint64, bool) {
	switch v.form {
	case formRef1, formRef2, formRef4, formRef8, formRefUdata:
		return u.off + v.v, true
	case formRefAddr:
		return v.v, true
	}
	return 0, false // absent, or in another file
}

// str returns a string attribute's text.
func (d *Data) str(u *unit, v value) string {
	switch v.form {
	case formString:
		return d.sect.info.text(v.v)
	case formStrp:
		return d.sect.str.text(v.v)
	case formLineStrp:
		return d.sect.lineStr.text(v.v)
	case formStrx, formStrx1, formStrx2, formStrx3, formStrx4, formGNUStrIndex:
		size := uint64(4)
		if u.wide {
			size = 8
		}
		if v.v > d.sect.strOffsets.size {
			return ""
		}
		b := &d.cur.strOffsets
		b.seek(u.strBase+v.v*size, d.sect.strOffsets.size)
		off := b.offset(u.wide)
		if b.bad {
			return ""
		}
		return d.sect.str.text(off)
	}
	return ""
}

// addr returns an address attribute's value.
func (d *Data) addr(u *unit, v value) (uint64, bool) {
	switch v.form {
	case formAddr:
		return v.v, true
	case formAddrx, formAddrx1, formAddrx2, formAddrx3, formAddrx4, formGNUAddrIndex:
		return d.indexedAddr(u, v.v)
	}
	return 0, false
}

func (d *Data) indexedAddr(u *unit, i uint64) (uint64, bool) {
	if i > d.sect.addr.size {
		return 0, false
	}
	b := &d.cur.addr
	b.seek(u.addrBase+i*uint64(u.addrSize), d.sect.addr.size)
	a := b.uint(u.addrSize)
	return a, !b.bad
}
