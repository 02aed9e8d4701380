package ehframe

import (
	"errors"
	"fmt"

	"github.com/candid-profiler/candid/internal/cpu"
)

// cie is what many functions have in common.
type cie struct {
	codeAlign   uint64
	dataAlign   int64
	raColumn    uint8
	fdeEncoding byte
	augmented   bool // FDEs have augmentation data
	signal      bool
	program     []byte
	base        uint64 // address of program[0]
}

// fde is one function's entry.
type fde struct {
	cie        *cie
	start, end uint64 // addresses of the function
	program    []byte
	base       uint64 // address of program[0]
}

var (
	errEntry = errors.New("malformed unwind table entry")
	errEnd   = errors.New("end of the unwind table")
)

// frames is one section of entries.
type frames struct {
	bytes    source
	addr     uint64 // of the section
	hdr      uint64 // address of .eh_frame_hdr
	text     uint64
	debug    bool // .debug_frame: other ids and absolute addresses
	wide     bool
	arch     cpu.Arch
	cies     map[uint64]*cie // by offset
	rules    map[string]*Rule
	machine  machine
	keyBytes []byte
	index    index
}

// usualEntry is how many bytes are read of an entry at first.
const usualEntry = 128

// record finds the bounds of the entry at off: the offset of its id field, its bytes from there on,
// whether the id has 8 bytes, and the offset of the next entry.
func (f *frames) record(off uint64) (body []byte, idAt uint64, id8 bool, next uint64, err error) {
	// Most entries are short: they are read together with their lengths.
	head, ok := f.bytes.at(off, usualEntry)
	if !ok {
		if head, ok = f.bytes.at(off, 4); !ok {
			return nil, 0, false, 0, errEnd
		}
	}
	r := reader{b: head[:4]}
	length, idAt := uint64(r.u32()), off+4
	if length == 0 {
		return nil, 0, false, idAt, errEnd
	}
	if length == 0xffffffff {
		head, ok := f.bytes.at(off+4, 8)
		if !ok {
			return nil, 0, false, 0, errEnd
		}
		r = reader{b: head}
		length, idAt = r.u64(), off+12
		id8 = f.debug // an .eh_frame's id always has 4 bytes
	}
	if length > maxLength || length < 4 {
		return nil, 0, false, 0, fmt.Errorf("%w at %#x: length %d", errEntry, off, length)
	}
	if skip := idAt - off; skip == 4 && length <= uint64(len(head))-skip {
		return head[skip : skip+length : skip+length], idAt, false, idAt + length, nil
	}
	body, ok = f.bytes.at(idAt, length)
	if !ok {
		return nil, 0, false, 0, fmt.Errorf("%w at %#x: it ends past its section", errEntry, off)
	}
	return body, idAt, id8, idAt + length, nil
}

// id reads the id of an entry and returns which CIE it belongs to, or that it is one.
func (f *frames) id(r *reader, idAt uint64, id8 bool) (cieOff uint64, isCIE bool) {
	if !f.debug {
		id := uint64(r.u32())
		return idAt - id, id == 0
	}
	if id8 {
		id := r.u64()
		return id, id == 1<<64-1
	}
	id := uint64(r.u32())
	return id, id == 0xffffffff
}

// maxCIEs bounds how many CIEs are kept; real files have a few.
const maxCIEs = 1 << 14

// cieAt parses the CIE at off, once.
func (f *frames) cieAt(off uint64) (*cie, error) {
	if c := f.cies[off]; c != nil {
		return c, nil
	}
	body, idAt, id8, _, err := f.record(off)
	if err != nil {
		return nil, err
	}
	// The next look-up may reuse the buffer of these bytes.
	body = append([]byte{}, body...)
	r := reader{b: body}
	if _, is := f.id(&r, idAt, id8); !is {
		return nil, fmt.Errorf("%w at %#x: not a CIE", errEntry, off)
	}
	version := r.u8()
	aug := r.cstring()
	c := &cie{}
	if string(aug) == "eh" { // GCC 2: a pointer follows
		r.take(8)
		aug = nil
	}
	if version >= 4 {
		size, segment := r.u8(), r.u8()
		if (size != 8 && size != 4) || segment != 0 {
			return nil, fmt.Errorf("%w at %#x: addresses of %d bytes, segments of %d", errEntry, off, size, segment)
		}
	}
	c.codeAlign, c.dataAlign = r.uleb(), r.sleb()
	ra := uint64(0)
	if version == 1 {
		ra = uint64(r.u8())
	} else {
		ra = r.uleb()
	}
	if r.bad || version == 0 || version > 5 || ra >= columns {
		return nil, fmt.Errorf("%w at %#x: CIE of version %d, return address in column %d", errEntry, off, version, ra)
	}
	c.raColumn = uint8(ra)
	enc := pointerContext{base: f.addr + idAt, data: f.hdr, text: f.text, wide: f.wide}
	if len(aug) > 0 && aug[0] == 'z' {
		c.augmented = true
		n := r.uleb()
		end := uint64(r.pos) + n
		if r.bad || n > uint64(len(body)) || end > uint64(len(body)) {
			return nil, fmt.Errorf("%w at %#x: augmentation of %d bytes", errEntry, off, n)
		}
	letters:
		for _, l := range aug[1:] {
			switch l {
			case 'L':
				r.u8()
			case 'P':
				if _, err := enc.read(&r, r.u8()&^encIndirect); err != nil {
					return nil, err
				}
			case 'R':
				c.fdeEncoding = r.u8()
			case 'S':
				c.signal = true
			case 'B', 'G': // AArch64: the other signing key, tagged memory
			default:
				break letters // the rest cannot be read, its length is known
			}
		}
		r.pos = int(end)
	} else if len(aug) > 0 {
		return nil, fmt.Errorf("%w at %#x: augmentation %q", errEntry, off, aug)
	}
	if r.bad {
		return nil, fmt.Errorf("%w at %#x: CIE too short", errEntry, off)
	}
	c.program, c.base = body[r.pos:], f.addr+idAt+uint64(r.pos)
	if len(f.cies) < maxCIEs {
		f.cies[off] = c
	}
	return c, nil
}

// fdeAt parses the entry at off. isCIE is set if it is not an FDE.
func (f *frames) fdeAt(off uint64) (e fde, isCIE bool, next uint64, err error) {
	body, idAt, id8, next, err := f.record(off)
	if err != nil {
		return fde{}, false, next, err
	}
	r := reader{b: body}
	cieOff, isCIE := f.id(&r, idAt, id8)
	if isCIE {
		return fde{}, true, next, nil
	}
	c, known := f.cies[cieOff]
	if !known {
		if c, err = f.cieAt(cieOff); err != nil {
			return fde{}, false, next, err
		}
		// Reading the CIE may have reused the buffer that body lies in.
		if body, _, _, _, err = f.record(off); err != nil {
			return fde{}, false, next, err
		}
		r.b = body
	}
	e.cie = c
	enc := pointerContext{base: f.addr + idAt, data: f.hdr, text: f.text, wide: f.wide}
	if e.start, err = enc.read(&r, c.fdeEncoding&^encIndirect); err != nil {
		return fde{}, false, next, err
	}
	size, err := enc.read(&r, c.fdeEncoding&0x0f)
	if err != nil {
		return fde{}, false, next, err
	}
	if c.augmented {
		r.take(r.uleb())
	}
	if r.bad || e.start+size < e.start {
		return fde{}, false, next, fmt.Errorf("%w at %#x: FDE too short", errEntry, off)
	}
	e.end = e.start + size
	e.program, e.base = body[r.pos:], f.addr+idAt+uint64(r.pos)
	return e, false, next, nil
}

// rule runs the programs of e up to addr.
func (f *frames) rule(e *fde, addr uint64) (*Rule, error) {
	m := &f.machine
	m.depth = 0
	m.st = state{cfaReg: noColumn}
	enc := pointerContext{base: e.cie.base, data: f.hdr, text: f.text, wide: f.wide}
	if _, err := m.run(e.cie.program, e.cie, enc, e.start, 1<<64-1); err != nil {
		return nil, err
	}
	m.initial = m.st
	m.depth = 0
	enc.base = e.base
	if _, err := m.run(e.program, e.cie, enc, e.start, addr); err != nil {
		return nil, err
	}
	return m.st.finish(e.cie.raColumn, f.arch, e.cie.signal, f.keyBytes, f.rules), nil
}
