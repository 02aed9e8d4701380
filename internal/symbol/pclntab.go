package symbol

import (
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
	s := m.Section(".gopclntab")
	if s == nil {
		s = m.Section(".data.rel.ro.gopclntab")
	}
	if s == nil {
		if known := m.openGolang(); known != nil {
			return &goTable{tab: known.Pclntab, text: known.Text()}, 0
		}
		return nil, 0
	}
	if s.Packed() || s.Offset > uint64(m.Size()) || s.Size > uint64(m.Size())-s.Offset {
		return nil, 0
	}
	tab, err := golang.ReadPclntab(io.NewSectionReader(m, int64(s.Offset), int64(s.Size)), int64(s.Size), m.Order)
	if err != nil {
		return nil, 0
	}
	t := &goTable{tab: tab, text: tab.Base()}
	if t.text != 0 {
		return t, s.Addr
	}
	if first, _ := tab.Range(); !tab.Offsets() {
		if _, ok := m.code(first); ok {
			return t, s.Addr
		}
		return nil, 0 // an old program that may be loaded at any address
	}
	if t.findText(m) {
		return t, s.Addr
	}
	if known := m.openGolang(); known != nil && known.Text() != 0 {
		t.text = known.Text()
		return t, s.Addr
	}
	if syms := symbols(); syms != nil { // a 32-bit program
		for i := range syms.syms {
			if e := &syms.syms[i]; syms.strings[e.src].name(e.name) == "runtime.text" {
				t.text = e.addr
				return t, s.Addr
			}
		}
	}
	return nil, 0
}

// openGolang finds the table, and the code that it describes, by their content; nil if there is
// none.
func (m *image) openGolang() *golang.Table {
	marked := len(m.Sections) == 0
	for i := range m.Sections {
		name := m.Sections[i].Name
		marked = marked || strings.HasPrefix(name, ".go") || strings.HasPrefix(name, ".note.go.") || strings.HasSuffix(name, ".gopclntab")
	}
	if !marked {
		return nil
	}
	t, err := golang.Open(m.File)
	if err != nil {
		return nil
	}
	return t
}

// findText takes the start of .text as the base of function offsets if that puts the program's
// entry into the runtime's first function. With C code linked in it does not.
func (t *goTable) findText(m *image) bool {
	for _, s := range m.Sections {
		if s.Name == ".text" && s.Addr != 0 {
			try := goTable{tab: t.tab, text: s.Addr}
			if name, start, ok := try.function(m.Entry); ok && start == m.Entry && strings.HasPrefix(name, "_rt0_") {
				t.text = s.Addr
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
