package native

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/candid-profiler/candid/internal/fileid"
	"github.com/candid-profiler/candid/internal/objfile"
	"github.com/candid-profiler/candid/internal/pe"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// Module is a file's code at one place in one process, or executable memory without a file. Modules
// are kept after they have been unmapped, so that frames found before can be named.
type Module struct {
	// Mapping is the executable mapping through which it was first seen.
	Mapping target.Mapping
	// Bias is the process's address minus the file's (modulo 2^64).
	Bias uint64
	// File is nil for memory without a file, and for files that could not be opened.
	File *File
	// Image is the module's content if it has none in a file: the vdso's.
	Image []byte
	// Err is the reason why File is nil where one was expected.
	Err error

	process *target.Process
	loaded  bool // File, Bias, Image and Err have been looked for
}

// Name is the module's short name: libjvm.so, [vdso], or "[anon]".
func (m *Module) Name() string {
	if m.Mapping.Path == "" {
		return "[anon]"
	}
	return target.BaseName(m.Mapping.Path)
}

// kind returns the kind of code that the module holds.
func (m *Module) kind() walk.Kind {
	if m.File == nil && m.Mapping.Path != vdso && !m.Mapping.FileBacked() {
		return walk.KindUnknown
	}
	return walk.KindNative
}

// proof returns the provenance of a caller that was found by reading the module's code. Compilers
// of programs and libraries keep to what codeReader assumes. Code in anonymous memory, in a file
// that is not a program, or written over a program's, is a runtime's: it may use the stack in other
// ways. A path that ends in a jump may lead on in the same function.
func (m *Module) proof(mem walk.Memory, at uint64, weak bool) walk.Provenance {
	if weak || m.Mapping.Path != vdso && (m.File == nil || m.File.Progs == nil && m.File.image == nil || !m.asInFile(mem, at)) {
		return walk.Heuristic
	}
	return walk.Derived
}

// asInFile reports whether the code around an address is the same as in the module's file.
func (m *Module) asInFile(mem walk.Memory, at uint64) bool {
	// Most functions that no table describes are shorter.
	const before, behind = 64, 192
	if m.File.image != nil {
		return m.File.image.holds(mem, m.Bias, at, before, behind)
	}
	i := slices.IndexFunc(m.File.Progs, func(p objfile.Segment) bool {
		return p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && at-m.Bias-p.Vaddr < p.Filesz
	})
	if i < 0 || m.File.file == nil {
		return false
	}
	p := &m.File.Progs[i]
	off := at - m.Bias - p.Vaddr
	from, to := off-min(off, before), min(off+behind, p.Filesz)
	var now, file [before + behind]byte
	n := to - from
	if !mem.Bytes(p.Vaddr+m.Bias+from, now[:n]) {
		return false
	}
	_, err := m.File.file.ReadAt(file[:n], int64(p.Off+from))
	return err == nil && now == file
}

// PE returns the module's PE image, nil if it is not one. Addresses of the module are then
// relative to the image's start.
func (m *Module) PE() *pe.Image {
	if m.File == nil || m.File.image == nil {
		return nil
	}
	return m.File.image.Image
}

// Open opens the module's file, which the caller closes. It works for removed files and files in
// other mount namespaces as long as the process lives and has the file mapped; after that as long
// as the path leads to the same file, or candid has it open.
func (m *Module) Open() (target.File, error) {
	f, err := m.process.OpenFile(m.Mapping)
	if err != nil && m.File != nil && m.File.file != nil {
		if again, ok := reopen(m.File.file); ok {
			return again, nil
		}
	}
	return f, err
}

// key identifies the mappings that belong to the same Module: those of the same file with the same
// difference between address and offset.
type key struct {
	file  fileid.Named
	delta uint64
}

func keyOf(m target.Mapping) key {
	k := key{m.File(), m.Start - m.Offset}
	if m.Inode == 0 {
		k.delta = 0 // anonymous memory: one Module for all of it
		if m.Path == vdso {
			k.delta = m.Start
		}
	}
	return k
}

const vdso = "[vdso]"

// area is one executable mapping.
type area struct {
	start, end uint64
	module     uint32
	constant   bool // nobody writes there: it holds the same as the file
}

// maxModules bounds what is remembered of a process that keeps mapping and unmapping code.
const maxModules = 1 << 16

// Refresh reads the process's mappings again. It is called when code may have been mapped or
// unmapped; unknown addresses cause it too, but not often.
func (s *Stepper) Refresh() error {
	maps, err := s.process.Mappings()
	if err != nil {
		return fmt.Errorf("read the mappings of %v: %w", s.process, err)
	}
	s.take(maps)
	return nil
}

// Map records a mapping that was just made, over whatever was there.
func (s *Stepper) Map(m target.Mapping) {
	if m.Perm&target.PermExec == 0 || m.End <= m.Start {
		return
	}
	a, ok := s.areaOf(m)
	if !ok {
		return
	}
	areas := make([]area, 0, len(s.areas)+2)
	for i, old := range s.areas {
		if old.start < a.start {
			cut := old
			cut.end = min(cut.end, a.start)
			areas = append(areas, cut)
		}
		if old.end > a.end {
			cut := old
			cut.start = max(cut.start, a.end)
			s.use(append(append(areas, a, cut), s.areas[i+1:]...))
			return
		}
	}
	s.use(append(areas, a))
}

// take replaces the known mappings by those of the process.
func (s *Stepper) take(maps []target.Mapping) {
	areas := make([]area, 0, len(s.areas)+8)
	for _, m := range s.withImages(maps) {
		if m.Perm&target.PermExec == 0 {
			continue
		}
		if a, ok := s.areaOf(m); ok {
			areas = append(areas, a)
		}
	}
	s.use(areas)
}

func (s *Stepper) use(areas []area) {
	if slices.Equal(areas, s.areas) {
		return
	}
	s.generation++
	if !keeps(areas, s.areas) {
		s.changed = s.generation
	}
	s.areas = areas
	s.last = area{}
}

// keeps reports whether all of old is in areas too, as the same code. Most changes are that a runtime
// maps more memory for code that it generates.
func keeps(areas, old []area) bool {
	i := 0
	for _, o := range old {
		for at := o.start; at < o.end; at = areas[i].end {
			for i < len(areas) && areas[i].end <= at {
				i++
			}
			if i == len(areas) || areas[i].start > at || areas[i].module != o.module || areas[i].constant != o.constant {
				return false
			}
		}
	}
	return true
}

// areaOf finds or makes the Module of a mapping; false if there are too many Modules.
func (s *Stepper) areaOf(m target.Mapping) (area, bool) {
	id, ok := s.byKey[keyOf(m)]
	if !ok {
		if len(s.modules) >= maxModules {
			return area{}, false
		}
		id = uint32(len(s.modules))
		s.modules = append(s.modules, &Module{Mapping: m, process: s.process})
		s.byKey[keyOf(m)] = id
	}
	return area{m.Start, m.End, id, m.Perm&target.PermWrite == 0}, true
}

// fromFile reads code of the process from the file that it was mapped from.
func (s *Stepper) fromFile(p []byte, addr uint64) bool {
	i := sort.Search(len(s.areas), func(i int) bool { return s.areas[i].end > addr })
	if i == len(s.areas) || s.areas[i].start > addr || s.areas[i].end-addr < uint64(len(p)) || !s.areas[i].constant {
		return false
	}
	m := s.modules[s.areas[i].module]
	if !m.loaded {
		s.load(m)
	}
	if off := addr - m.Mapping.Start; m.Image != nil {
		return off < uint64(len(m.Image)) && copy(p, m.Image[off:]) == len(p)
	}
	if m.File == nil || m.File.file == nil {
		return false
	}
	off := int64(addr - m.Mapping.Start + m.Mapping.Offset)
	n, err := m.File.file.ReadAt(p, off)
	if err != nil && (err != io.EOF || n == 0 || len(p)-n >= page) {
		return false
	}
	clear(p[n:]) // after the end of the file the last page is zero
	return true
}

// isELF reports whether a file begins as ELF files do. A runtime's memfd holds code from its first
// byte on, or nothing.
func isELF(f io.ReaderAt) bool {
	var magic [len(elf.ELFMAG)]byte
	_, err := f.ReadAt(magic[:], 0)
	return err == nil && string(magic[:]) == elf.ELFMAG
}

// page is the smallest unit in which memory is mapped.
const page = 4096

// load finds a module's file and its tables.
func (s *Stepper) load(m *Module) {
	m.loaded = true
	switch {
	case m.Mapping.Path == vdso:
		const maxImage = 1 << 20
		if m.Mapping.End-m.Mapping.Start > maxImage {
			return
		}
		image := make([]byte, m.Mapping.End-m.Mapping.Start)
		if m.Err = s.process.Memory().ReadAt(image, m.Mapping.Start); m.Err != nil {
			if image, m.Err = target.OwnVDSO(); m.Err != nil {
				return
			}
			if uint64(len(image)) != m.Mapping.End-m.Mapping.Start {
				m.Err = fmt.Errorf("the vdso of %v is not ours: %w", s.process, target.ErrUnsupported)
				return
			}
		}
		m.Image = image
		m.File = openTables(bytes.NewReader(image))
	case m.Mapping.FileBacked():
		f, err := s.process.OpenFile(m.Mapping)
		if err != nil {
			// Addresses based on the file's offsets are at least the same each time.
			m.Bias = m.Mapping.Start - m.Mapping.Offset
			m.Err = err
			return
		}
		if m.File, m.Err = s.files.of(f); m.Err != nil {
			return
		}
	case m.Mapping.Memfd():
		// Programs are run from a memfd to leave no file behind.
		f, err := s.process.OpenFile(m.Mapping)
		if err != nil {
			return
		}
		if !isELF(f) {
			f.Close()
			return
		}
		if m.File, err = s.files.of(f); err != nil {
			m.File = nil
			return
		}
	default:
		return
	}
	if m.File.image != nil {
		rva, ok := m.File.image.AtOffset(m.Mapping.Offset)
		if !ok {
			m.Bias = m.Mapping.Start - m.Mapping.Offset
			m.File = &File{ID: m.File.ID, file: m.File.file}
			return
		}
		m.Bias = m.Mapping.Start - uint64(rva)
		return
	}
	seen := target.Module{Path: m.Mapping.Path, Start: m.Mapping.Start, Mappings: []target.Mapping{m.Mapping}}
	bias, ok := seen.Bias(m.File.Progs)
	if !ok {
		m.Bias = m.Mapping.Start - m.Mapping.Offset
		m.File = &File{ID: m.File.ID, file: m.File.file} // its tables' addresses mean nothing here
		return
	}
	m.Bias = bias
}

// find returns the executable mapping that pc lies in.
func (s *Stepper) find(pc uint64) (area, bool) {
	if pc-s.last.start < s.last.end-s.last.start {
		return s.last, true
	}
	i := sort.Search(len(s.areas), func(i int) bool { return s.areas[i].end > pc })
	if i < len(s.areas) && s.areas[i].start <= pc {
		s.last = s.areas[i]
		return s.last, true
	}
	return area{}, false
}

// Locate returns the module of a frame that this Stepper found, and the frame's PC as an address of
// the module's file. It does not allocate. For a frame that is a return address, the call lies just
// before that. Modules that have been unmapped since are still found.
func (s *Stepper) Locate(f walk.Frame) (*Module, uint64, bool) {
	id := f.Ref >> 32
	if id >= uint64(len(s.modules)) {
		return nil, 0, false
	}
	m := s.modules[id]
	return m, f.PC - m.Bias, true
}

// Modules returns the modules seen so far, including those that have been unmapped since. A Frame's
// Ref has the index in its upper half.
func (s *Stepper) Modules() []*Module { return s.modules }

// Mapped reports whether is holds for any of the modules that are mapped, as far as is known now.
func (s *Stepper) Mapped(is func(*Module) bool) bool {
	return slices.ContainsFunc(s.areas, func(a area) bool { return is(s.modules[a.module]) })
}
