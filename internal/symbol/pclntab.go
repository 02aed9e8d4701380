package symbol

import (
	"debug/elf"
	"io"
	"strings"

	"github.com/candid-profiler/candid/internal/dwarfline"
	"github.com/candid-profiler/candid/internal/golang"
)

// goTable names Go's functions and lines by the table that every Go program carries. It reads the
// file on each look-up.
type goTable struct {
	tab  *golang.Pclntab
	text uint64 // base of function offsets; 0 if the table holds addresses

	inlining *golang.Inlining // nil if it was not found
	scratch  []golang.Position
}

// openGoTable returns nil if m is not a Go program, or one that cannot be read here. The base of
// function offsets is in the table's header up to Go 1.25, unless that was left to the loader;
// otherwise it is found from the code, or from symbols. (If it cannot be found, the table is not
// used, because its names would be wrong.)
func openGoTable(m *image, symbols func() *table) *goTable {
	t, at := findGoTable(m, symbols)
	if t != nil {
		t.findInlining(m, at)
	}
	return t
}

// findGoTable returns the table and its address, 0 if that is not known.
func findGoTable(m *image, symbols func() *table) (*goTable, uint64) {
	s := m.find(".gopclntab")
	if s == nil {
		s = m.find(".data.rel.ro.gopclntab")
	}
	if s == nil {
		if known := m.openGolang(); known != nil {
			return &goTable{tab: known.Pclntab, text: known.Text()}, 0
		}
		return nil, 0
	}
	if s.flags&elf.SHF_COMPRESSED != 0 || s.off > uint64(m.size) || s.size > uint64(m.size)-s.off {
		return nil, 0
	}
	tab, err := golang.ReadPclntab(io.NewSectionReader(m.r, int64(s.off), int64(s.size)), int64(s.size), m.order)
	if err != nil {
		return nil, 0
	}
	t := &goTable{tab: tab, text: tab.Base()}
	if t.text != 0 {
		return t, s.addr
	}
	if first, _ := tab.Range(); !tab.Offsets() {
		if _, ok := m.code(first); ok {
			return t, s.addr
		}
		return nil, 0 // an old program that may be loaded at any address
	}
	if t.findText(m) {
		return t, s.addr
	}
	if known := m.openGolang(); known != nil && known.Text() != 0 {
		t.text = known.Text()
		return t, s.addr
	}
	if syms := symbols(); syms != nil { // a 32-bit program
		for i := range syms.syms {
			if e := &syms.syms[i]; syms.strings[e.src].name(e.name) == "runtime.text" {
				t.text = e.addr
				return t, s.addr
			}
		}
	}
	return nil, 0
}

// openGolang finds the table, and the code that it describes, by their content; nil if there is
// none.
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

// findText takes the start of .text as the base of function offsets if that puts the program's
// entry into the runtime's first function. With C code linked in it does not.
func (t *goTable) findText(m *image) bool {
	for _, s := range m.sections {
		if s.name == ".text" && s.addr != 0 {
			try := goTable{tab: t.tab, text: s.addr}
			if name, start, ok := try.function(m.entry); ok && start == m.entry && strings.HasPrefix(name, "_rt0_") {
				t.text = s.addr
				return true
			}
		}
	}
	return false
}

// places appends the source positions of an address, innermost first; none if the file has no
// tables of inlined functions that can be read here.
func (t *goTable) places(addr uint64, out []dwarfline.Place) []dwarfline.Place {
	if t == nil || t.inlining == nil || addr < t.text {
		return out
	}
	t.scratch = t.inlining.Lookup(addr-t.text, maxRawName, t.scratch[:0])
	for _, p := range t.scratch {
		out = append(out, dwarfline.Place{Function: Printable(p.Function), File: Printable(p.File), Line: p.Line, Start: p.Start})
	}
	return out
}

// function returns the name of the function at an address and where it starts.
func (t *goTable) function(addr uint64) (name string, start uint64, ok bool) {
	if t == nil || addr < t.text {
		return "", 0, false
	}
	name, start, ok = t.tab.Function(addr-t.text, maxRawName)
	return name, start + t.text, ok
}

// line returns the source line of an address.
func (t *goTable) line(addr uint64) (file string, line int32, ok bool) {
	if t == nil || addr < t.text {
		return "", 0, false
	}
	file, line, ok = t.tab.Line(addr - t.text)
	file = Printable(file)
	return file, line, ok && file != ""
}

// maxForeign is how many bytes of a Go program's code may lie outside its Go functions if its
// symbols are to be read only on demand: some bytes between the functions.
const maxForeign = 64 << 10

// covers reports whether the table describes nearly all of the image's code.
func (t *goTable) covers(m *image) bool {
	first, end := t.tab.Range()
	lo, hi := t.text+first, t.text+end
	rest := uint64(0)
	for _, e := range m.exec {
		rest += e.hi - e.lo
		if from, to := max(e.lo, lo), min(e.hi, hi); from < to {
			rest -= to - from
		}
	}
	return rest <= maxForeign
}
