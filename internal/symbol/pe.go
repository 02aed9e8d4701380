package symbol

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/candid-profiler/candid/internal/dwarfline"
	"github.com/candid-profiler/candid/internal/fileblocks"
	"github.com/candid-profiler/candid/internal/golang"
	"github.com/candid-profiler/candid/internal/objfile"
	"github.com/candid-profiler/candid/internal/pdb"
	"github.com/candid-profiler/candid/internal/pe"
)

// peFile names the code of a PE image. Its addresses are relative to the image's start.
type peFile struct {
	*pe.Image
	opt       Options
	module    string // short name without .dll or .exe, for names relative to an export
	functions *pe.Functions
	goTable   *goTable // nil: not a Go program
	table     table
	origin    Origin
	debug     *pe.Image // a separate file of debug information; nil: none
	pdb       *pdb.File // nil: none was found
	close     io.Closer
	at        []pdb.Place // reused
	lines     *dwarfline.Data
	haveLines bool
	notes     []error
}

// openPE opens a PE image; nil without an error if r holds none. Images that candid does not walk
// are none.
func openPE(r io.ReaderAt, opt Options) (*peFile, error) {
	var magic [2]byte
	if _, err := r.ReadAt(magic[:], 0); err != nil || string(magic[:]) != "MZ" {
		return nil, nil
	}
	image, err := pe.Open(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotELF, err)
	}
	f := &peFile{Image: image, opt: opt, module: peModule(opt.Path)}
	f.functions, _ = image.Functions()
	f.openGo()
	f.load()
	return f, nil
}

// openGo finds the tables that every Go program carries.
func (f *peFile) openGo() {
	if t, err := golang.OpenPE(f.Image); err == nil {
		f.goTable = &goTable{tab: t.Pclntab, text: t.Text(), inlining: t.FindInliningPE(f.Image)}
	}
}

// isGo reports whether Go's tables describe nearly all of the image's code.
func (f *peFile) isGo() bool {
	if f.goTable == nil || f.goTable.inlining == nil {
		return false
	}
	first, end := f.goTable.tab.Range()
	rest := uint64(0)
	for i := range f.Sections {
		if s := &f.Sections[i]; s.Executable() {
			rest += uint64(s.Size)
		}
	}
	return rest-min(rest, end-first) <= maxForeign
}

// peModule returns what precedes the exclamation mark in a name: ntdll for ntdll.dll.
func peModule(path string) string {
	name := path[strings.LastIndexAny(path, `/\`)+1:]
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		name = name[:i]
	}
	return name
}

// load reads the symbols, the most complete first.
func (f *peFile) load() {
	f.origin = OriginNone
	f.take(f.addSymbols(f.Image), OriginSymtab)
	if f.origin == OriginNone && f.goTable != nil {
		f.origin = OriginGo
	}
	if f.origin == OriginNone && f.openDebug() {
		f.take(f.addSymbols(f.debug), OriginDebugFile)
	}
	if f.origin == OriginNone {
		f.take(f.addPDB(), OriginPDB)
	}
	f.take(f.addExports(), OriginExports)
	f.table.finish()
}

// take records the result of reading one source.
func (f *peFile) take(err error, from Origin) {
	switch {
	case err == nil:
		if f.origin == OriginNone {
			f.origin = from
		}
	case !errors.Is(err, pe.ErrAbsent):
		f.notes = append(f.notes, err)
	}
}

// openDebug looks for a file of debug information that was separated from the image, as objcopy does
// for MinGW's programs.
func (f *peFile) openDebug() bool {
	b, err := f.SectionData(".gnu_debuglink", 4096)
	if err != nil || f.opt.OpenDebug == nil {
		return false
	}
	name, crc, ok := objfile.ParseDebugLink(b, binary.LittleEndian)
	if !ok {
		return false
	}
	for _, p := range debugPaths(name, f.opt.Path) {
		file, err := f.opt.OpenDebug(p)
		if err != nil {
			continue
		}
		var image *pe.Image
		st, err := file.Stat()
		if err == nil {
			err = checkCRC(file, st.Size(), crc)
		}
		if err == nil {
			image, err = pe.Open(fileblocks.Open(file))
		}
		if err == nil {
			f.debug, f.close = image, file
			return true
		}
		file.Close()
		f.notes = append(f.notes, fmt.Errorf("debug file %s is not used: %w", p, err))
	}
	return false
}

func (f *peFile) addSymbols(from *pe.Image) error {
	src := uint8(len(f.table.strings))
	before := len(f.table.syms)
	err := from.Symbols(func(index, rva uint32, external bool) {
		e := entry{addr: uint64(rva), name: index, rank: rankLocal, src: src}
		if external {
			e.rank = rankGlobal
		}
		if len(f.table.syms) < maxSymbols {
			f.table.syms = append(f.table.syms, e)
		}
	})
	if err == nil && len(f.table.syms) == before {
		err = pe.ErrAbsent
	}
	f.table.strings = append(f.table.strings, strtab{by: from.SymbolName})
	return err
}

func (f *peFile) addExports() error {
	exports, err := f.Exports()
	if err != nil {
		return err
	}
	src := uint8(len(f.table.strings))
	var names []byte
	for _, e := range exports {
		if s := f.Section(e.RVA); s == nil || !s.Executable() {
			continue
		}
		rank := uint8(rankWeak)
		if e.Name[0] == '#' {
			rank = rankUntyped
		}
		f.table.syms = append(f.table.syms, entry{addr: uint64(e.RVA), name: uint32(len(names)), rank: rank, src: src})
		names = append(append(names, e.Name...), 0)
	}
	f.table.strings = append(f.table.strings, strtab{mem: names})
	return nil
}

// symbol names the function that holds addr.
func (f *peFile) symbol(addr uint64) (Symbol, bool) {
	if addr > 1<<32-1 {
		return Symbol{}, false
	}
	sec := f.Section(uint32(addr))
	if sec == nil || !sec.Executable() {
		return Symbol{}, false
	}
	// Go's own names first: the image's symbols carry suffixes from the linker (.abi0).
	if name, start, ok := f.goTable.function(addr); ok {
		return named(name, start), true
	}
	start, known := f.start(uint32(addr))
	i := f.table.find(addr)
	if i < 0 || f.table.syms[i].addr < uint64(sec.RVA) {
		s := Symbol{Start: addr, NoName: true}
		if known {
			s.Start = uint64(start)
		}
		return s, true
	}
	e := &f.table.syms[i]
	s := named(f.table.nameOf(i, addr), e.addr)
	if e.addr < uint64(start) {
		// Another function, without a symbol. As debuggers of Windows do, it is named by its distance
		// from the symbol before it.
		s = Symbol{Name: fmt.Sprintf("%s!%s+%#x", Printable(f.module), s.Name, uint64(start)-e.addr), Start: uint64(start)}
	}
	return s, true
}

// start returns where the function that holds rva begins, from the unwind tables; 0 and false if
// they do not tell. For code between two functions, it is the end of the one before.
func (f *peFile) start(rva uint32) (uint32, bool) {
	if f.functions == nil {
		return 0, false
	}
	fn, ok := f.functions.Before(rva)
	if !ok {
		return 0, false
	}
	if !fn.Contains(rva) {
		return fn.End, false
	}
	return f.functions.Primary(fn).Begin, true
}

// id identifies the image as symbol stores do: by the PDB, else by the time of linking and the size.
func (f *peFile) id() string {
	if p, err := f.PDB(); err == nil {
		return strings.ToLower(p.ID())
	}
	return fmt.Sprintf("%08x%x", f.Timestamp, f.SizeOfImage)
}

// places appends the source positions of addr to out, as File.Lines.
func (f *peFile) places(addr uint64, out []dwarfline.Place) []dwarfline.Place {
	// A program may have both: its libraries may have been compiled by another compiler.
	n := len(out)
	if out = f.goTable.places(addr, out); len(out) > n {
		return out
	}
	if f.readLines(); f.lines != nil {
		if out = lookup(f.lines, f.opt.Budget, f.Base+addr, out); len(out) > n {
			return out
		}
	}
	if file, line, ok := f.goTable.line(addr); ok {
		return append(out, dwarfline.Place{File: file, Line: line})
	}
	if f.pdb != nil && addr <= math.MaxUint32 {
		segment, off, ok := f.Segment(uint32(addr))
		if !ok {
			return out
		}
		f.at = f.pdb.Lines(segment, off, f.at[:0])
		for _, p := range f.at {
			out = append(out, dwarfline.Place{Function: p.Function, File: p.File, Line: int32(p.Line)})
		}
	}
	return out
}

// readLines reads the image's DWARF, which MinGW's compilers write, once.
func (f *peFile) readLines() {
	if f.haveLines || f.opt.NoLines {
		return
	}
	f.haveLines = true
	if f.linesMemory() == 0 {
		return
	}
	left, from := uint64(maxDWARF), f.Image
	if f.debug != nil {
		from = f.debug
	}
	turn := f.opt.Budget.turn()
	defer turn.done()
	d, err := dwarfline.Open(binary.LittleEndian, func(name string) (dwarfline.Section, error) {
		r, err := from.SectionReader(".debug_"+name, left)
		if errors.Is(err, pe.ErrAbsent) {
			return dwarfline.Section{}, nil
		}
		if err != nil {
			return dwarfline.Section{}, err
		}
		left -= uint64(r.Size())
		return dwarfline.Stored(r), nil
	}, turn.stop())
	if err != nil {
		f.notes = append(f.notes, fmt.Errorf("line information: %w", err))
		return
	}
	f.lines = d
}

// linesMemory returns about how many bytes of memory the line information takes; 0 if there is none
// to read.
func (f *peFile) linesMemory() (n uint64) {
	if f.isGo() {
		return 0 // Go's own tables say the same as its DWARF, and are not read as a whole
	}
	n = linesFixed
	found, from := false, f.Image
	if f.debug != nil {
		from = f.debug
	}
	for i := range from.Sections {
		s := &from.Sections[i]
		if name := from.SectionName(s); strings.HasPrefix(name, ".debug_") {
			n += min(uint64(s.Raw), maxDWARF) / linesShare
			found = found || name == ".debug_info"
		}
	}
	if !found {
		return 0
	}
	return n
}
