package store

import (
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/candid-profiler/candid/internal/walk"
)

// A block of names of version 2: the indices of the first string, function and frame, then the lists,
// each as columns.
//
// A string is a text, or an earlier one with "+0x" and a number: code that nobody named is called so,
// and there may be as many of these names as of all others together. The column of lengths has twice
// the length of a text, or 1.
// index has the indices of all strings of the segment.
func (f *fresh) encodeNames(c counts, index map[string]uint32) []byte {
	if len(f.strings)+len(f.fns)+len(f.frames) == 0 {
		return nil
	}
	var b []byte
	for _, n := range []uint32{c.strings, c.fns, c.frames} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	b = f.encodeStrings(b, c.strings, index)
	var col [11][]byte
	add := func(i int, v uint64) { col[i] = binary.AppendUvarint(col[i], v) }
	// Most functions have no second name and no signature, which is 0; else these follow the name
	// or resemble what the function before has.
	from := func(i int, now, was uint32) {
		if now == 0 {
			add(i, 0)
			return
		}
		add(i, 1+zigzag(int64(now)-int64(was)))
	}
	b = binary.AppendUvarint(b, uint64(len(f.fns)))
	before := fn{}
	for _, v := range f.fns {
		add(0, zigzag(int64(v.name)-int64(before.name)))
		from(1, v.raw, v.name)
		from(2, v.signature, v.name)
		add(3, zigzag(int64(v.module)-int64(before.module)))
		add(4, zigzag(int64(v.file)-int64(before.file)))
		no := uint64(0)
		if v.noName {
			no = 1
		}
		add(5, zigzag(int64(v.start))<<1|no)
		before = v
	}
	for _, c := range col[:6] {
		b = appendColumn(b, c)
	}
	b = binary.AppendUvarint(b, uint64(len(f.frames)))
	last := frame{}
	for _, v := range f.frames {
		add(6, zigzag(int64(v.fn)-int64(last.fn)))
		add(7, zigzag(int64(v.line)-int64(last.line)))
		col[8], col[9], col[10] = append(col[8], byte(v.kind)), append(col[9], byte(v.prov)), append(col[10], byte(v.flags))
		last = v
	}
	for _, c := range col[6:] {
		b = appendColumn(b, c)
	}
	return b
}

func (f *fresh) encodeStrings(b []byte, first uint32, index map[string]uint32) []byte {
	var texts, lengths, bases, offsets []byte
	base, at := uint32(0), uint64(0)
	for i, s := range f.strings {
		if text, offset, ok := splitOffset(s); ok {
			if k, ok := index[text]; ok && k < first+uint32(i) && len(text) <= mostBase {
				if k != base {
					bases = binary.AppendUvarint(bases, zigzag(int64(k)-int64(base)))
					base, at = k, 0
				} else {
					bases = append(bases, 0)
				}
				lengths = append(lengths, 1)
				offsets = binary.AppendUvarint(offsets, zigzag(int64(offset)-int64(at)))
				at = offset
				continue
			}
		}
		lengths = binary.AppendUvarint(lengths, uint64(len(s))<<1)
		texts = append(texts, s...)
	}
	b = binary.AppendUvarint(b, uint64(len(f.strings)))
	for _, c := range [][]byte{lengths, texts, bases, offsets} {
		b = appendColumn(b, c)
	}
	return b
}

// mostBase is the length of the longest text that another string may begin with.
const mostBase = 200

// splitOffset splits "module+0x12ab" if a reader puts it together to the same again.
func splitOffset(s string) (text string, offset uint64, ok bool) {
	i := strings.LastIndex(s, offsetMark)
	if i <= 0 || i+len(offsetMark) == len(s) || s[i+len(offsetMark)] == '0' {
		return "", 0, false
	}
	hex := s[i+len(offsetMark):]
	offset, err := strconv.ParseUint(hex, 16, 63)
	return s[:i], offset, err == nil && isHex(hex)
}

const offsetMark = "+0x"

// decodeNames appends a block of names to f, and returns the indices of its first entries. known are
// the strings of the blocks before.
func (f *fresh) decodeNames(raw []byte, known []string) (first counts, err error) {
	c := cursor{b: raw}
	first = counts{strings: c.index(), fns: c.index(), frames: c.index()}
	if err := f.decodeStrings(&c, first.strings, known); err != nil {
		return first, err
	}
	n := c.count()
	var col [5]cursor
	for i := range col {
		col[i] = c.column()
	}
	starts := c.column()
	before := fn{}
	from := func(c *cursor, was uint32) uint32 {
		v := c.number()
		if v == 0 {
			return 0
		}
		return was + uint32(unzigzag(v-1))
	}
	for range n {
		v := fn{name: before.name + uint32(col[0].signed())}
		v.raw, v.signature = from(&col[1], v.name), from(&col[2], v.name)
		v.module, v.file = before.module+uint32(col[3].signed()), before.file+uint32(col[4].signed())
		start := starts.number()
		v.start, v.noName = int32(unzigzag(start>>1)), start&1 != 0
		f.fns = append(f.fns, v)
		before = v
	}
	n = c.count()
	fns, lines, kinds, provs, flags := c.column(), c.column(), c.bytes(), c.bytes(), c.bytes()
	if c.bad || len(kinds) != n || len(provs) != n || len(flags) != n {
		return first, errCut
	}
	last := frame{}
	for i := range n {
		last = frame{fn: last.fn + uint32(fns.signed()), line: last.line + int32(lines.signed()), kind: walk.Kind(kinds[i]), prov: walk.Provenance(provs[i]), flags: walk.FrameFlags(flags[i])}
		if last.kind >= walk.NumKinds || last.prov > walk.Heuristic {
			return first, errCut
		}
		f.frames = append(f.frames, last)
	}
	for i := range col {
		c.bad = c.bad || col[i].bad
	}
	if c.bad || starts.bad || fns.bad || lines.bad {
		return first, errCut
	}
	return first, nil
}

func (f *fresh) decodeStrings(c *cursor, first uint32, known []string) error {
	n := c.count()
	lengths := c.column()
	texts := string(c.bytes())
	bases, offsets := c.column(), c.column()
	base, at, made := uint32(0), uint64(0), 0
	var name []byte
	for range n {
		l := lengths.number()
		if l&1 == 0 {
			if l >>= 1; l > uint64(len(texts)) || lengths.bad {
				return errCut
			}
			f.strings = append(f.strings, texts[:l])
			texts = texts[l:]
			continue
		}
		if d := bases.signed(); d != 0 {
			base, at = base+uint32(d), 0
		}
		at += uint64(offsets.signed())
		text := lostText // if it was in a block that is damaged
		switch {
		case base >= first+uint32(len(f.strings)):
			return errCut
		case base >= first:
			text = f.strings[base-first]
		case int(base) < len(known):
			text = known[base]
		}
		name = strconv.AppendUint(append(append(name[:0], text...), offsetMark...), at, 16)
		made += len(name)
		if len(text) > mostBase || made > maxBlock || bases.bad || offsets.bad {
			return errCut
		}
		f.strings = append(f.strings, string(name))
	}
	if c.bad {
		return errCut
	}
	return nil
}
