package nativeimage

import "encoding/binary"

// frames describes the methods that are at an address: for each entry of the code table a list of
// frames, from the innermost inlined method to the one that was compiled.
type frames struct {
	info    []byte
	format  *frameFormat // nil: not known
	classes objects
	names   objects
	methods []byte // pairs of indexes of a class and a name; empty if they are in info
	short   struct{ class, name bool }
	stride  int // of methods, bytes

	hub hubFields
}

// frameFormat is how a frame is stored (com.oracle.svm.core.code.FrameInfoEncoder).
type frameFormat struct {
	pair      bool   // the class and the name of the method, instead of its number
	bciSigned bool   // the sign of the bytecode index marks a successor, instead of the name's
	id        bool   // the number of the method follows
	bci       bool   // it has a bytecode index
	list      bool   // each frame stands for itself, after the values of its variables
	line      int64  // what is added to a line
	bciAdd    int64  // what is added to a bytecode index
	since     string // the first release that was seen with it
}

// frameFormats are the formats that are known, the newest first.
var frameFormats = []frameFormat{
	{bciSigned: true, bci: true, line: 3, bciAdd: 4, since: "24"},
	{pair: true, id: true, bci: true, line: 3, bciAdd: 4, since: "22.3"},
	{pair: true, id: true, line: 3, since: "22.2"},
	{pair: true, line: 3, since: "22.0"},
	{pair: true, list: true, since: "21.1"},
}

// frame is one method at an address.
type frame struct {
	class, name uint32
	line        int32 // 0: none
	bci         int32 // -1: none
}

// reader reads numbers of variable length (jdk.graal.compiler.core.common.util.UnsafeArrayTypeReader
// and TypeReader): seven bytes below 192 end a number, others continue it.
type reader struct {
	b   []byte
	at  uint64
	bad bool
}

// unsigned reads a number without a sign.
func (r *reader) unsigned() uint64 {
	const low, most = 192, 11
	var v uint64
	for i := range uint(most) {
		if r.at >= uint64(len(r.b)) {
			r.bad = true
			return 0
		}
		b := uint64(r.b[r.at])
		r.at++
		v += b << (6 * i)
		if b < low || i == most-1 {
			break
		}
	}
	return v
}

// signed reads a number with a sign, which is its lowest bit.
func (r *reader) signed() int64 {
	v := r.unsigned()
	return int64(v>>1) ^ -int64(v&1)
}

// maxInlined bounds the frames at one address.
const maxInlined = 256

// decode appends the frames that are described at a position, innermost first; false if they cannot
// be decoded.
func (f *frames) decode(at uint32, out []frame) ([]frame, bool) {
	r := reader{b: f.info, at: uint64(at)}
	if f.format.list {
		return f.decodeList(&r, out)
	}
	n := len(out)
	const none = -1
	successor := int64(none)
	first := r.signed()
	if first == -1 || r.bad {
		return out, false // with the values of variables, for deoptimization
	}
	for i := 0; ; i++ {
		back := int64(none)
		if successor != none {
			back, r.at = int64(r.at), uint64(successor)
		}
		if i > 0 {
			first = r.signed()
		}
		if first < -1 {
			// It is shared by several lists.
			if back != none {
				return out[:n], false
			}
			back, r.at = int64(r.at), uint64(-(first + 2))
			first = r.signed()
		}
		g, next, last, ok := f.frame(&r, first)
		if !ok || r.bad || len(out)-n >= maxInlined {
			return out[:n], false
		}
		out = append(out, g)
		if last {
			return out, true
		}
		if successor = next; back != none {
			r.at = uint64(back)
		}
	}
}

// frame decodes a frame whose first number has been read. successor is the position of the next
// one, -1 if it follows; last says that there is none.
func (f *frames) frame(r *reader, first int64) (g frame, successor int64, last, ok bool) {
	g.bci, successor = -1, -1
	id, follows := first, false
	var class, name int64 = first, 0
	if f.format.pair {
		if name = r.signed(); name < 0 {
			name, follows = -(name + 1), true
		}
	}
	line := r.signed()
	if f.format.bci {
		if f.format.bciSigned {
			bci := r.signed()
			if bci < 0 {
				bci, follows = -(bci + 1), true
			}
			g.bci = bciOf(bci, f.format.bciAdd)
		} else {
			g.bci = bciOf(int64(r.unsigned()), f.format.bciAdd)
		}
	}
	if f.format.id {
		r.signed()
	}
	if follows {
		if successor = r.signed(); successor < 0 || successor >= int64(len(r.b)) {
			return g, -1, false, false
		}
	}
	if last = line < 0; last {
		line = -line
	}
	if line -= f.format.line; line > 0 && line < 1<<24 {
		g.line = int32(line)
	}
	if !f.format.pair {
		if class, name, ok = f.method(id); !ok {
			return g, -1, false, false
		}
	}
	g.class, g.name = uint32(class), uint32(name)
	ok = line >= -f.format.line && line < 1<<24 && class >= 0 && uint64(class) < f.classes.n && name >= 0 && uint64(name) < f.names.n && !(last && follows)
	return g, successor, last, ok
}

// bciOf returns a bytecode index; -1 if there is none.
func bciOf(encoded, add int64) int32 {
	if v := encoded>>2 - add; v >= 0 && v < 1<<20 {
		return int32(v)
	}
	return -1
}

// method returns the class and the name of a method by its number.
func (f *frames) method(id int64) (class, name int64, ok bool) {
	if f.stride == 0 || id < 0 || id >= int64(len(f.methods)/f.stride) {
		return 0, 0, false
	}
	b := f.methods[int(id)*f.stride:]
	get := func(short bool) int64 {
		var v int64
		if short {
			v, b = int64(binary.LittleEndian.Uint16(b)), b[2:]
		} else {
			v, b = int64(binary.LittleEndian.Uint32(b)), b[4:]
		}
		return v
	}
	class = get(f.short.class)
	return class, get(f.short.name), true
}

// learn finds out in which format a program's frames are, and what its classes look like.
func (f *frames) learn(h *heap, t *codeTable, at [numRefs]uint64) {
	for i := range frameFormats {
		format := &frameFormats[i]
		f.format = format
		if f.arrays(h, at) && f.fits(t) {
			f.learnClasses(h)
			return
		}
	}
	f.format = nil
}

// arrays finds the arrays that the format needs.
func (f *frames) arrays(h *heap, at [numRefs]uint64) bool {
	var ok1, ok2 bool
	f.classes, ok1 = h.objectArray(at[refClasses])
	f.names, ok2 = h.objectArray(at[refNames])
	if !ok1 || !ok2 || at[refClasses] == 0 || at[refNames] == 0 || !h.learnStrings(f.names) {
		return false
	}
	f.methods, f.stride = nil, 0
	if f.format.pair {
		return true
	}
	if hub, ok := h.hub(at[refMethods]); !ok || hub != h.bytesHub || at[refMethods] == 0 {
		return false
	}
	var ok bool
	if f.methods, ok = h.byteArray(at[refMethods]); !ok {
		return false
	}
	f.short.class, f.short.name = f.classes.n <= 0xffff, f.names.n <= 0xffff
	size := func(short bool) int {
		if short {
			return 2
		}
		return 4
	}
	f.stride = size(f.short.class) + size(f.short.name)
	return len(f.methods) >= f.stride
}

// fits reports whether the frames of a sample of the table's entries can be decoded in this format.
func (f *frames) fits(t *codeTable) bool {
	const looked = 4000
	var out []frame
	step := max(1, len(t.methods)/looked)
	good, bad := 0, 0
	for i := 0; i < len(t.methods); i += step {
		e, _, ok := t.seek(uint64(t.methods[i].start))
		for n := 0; ok && n < 8; n++ {
			if e.kind != noFrameInfo {
				r := reader{b: f.info, at: uint64(e.info)}
				uncompressed := r.signed() == -1 && !r.bad && !f.format.list
				if uncompressed {
				} else if out, ok = f.decode(e.info, out[:0]); ok {
					good++
				} else {
					bad++
				}
			}
			ok = t.after(&e)
		}
	}
	return good > 0 && bad == 0
}
