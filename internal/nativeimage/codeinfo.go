package nativeimage

import (
	"encoding/binary"
	"sort"
)

// codeTable is what a program knows of its code: for addresses at which calls return, and some
// others, the size of the frame and where the methods are described. Entries are in the order of
// addresses; an index has the first entry of each piece of code of a fixed size
// (com.oracle.svm.core.code.CodeInfoDecoder).
type codeTable struct {
	size      uint64 // of the code, bytes
	piece     uint64 // bytes of code for an entry of the index
	index     []byte // 4 bytes each: an offset into encodings
	encodings []byte
	deopt     uint32 // size of what an entry for deoptimization has of frame info, bytes

	methods []method // by start; filled by check
}

// method is a piece of code that was compiled as one.
type method struct {
	start uint32 // relative to the code's
	frame int32  // as entry.frame
}

// entry is what the table knows of one address.
type entry struct {
	ip    uint64 // relative to the code's start
	frame int32  // size of the frame in bytes with the return address, and the flags below; 0: none known
	kind  uint8  // of the frame info: noFrameInfo to defaultInfo
	info  uint32 // where it begins

	begins bool // a method
	next   uint32
	delta  uint64 // to the next entry's address; 0: it is the last
}

// Flags in the size of a frame. GraalVM before 21 has only the first two.
const (
	frameBegins     = 1 // of a method
	frameEntryPoint = 2 // native code calls it
	frameSaves      = 4 // it saves registers for its caller
	frameFlags      = 7
)

// Kinds of frame info.
const (
	noFrameInfo = iota
	deoptInfo   // exact, and the address is one at which a deoptimized method goes on
	plainInfo   // exact
	defaultInfo // only the method
)

func (e *entry) bytes() uint64 { return uint64(uint32(e.frame) &^ frameFlags) }

var (
	valueSize = [4]uint32{0, 1, 2, 4}
	mapSize   = [4]uint32{0, 0, 2, 4}
)

// deoptSizes are the sizes that were seen; programs that compile at run time have such entries.
var deoptSizes = []uint32{4, 5}

// maxFrame is the size above which a frame is rejected, in bytes.
const maxFrame = 64 << 20

// read decodes the entry at off into e, which holds the one before it: the size of a frame is
// stored only where it changes.
func (t *codeTable) read(e *entry, off uint32, ip uint64) bool {
	b := t.encodings
	if uint64(off)+2 > uint64(len(b)) {
		return false
	}
	flags := b[off]
	fs, ex, rm, fi := flags&3, flags>>2&3, flags>>4&3, flags>>6
	at := off + 2
	info := uint64(at) + uint64(valueSize[fs]+valueSize[ex]+mapSize[rm])
	end := info
	switch fi {
	case noFrameInfo:
	case deoptInfo:
		end += uint64(t.deopt)
	default:
		end += 4
	}
	if end > uint64(len(b)) {
		return false
	}
	e.ip, e.delta, e.begins, e.kind, e.info = ip, uint64(b[off+1]), false, fi, 0
	switch fs {
	case 1:
		e.frame = int32(int8(b[at]))
	case 2:
		e.frame = int32(int16(binary.LittleEndian.Uint16(b[at:])))
	case 3:
		e.frame = int32(binary.LittleEndian.Uint32(b[at:]))
	}
	if fs != 0 {
		if e.frame < 0 || e.frame > maxFrame {
			return false
		}
		e.begins = e.frame&frameBegins != 0
	}
	if fi != noFrameInfo {
		e.info = binary.LittleEndian.Uint32(b[info:])
	}
	e.next = uint32(end)
	return true
}

// seek returns the last entry at or before an address, relative to the code's start. exact reports
// whether it is the address's own.
func (t *codeTable) seek(rel uint64) (e entry, exact, ok bool) {
	if rel >= t.size {
		return entry{}, false, false
	}
	piece := rel / t.piece
	if piece*4+4 > uint64(len(t.index)) {
		return entry{}, false, false
	}
	off, ip := binary.LittleEndian.Uint32(t.index[piece*4:]), piece*t.piece
	for range t.piece + 1 {
		if !t.read(&e, off, ip) {
			return entry{}, false, false
		}
		if ip == rel {
			return e, true, true
		}
		if e.delta == 0 || ip+e.delta > rel {
			return e, false, true
		}
		off, ip = e.next, ip+e.delta
	}
	return entry{}, false, false
}

// after moves e to the next entry; false if it is the last.
func (t *codeTable) after(e *entry) bool {
	return e.delta != 0 && t.read(e, e.next, e.ip+e.delta)
}

// maxMethods bounds the methods of one program.
const maxMethods = 1 << 24

// prove finds the variant of the encoding for which check holds.
func (t *codeTable) prove() bool {
	for _, t.deopt = range deoptSizes {
		if t.check() {
			return true
		}
	}
	return false
}

// check decodes the whole table, and reports whether it describes the code from end to end and
// agrees with its index. It fills t.methods.
func (t *codeTable) check() bool {
	pieces := (t.size + t.piece - 1) / t.piece
	if t.size == 0 || t.size > 1<<32-1 || t.piece == 0 || uint64(len(t.index)) < pieces*4 || len(t.encodings) > 1<<32-8 {
		return false
	}
	var e entry
	t.methods = t.methods[:0]
	off, ip, calls, indexed := uint32(0), uint64(0), 0, uint64(0)
	for {
		if ip%t.piece == 0 {
			if binary.LittleEndian.Uint32(t.index[ip/t.piece*4:]) != off {
				return false
			}
			e.frame = -1 // it must be stored there
			indexed++
		}
		if !t.read(&e, off, ip) || e.frame < 0 || ip == 0 && !e.begins {
			return false
		}
		if e.begins && (len(t.methods) == 0 || uint64(t.methods[len(t.methods)-1].start) != ip) {
			if len(t.methods) >= maxMethods {
				return false
			}
			t.methods = append(t.methods, method{uint32(ip), e.frame})
		}
		if e.kind == plainInfo || e.kind == deoptInfo {
			calls++
		}
		if e.delta == 0 {
			break
		}
		// An entry at each multiple makes every look-up short.
		next := ip + e.delta
		if next >= t.size || next/t.piece != ip/t.piece && next%t.piece != 0 {
			return false
		}
		off, ip = e.next, next
	}
	return calls > 0 && indexed == pieces
}

// method returns the method that holds an address, and where the next one begins.
func (t *codeTable) method(rel uint64) (m method, end uint64, ok bool) {
	i := sort.Search(len(t.methods), func(i int) bool { return uint64(t.methods[i].start) > rel })
	if i == 0 || rel >= t.size {
		return method{}, 0, false
	}
	end = t.size
	if i < len(t.methods) {
		end = uint64(t.methods[i].start)
	}
	return t.methods[i-1], end, true
}
