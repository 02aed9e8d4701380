package native

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"slices"
	"sort"

	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// Module is a file's code at one place in one process, or executable memory that
// no file is behind. Modules are kept after they have been unmapped, so that
// frames found before can be named.
type Module struct {
	// Mapping is the executable mapping through which it was first seen.
	Mapping target.Mapping
	// Bias is the process's address minus the file's (modulo 2^64).
	Bias uint64
	// File is nil for memory that no file is behind, and for files that could
	// not be opened.
	File *File
	// Image is the module's content where it is not a file: the vdso's.
	Image []byte
	// Err says why File is nil where one was expected.
	Err error

	process *target.Process
	loaded  bool // File, Bias, Image and Err have been looked for
}

// Name is the module's short name: libjvm.so, [vdso], or "[anon]".
func (m *Module) Name() string {
	if m.Mapping.Path == "" {
		return "[anon]"
	}
	return path.Base(m.Mapping.Path)
}

// Open opens the module's file, which the caller closes. It works for removed
// files and files in other mount namespaces for as long as the process lives
// and has the file mapped; afterwards only while the path leads to the same file.
func (m *Module) Open() (*os.File, error) { return m.process.OpenFile(m.Mapping) }

// key says which mappings belong to the same Module: those of the same file
// whose distance between address and offset is the same.
type key struct {
	dev, inode uint64
	path       string
	delta      uint64
}

func keyOf(m target.Mapping) key {
	k := key{m.Dev, m.Inode, m.Path, m.Start - m.Offset}
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
}

// maxModules bounds what is remembered of a process that maps and unmaps code
// without end.
const maxModules = 1 << 16

// Refresh reads the process's mappings anew. It is called when code may have
// been mapped or unmapped; unknown addresses cause it too, but not often.
func (s *Stepper) Refresh() error {
	maps, err := s.process.Mappings()
	if err != nil {
		return fmt.Errorf("read the mappings of %v: %w", s.process, err)
	}
	areas := make([]area, 0, len(s.areas)+8)
	for _, m := range maps {
		if m.Perm&target.PermExec == 0 {
			continue
		}
		id, ok := s.byKey[keyOf(m)]
		if !ok {
			if len(s.modules) >= maxModules {
				continue
			}
			id = uint32(len(s.modules))
			s.modules = append(s.modules, &Module{Mapping: m, process: s.process})
			s.byKey[keyOf(m)] = id
		}
		areas = append(areas, area{m.Start, m.End, id})
	}
	if slices.Equal(areas, s.areas) {
		return nil
	}
	s.areas = areas
	s.last = area{}
	s.generation++
	return nil
}

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
			return
		}
		m.Image = image
		m.File = openTables(bytes.NewReader(image))
	case m.Mapping.FileBacked():
		f, err := s.process.OpenFile(m.Mapping)
		if err != nil {
			// Addresses by the file's offsets are at least the same each time.
			m.Bias = m.Mapping.Start - m.Mapping.Offset
			m.Err = err
			return
		}
		if m.File, m.Err = s.files.of(f); m.Err != nil {
			return
		}
	default:
		return
	}
	seen := target.Module{Path: m.Mapping.Path, Start: m.Mapping.Start, Mappings: []target.Mapping{m.Mapping}}
	bias, ok := seen.Bias(m.File.Progs)
	if !ok {
		m.Bias = m.Mapping.Start - m.Mapping.Offset
		m.File = &File{ID: m.File.ID} // its tables' addresses mean nothing here
		return
	}
	m.Bias = bias
}

// find gives the executable mapping that pc lies in.
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

// Locate gives the module of a frame that this Stepper found, and the frame's PC
// as the module's file numbers addresses. It does not allocate. For a frame that
// is a return address, the call lies just before that. Modules that have been
// unmapped since are still found.
func (s *Stepper) Locate(f walk.Frame) (*Module, uint64, bool) {
	id := f.Ref >> 32
	if id >= uint64(len(s.modules)) {
		return nil, 0, false
	}
	m := s.modules[id]
	return m, f.PC - m.Bias, true
}

// Modules are the modules seen so far, those that have been unmapped since
// included. A Frame's Ref has the index in its upper half.
func (s *Stepper) Modules() []*Module { return s.modules }
