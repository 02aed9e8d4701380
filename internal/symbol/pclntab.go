package symbol

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"sort"
	"strings"

	"github.com/candid-profiler/candid/internal/golang"
)

const maxGoTable = 128 << 20

// goTable is the table of functions and lines that every Go program carries for
// its own tracebacks, even when stripped (cmd/link: pcln.go; runtime: symtab.go,
// pcHeader and _func). Formats of Go 1.18 and later are read. It is parsed
// where it lies; debug/gosym would build an object for every function.
type goTable struct {
	order   binary.ByteOrder
	text    uint64
	quantum uint64
	funcs   []byte // pairs of uint32: offset from text, offset of the record
	n       int
	pcln    []byte // records
	names   []byte
	cu      []byte
	files   []byte
	pcs     []byte
}

// goLayouts are the formats by magic number.
var goLayouts = map[uint32]bool{
	0xfffffff0: true, // Go 1.18, 1.19
	0xfffffff1: true, // Go 1.20 and later
}

// openGoTable gives nil if m is no Go program, or one that cannot be read here.
func openGoTable(m *image, syms *table) *goTable {
	s := m.find(".gopclntab")
	if s == nil {
		s = m.find(".data.rel.ro.gopclntab")
	}
	var b []byte
	var err error
	var known *golang.Table // opened at need: it searches the file
	if s != nil {
		b, err = m.raw(s, maxGoTable)
	} else if known = m.openGolang(); known != nil {
		off, size := known.Place()
		b, err = m.readAt(uint64(off), uint64(min(size, maxGoTable)), maxGoTable)
	} else {
		return nil
	}
	if err != nil || len(b) < 8 || !goLayouts[m.order.Uint32(b)] {
		return nil
	}
	ptr := int(b[7])
	if (ptr != 4 && ptr != 8) || len(b) < 8+8*ptr {
		return nil
	}
	word := func(i int) uint64 {
		if ptr == 4 {
			return uint64(m.order.Uint32(b[8+i*4:]))
		}
		return m.order.Uint64(b[8+i*8:])
	}
	part := func(i int) []byte {
		if off := word(i); off < uint64(len(b)) {
			return b[off:]
		}
		return nil
	}
	t := &goTable{order: m.order, quantum: uint64(b[6]), text: word(2),
		names: part(3), cu: part(4), files: part(5), pcs: part(6), pcln: part(7)}
	t.n = int(min(word(0), uint64(len(t.pcln)/8)))
	t.funcs = t.pcln[:t.n*8]
	if t.n == 0 || t.quantum == 0 {
		return nil
	}
	if t.text == 0 { // position-independent code, and all of Go 1.26 and later
		t.text = t.findText(m, syms)
	}
	if t.text == 0 { // a program without symbols that starts in C
		if known == nil {
			known = m.openGolang()
		}
		if known == nil || known.Text() == 0 {
			return nil
		}
		t.text = known.Text()
	}
	return t
}

// openGolang finds the table and the code that it describes by what they hold; nil
// if there is none.
func (m *image) openGolang() *golang.Table {
	marked := len(m.sections) == 0
	for i := range m.sections {
		name := m.sections[i].name
		marked = marked || strings.HasPrefix(name, ".go") || strings.HasPrefix(name, ".note.go.") || strings.HasSuffix(name, ".gopclntab")
	}
	if !marked {
		return nil
	}
	e, err := elf.NewFile(m.r)
	if err != nil {
		return nil
	}
	t, err := golang.Open(e, m.r)
	if err != nil {
		return nil
	}
	return t
}

// findText finds the address of runtime.text, from which functions are counted:
// by its symbol; else it is the start of .text if that puts the program's entry
// into the runtime's first function. (With C code linked in neither may hold.
// Then the table cannot be used: it would give wrong names.)
func (t *goTable) findText(m *image, syms *table) uint64 {
	for i := range syms.syms {
		if e := &syms.syms[i]; syms.strings[e.src].name(e.name) == "runtime.text" {
			return e.addr
		}
	}
	for _, s := range m.sections {
		if s.name == ".text" && s.addr != 0 {
			try := *t
			try.text = s.addr
			if name, start, ok := try.function(m.entry); ok && start == m.entry && strings.HasPrefix(name, "_rt0_") {
				return s.addr
			}
		}
	}
	return 0
}

// record finds the function record for addr.
func (t *goTable) record(addr uint64) (rec []byte, start uint64) {
	if t == nil || addr < t.text {
		return nil, 0
	}
	off := addr - t.text
	i := sort.Search(t.n, func(i int) bool { return uint64(t.order.Uint32(t.funcs[i*8:])) > off }) - 1
	if i < 0 {
		return nil, 0
	}
	if i == t.n-1 { // the word after the table is where the last function ends
		if len(t.pcln) < t.n*8+4 || off >= uint64(t.order.Uint32(t.pcln[t.n*8:])) {
			return nil, 0
		}
	}
	at := uint64(t.order.Uint32(t.funcs[i*8+4:]))
	if at+40 > uint64(len(t.pcln)) {
		return nil, 0
	}
	return t.pcln[at:], t.text + uint64(t.order.Uint32(t.funcs[i*8:]))
}

func (t *goTable) function(addr uint64) (name string, start uint64, ok bool) {
	rec, start := t.record(addr)
	if rec == nil {
		return "", 0, false
	}
	name = cString(t.names, uint64(t.order.Uint32(rec[4:])), maxRawName)
	return name, start, name != ""
}

func (t *goTable) line(addr uint64) (file string, line int32, ok bool) {
	rec, start := t.record(addr)
	if rec == nil {
		return "", 0, false
	}
	fileNo, ok1 := t.value(t.order.Uint32(rec[20:]), start, addr)
	line, ok2 := t.value(t.order.Uint32(rec[24:]), start, addr)
	if !ok1 || !ok2 || fileNo < 0 || line <= 0 {
		return "", 0, false
	}
	at := (uint64(t.order.Uint32(rec[32:])) + uint64(fileNo)) * 4
	if at+4 > uint64(len(t.cu)) {
		return "", 0, false
	}
	file = Printable(cString(t.files, uint64(t.order.Uint32(t.cu[at:])), 4096))
	return file, line, file != ""
}

// value runs the table at off, pairs of (value delta, pc delta), up to addr.
func (t *goTable) value(off uint32, pc, addr uint64) (int32, bool) {
	if off == 0 || uint64(off) >= uint64(len(t.pcs)) {
		return 0, false
	}
	b := bytes.NewReader(t.pcs[off:])
	val := int32(-1)
	for first := true; ; first = false {
		d, err := binary.ReadUvarint(b)
		if err != nil || (d == 0 && !first) {
			return 0, false
		}
		step, err := binary.ReadUvarint(b)
		if err != nil {
			return 0, false
		}
		u := uint32(d)
		val += int32(u>>1) ^ -int32(u&1)
		pc += step * t.quantum
		if addr < pc {
			return val, true
		}
	}
}
