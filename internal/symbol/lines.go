package symbol

import (
	"debug/elf"
	"fmt"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/dwarfline"
)

const (
	// maxDWARF is how many bytes of debug sections are read of a file; one with more is named by its
	// symbols only.
	maxDWARF = 128 << 20
	// linesFixed and linesShare say how much memory the list of a file's compilation units takes: some
	// bytes for each file, and that part of its debug sections. In C and C++ it is a fiftieth and less.
	linesFixed, linesShare = 4 << 10, 16
)

// Lines appends the source positions of addr to out, innermost first: the inlined functions and
// last the one that was compiled. It appends nothing if the file has no line information for addr.
func (f *File) Lines(addr uint64, out []dwarfline.Place) []dwarfline.Place {
	if f.opt.NoLines {
		return out
	}
	if f.pe != nil {
		return f.pe.places(addr, out)
	}
	// Go's own tables say the same as its DWARF, and need not be read as a whole.
	if got := f.goTable.places(addr, out); len(got) > len(out) {
		return got
	}
	if f.readLines(); f.lines != nil {
		return lookup(f.lines, f.opt.Budget, addr, out)
	}
	if file, line, ok := f.goTable.line(addr); ok {
		return append(out, dwarfline.Place{File: file, Line: line})
	}
	return out
}

// lookup looks an address up, within the budget.
func lookup(d *dwarfline.Data, b *Budget, addr uint64, out []dwarfline.Place) []dwarfline.Place {
	turn := b.turn()
	defer turn.done()
	d.Stop = turn.stop()
	return d.Lookup(addr, out)
}

// readLines reads the line information, once.
func (f *File) readLines() {
	if f.pe != nil {
		f.pe.readLines()
	} else if !f.haveLines && !f.opt.NoLines {
		f.haveLines = true
		f.lines = f.openLines()
	}
}

// lineData returns the line information that has been read, nil if none has.
func (f *File) lineData() *dwarfline.Data {
	if f.pe != nil {
		return f.pe.lines
	}
	return f.lines
}

// dropLines frees the line information. It is not read again.
func (f *File) dropLines() {
	if f.haveLines, f.lines = true, nil; f.pe != nil {
		f.pe.haveLines, f.pe.lines = true, nil
	}
}

// hasLines reports whether there is line information to read.
func (f *File) hasLines() bool {
	if f.pe != nil {
		return f.pe.linesMemory() > 0
	}
	return (f.m.describes() || f.debug.describes()) && (f.goTable == nil || f.goTable.inlining == nil || !f.goTable.covers(f.m))
}

// describes reports whether the image has debugging information.
func (m *image) describes() bool {
	return m != nil && (m.Section(".debug_info") != nil || m.Section(".zdebug_info") != nil)
}

func (f *File) openLines() *dwarfline.Data {
	turn := f.opt.Budget.turn()
	defer turn.done()
	for _, m := range []*image{f.m, f.debug} {
		if !m.describes() {
			continue
		}
		left, stop := uint64(maxDWARF), turn.stop()
		began, unpacked := time.Now(), false
		d, err := dwarfline.Open(m.Order, func(name string) (dwarfline.Section, error) {
			// Sections that are not compressed stay in the file.
			r, err := m.StoredDebugSection(name, left)
			if err != nil {
				return dwarfline.Section{}, err
			}
			if r != nil {
				left -= uint64(r.Size())
				return dwarfline.Stored(r), nil
			}
			b, err := m.DebugSection(name, left, stop)
			left -= min(left, uint64(len(b)))
			unpacked = unpacked || len(b) > 0
			return dwarfline.Bytes(b), err
		}, stop)
		if err != nil {
			f.notes = append(f.notes, fmt.Errorf("line information: %w", err))
			continue
		}
		if unpacked {
			f.unpacking = max(time.Since(began), 1)
		}
		d.Discriminators = f.opt.Discriminators
		return d
	}
	return nil
}

// linesMemory returns about how many bytes of memory the line information takes.
func (f *File) linesMemory() (n uint64) {
	if f.pe != nil {
		return f.pe.linesMemory()
	}
	for _, m := range []*image{f.m, f.debug} {
		if !m.describes() {
			continue
		}
		n = linesFixed
		for i := range m.Sections {
			switch s := &m.Sections[i]; {
			case s.Type == elf.SHT_NOBITS || !strings.HasPrefix(s.Name, ".debug_") && !strings.HasPrefix(s.Name, ".zdebug_"):
			case s.Compressed():
				size := min(m.UnpackedSize(s), maxDWARF)
				n += size + size/linesShare
			default:
				n += min(s.Size, maxDWARF) / linesShare
			}
		}
		break // the first image that has any is used
	}
	return n
}

const (
	// restAfter is how long no new address of a file must have been looked up for it to keep only
	// what the next one cannot do without.
	restAfter = 10 * time.Second
	// unpackShare bounds what unpacking costs if debug information is freed and needed again all the
	// time: it is kept for as many times as long as unpacking it took.
	unpackShare = 300
)

// rest frees what looking up source lines has left in memory, if nothing was looked up for so long.
func (f *File) rest(idle time.Duration) {
	if idle < restAfter {
		return
	}
	if f.pe != nil && f.pe.pdb != nil {
		f.pe.pdb.Forget()
	}
	d := f.lineData()
	if d == nil {
		return
	}
	if d.Forget(); idle >= unpackShare*f.unpacking {
		f.doze()
	}
}

// doze frees debug information that was unpacked, and reports whether there was any. A file that dozes
// is named without source lines until it is read again.
func (f *File) doze() bool {
	if f.unpacking == 0 || f.lines == nil {
		return false
	}
	f.lines, f.dozing = nil, true
	return true
}

// wake makes readLines read the debug information again.
func (f *File) wake() { f.dozing, f.haveLines = false, false }
