package symbol

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/candid-profiler/candid/internal/dwarfline"
	"github.com/candid-profiler/candid/internal/fileblocks"
	"github.com/candid-profiler/candid/internal/objfile"
	"github.com/candid-profiler/candid/internal/target"
)

// Options say where a file's symbols may be besides the file itself.
type Options struct {
	// Path is the path of the file as the target sees it; separate debug files are looked for
	// beside it. "" if unknown.
	Path string
	// OpenDebug opens a separate debug file by its path. nil: none are used.
	OpenDebug func(path string) (*os.File, error)
	// NoLines says not to read DWARF.
	NoLines bool
	// Discriminators says that Lines tells apart the blocks of one line, for compilers.
	Discriminators bool
	// Budget bounds what reading the file takes; nil: nothing does.
	Budget *Budget
}

// Symbol is the name of an address.
type Symbol struct {
	Name  string // demangled and printable
	Raw   string // as the file has it, "" if it is the same
	Start uint64 // where the function begins, as an address of the file
	// NoName says that the file does not name the function. Start is where it begins if the unwind
	// tables tell, else the address that was looked up.
	NoName bool
}

// File names the code of one ELF file or PE image. Everything but the symbol tables is read when first needed.
// It is not safe for concurrent use.
type File struct {
	pe      *peFile // nil if it is an ELF file
	m       *image  // nil if it is a PE image
	debug   *image  // a separate debug file, nil if there is none
	close   []io.Closer
	opt     Options
	table   table
	loaded  bool           // table has been read
	sought  bool           // a debug file was looked for
	named   map[int]Symbol // by index in table, filled as names are asked for
	goTable *goTable

	bounds     *bounds
	haveBounds bool
	lines      *dwarfline.Data
	haveLines  bool
	unpacking  time.Duration // how long it took to unpack the debug information; 0: it is not compressed
	dozing     bool          // unpacked debug information was freed
	notes      []error
}

// Open reads the symbols of f and takes over ownership of f: Close closes it. If the file is not an
// ELF file or a PE image, f is closed and the error wraps ErrNotELF.
func Open(f target.File, opt Options) (*File, error) {
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%w: not a regular file", ErrNotELF)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	s, err := OpenReader(fileblocks.Open(f), st.Size(), opt)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("symbols of %s: %w", f.Name(), err)
	}
	s.close = append(s.close, f)
	return s, nil
}

// OpenReader is Open for an image of size bytes that is not a file, such as the
// kernel's vdso. r must stay readable until Close.
func OpenReader(r io.ReaderAt, size int64, opt Options) (*File, error) {
	if p, err := openPE(r, opt); p != nil || err != nil {
		return &File{pe: p, opt: opt}, err
	}
	m, err := openImage(r, size)
	if err != nil {
		return nil, err
	}
	f := &File{m: m, opt: opt, named: map[int]Symbol{}}
	f.table.budget = opt.Budget
	turn := opt.Budget.turn()
	defer turn.done()
	f.load()
	return f, nil
}

// load reads the tables that say which functions there are. Go's own table covers all of a Go
// program; its symbols, which say the same, are read when something else is looked up.
func (f *File) load() {
	f.goTable = openGoTable(f.m, func() *table {
		f.loadSymbols()
		return &f.table
	})
	if f.goTable == nil || !f.goTable.covers(f.m) {
		f.loadSymbols()
	} else if f.m.has(elf.SHT_SYMTAB) {
		f.findDebug(true)
	} else {
		f.loadSymbols() // a debug file may have some
	}
}

// findDebug looks for a separate debug file if the file lacks something; full says that it has all
// symbols.
func (f *File) findDebug(full bool) {
	if !f.sought && (!full || !f.opt.NoLines && !f.m.describes()) {
		f.sought = true
		f.debug = f.openDebugFile()
	}
}

// loadSymbols reads the symbol tables, the most complete first. Each of them holds everything that
// the later ones do, except that .gnu_debugdata leaves out what .dynsym has.
func (f *File) loadSymbols() {
	if f.loaded {
		return
	}
	f.loaded = true
	full := f.take(f.m, elf.SHT_SYMTAB)
	f.findDebug(full)
	if !full && f.debug != nil {
		full = f.take(f.debug, elf.SHT_SYMTAB)
	}
	if !full {
		if mini := f.miniDebug(); mini != nil {
			f.take(mini, elf.SHT_SYMTAB)
		}
		f.take(f.m, elf.SHT_DYNSYM)
	}
	f.table.addPLT(f.m)
	f.table.finish()
}

func (f *File) take(m *image, typ elf.SectionType) bool {
	ok, err := f.table.add(m, typ)
	if err != nil {
		f.notes = append(f.notes, err)
	}
	return ok
}

// Close closes the files.
func (f *File) Close() error {
	var errs []error
	if f.pe != nil && f.pe.close != nil {
		errs = append(errs, f.pe.close.Close())
	}
	for _, c := range f.close {
		errs = append(errs, c.Close())
	}
	f.close = nil
	return errors.Join(errs...)
}

// Symbols returns the number of code symbols that were found.
func (f *File) Symbols() int {
	if f.pe != nil {
		return len(f.pe.table.syms)
	}
	f.loadSymbols()
	return len(f.table.syms)
}

// Notes returns why parts of the file could not be used.
func (f *File) Notes() []error {
	if f.pe != nil {
		return f.pe.notes
	}
	return f.notes
}

// BuildID returns the file's build-id in hex, "" if it has none.
func (f *File) BuildID() string {
	if f.pe != nil {
		return f.pe.id()
	}
	return f.m.BuildID()
}

// BuildID reads only the build-id of an ELF file of size bytes, in hex; "" if it has none.
func BuildID(r io.ReaderAt, size int64) (string, error) {
	m, err := objfile.OpenSize(r, size)
	if err != nil {
		return "", err
	}
	return m.BuildID(), nil
}

// NoteBuildID returns the build-id in a list of notes, as the kernel shows its own in
// /sys/kernel/notes; "" if there is none.
func NoteBuildID(notes []byte) string { return objfile.NoteBuildID(notes, binary.LittleEndian) }

// Symbol names the function that holds addr, an address of the file. It returns false if there is
// no code there.
func (f *File) Symbol(addr uint64) (Symbol, bool) {
	if f.pe != nil {
		return f.pe.symbol(addr)
	}
	code, ok := f.m.code(addr)
	if !ok {
		return Symbol{}, false
	}
	// Go's own names first: the file's symbols carry suffixes from the linker (.abi0).
	if name, start, ok := f.goTable.function(addr); ok {
		return named(name, start), true
	}
	f.loadSymbols()
	if i := f.table.find(addr); i >= 0 && f.table.syms[i].addr >= code.lo {
		if s, ok := f.named[i]; ok {
			return s, true
		}
		// A symbol without a size ends where the next function begins.
		if e := &f.table.syms[i]; e.size != 0 || !f.endsBefore(e.addr, addr) {
			if raw := f.table.nameOf(i, addr); raw != "" {
				s := named(raw, e.addr)
				if e.size != 0 {
					f.named[i] = s
				}
				return s, true
			}
		}
	}
	s := Symbol{Start: addr, NoName: true}
	if b, ok := f.functionBounds(addr); ok {
		s.Start = b.lo
	}
	return s, true
}

func named(raw string, start uint64) Symbol {
	s := Symbol{Name: Demangle(raw), Start: start}
	if s.Name != raw {
		s.Raw = Printable(raw)
	}
	return s
}

// endsBefore reports whether the unwind tables put another function between start
// and addr.
func (f *File) endsBefore(start, addr uint64) bool {
	b, ok := f.functionBounds(addr)
	return ok && b.lo > start
}

func (f *File) functionBounds(addr uint64) (span, bool) {
	if !f.haveBounds {
		f.haveBounds = true
		f.bounds = openBounds(f.m)
	}
	return f.bounds.find(addr)
}
