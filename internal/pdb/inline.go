package pdb

import "encoding/binary"

// Annotations of an inline site (cvinfo.h, BinaryAnnotationOpcode).
const (
	noteEnd = iota
	noteCodeOffset
	noteCodeBase
	noteCodeDelta
	noteCodeLength
	noteFile
	noteLineDelta
	noteLineEnd
	noteRangeKind
	noteColumn
	noteColumnEnd
	noteCodeAndLine
	noteLengthAndCode
	noteColumnEndAt
)

// inlined returns the position in an inlined function of the code at off, from the start of the
// function that it was inlined into; false if that code is not the site's.
func (f *File) inlined(m *module, s *site, off uint32) (Place, bool) {
	in := m.inlinees[s.id]
	code, base := uint32(0), uint32(0)
	line, file := int64(in.line), in.file
	var found Place
	ok, open := false, false // open: a range has begun whose end is not known
	start := uint32(0)
	at := func(end uint32) {
		if open && off >= start && off < end {
			ok = true
		}
	}
	begin := func() {
		at(code)
		if !ok {
			start, open = code, true
			found = Place{Line: int(line), File: f.file(m, file)}
		}
	}
	r := notes{b: s.notes}
	for n := 0; n < maxNotes && !ok; n++ {
		op, more := r.next()
		if !more || op == noteEnd {
			break
		}
		a, more := r.next()
		if !more {
			break
		}
		switch op {
		case noteCodeOffset:
			code = a + base
			begin()
		case noteCodeBase:
			base = a
		case noteCodeDelta:
			code += a
			begin()
		case noteCodeLength:
			at(code + a)
			code += a
			open = false
		case noteFile:
			file = a
		case noteLineDelta:
			line += signed(a)
		case noteCodeAndLine:
			line += signed(a >> 4)
			code += a & 15
			begin()
		case noteLengthAndCode:
			d, more := r.next()
			if !more {
				return Place{}, false
			}
			code += d
			begin()
			if !ok {
				at(code + a)
			}
			code += a
			open = false
		}
	}
	if !ok {
		return Place{}, false
	}
	if found.Function = f.idName(s.id); found.Function == "" {
		return Place{}, false
	}
	return found, true
}

// notes reads compressed numbers.
type notes struct{ b []byte }

func (r *notes) next() (uint32, bool) {
	b := r.b
	switch {
	case len(b) >= 1 && b[0]&0x80 == 0:
		r.b = b[1:]
		return uint32(b[0]), true
	case len(b) >= 2 && b[0]&0xc0 == 0x80:
		r.b = b[2:]
		return uint32(b[0]&0x3f)<<8 | uint32(b[1]), true
	case len(b) >= 4 && b[0]&0xe0 == 0xc0:
		r.b = b[4:]
		return binary.BigEndian.Uint32(b) & 0x1fffffff, true
	}
	return 0, false
}

func signed(v uint32) int64 {
	if v&1 != 0 {
		return -int64(v >> 1)
	}
	return int64(v >> 1)
}

// records are the records of a stream of types, found by number.
type records struct {
	read  bool
	first uint32
	b     []byte
	at    []uint32
}

const maxRecords = 1 << 23

func (f *File) records(r *records, n int) *records {
	if r.read {
		return r
	}
	r.read = true
	b, err := f.c.stream(n)
	if err != nil || len(b) < 56 {
		return r
	}
	le := binary.LittleEndian
	head := le.Uint32(b[4:])
	if uint64(head) > uint64(len(b)) {
		return r
	}
	r.first, r.b = le.Uint32(b[8:]), b
	for at := head; uint64(at)+4 <= uint64(len(b)) && len(r.at) < maxRecords; {
		r.at = append(r.at, at)
		at += uint32(le.Uint16(b[at:])) + 2
	}
	return r
}

// record returns the kind and the content of a record.
func (r *records) record(id uint32) (uint16, []byte) {
	if id < r.first || uint64(id-r.first) >= uint64(len(r.at)) {
		return 0, nil
	}
	at := r.at[id-r.first]
	n := uint32(binary.LittleEndian.Uint16(r.b[at:])) + 2
	if n < 4 || uint64(at)+uint64(n) > uint64(len(r.b)) {
		return 0, nil
	}
	return binary.LittleEndian.Uint16(r.b[at+2:]), r.b[at+4 : at+n]
}

// Kinds of type records.
const (
	typeClass    = 0x1504
	typeStruct   = 0x1505
	typeFunction = 0x1601
	typeMethod   = 0x1602
	typeString   = 0x1605
)

// idName returns the qualified name of a function by its id; "" if it is not known.
func (f *File) idName(id uint32) string {
	le := binary.LittleEndian
	ids := f.records(&f.ids, streamIDs)
	kind, r := ids.record(id)
	if len(r) < 8 {
		return ""
	}
	name, scope := cString(r, 8), ""
	switch kind {
	case typeFunction:
		if k, s := ids.record(le.Uint32(r)); k == typeString && len(s) > 4 {
			scope = cString(s, 4)
		}
	case typeMethod:
		scope = f.className(le.Uint32(r))
	default:
		return ""
	}
	if scope != "" {
		return scope + "::" + name
	}
	return name
}

func (f *File) className(id uint32) string {
	kind, r := f.records(&f.types, streamTypes).record(id)
	if kind != typeClass && kind != typeStruct || len(r) < 18 {
		return ""
	}
	// The size is a number, or a mark of how many bytes the number behind it has.
	skip := uint32(18)
	if v := binary.LittleEndian.Uint16(r[16:]); v >= 0x8000 {
		switch v {
		case 0x8000:
			skip++
		case 0x8001, 0x8002:
			skip += 2
		case 0x8003, 0x8004:
			skip += 4
		default:
			skip += 8
		}
	}
	return cString(r, skip)
}
