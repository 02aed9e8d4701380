package target

import (
	"debug/elf"
	"fmt"
	"slices"

	"github.com/candid-profiler/candid/internal/fileid"
	"github.com/candid-profiler/candid/internal/objfile"
)

// Module is a file whose code is mapped into a process: one loaded instance of
// it (a file that is loaded twice, at two biases, is two modules).
type Module struct {
	Path       string // as in Mapping
	Dev, Inode uint64
	Deleted    bool
	Start, End uint64    // from the first to the last of its mappings
	Mappings   []Mapping // of this instance, by address
}

// ID identifies the module's file among those that are mapped, as the kernel numbers them.
func (m Module) ID() fileid.ID { return fileid.ID{Dev: m.Dev, Inode: m.Inode} }

// File identifies the module's file and the path under which it is mapped.
func (m Module) File() fileid.Named { return fileid.Named{ID: m.ID(), Path: m.Path} }

// vdsoName is the kernel's name for the code that it maps into every process.
const vdsoName = "[vdso]"

// VDSO reports whether the module is the kernel's own code in user space; its image is read with
// Process.VDSO.
func (m Module) VDSO() bool { return m.Path == vdsoName }

// Executable returns the first executable mapping of the module.
func (m Module) Executable() (Mapping, bool) {
	for _, x := range m.Mappings {
		if x.Perm&PermExec != 0 {
			return x, true
		}
	}
	return Mapping{}, false
}

// Modules reads the process's mappings and groups those that belong to files
// with executable mappings, by address. The vdso is one of them.
func (p *Process) Modules() ([]Module, error) {
	maps, err := p.Mappings()
	if err != nil {
		return nil, err
	}
	return modulesOf(maps, p.elfInMemory), nil
}

// elfInMemory reports whether a mapping without a file, a memfd, begins with an ELF header:
// programs are run from there to leave no file behind, but compilers also put generated code there.
func (p *Process) elfInMemory(m Mapping) bool {
	var magic [len(elf.ELFMAG)]byte
	return m.Memfd() && m.Offset == 0 &&
		p.mem.ReadAt(magic[:], m.Start) == nil && string(magic[:]) == elf.ELFMAG
}

// ModulesOf groups mappings, which must be sorted by address, into modules. Mappings of files that
// have no path, such as a memfd, are left out.
func ModulesOf(maps []Mapping) []Module {
	return modulesOf(maps, func(Mapping) bool { return false })
}

// modulesOf is ModulesOf with a decision about mappings that are not of files: other is called with
// the first mapping of each.
func modulesOf(maps []Mapping, other func(Mapping) bool) []Module {
	var out []Module
	latest := make(map[fileid.Named]int) // the newest instance of each file
	refused := make(map[fileid.Named]bool)
	for _, m := range maps {
		if m.Path == vdsoName {
			out = append(out, Module{Path: m.Path, Start: m.Start, End: m.End, Mappings: []Mapping{m}})
			continue
		}
		if m.Inode == 0 {
			continue
		}
		key := m.File()
		i, seen := latest[key]
		if !seen && !m.FileBacked() {
			if refused[key] || !other(m) {
				refused[key] = true
				continue
			}
		}
		if !seen || newInstance(out[i].Mappings, m) {
			i = len(out)
			latest[key] = i
			out = append(out, Module{Path: m.Path, Dev: m.Dev, Inode: m.Inode, Deleted: m.Deleted, Start: m.Start})
		}
		out[i].Mappings = append(out[i].Mappings, m)
		out[i].End = m.End
	}
	return slices.DeleteFunc(out, func(m Module) bool {
		_, ok := m.Executable()
		return !ok
	})
}

// newInstance reports whether m starts another copy of the file that the mappings have are of. A
// loader maps a file's segments by ascending offset and in one reservation, so a lower offset is
// another copy, and so is the same part with the same permissions at another address.
func newInstance(have []Mapping, m Mapping) bool {
	last := have[len(have)-1]
	if m.Offset != last.Offset {
		return m.Offset < last.Offset
	}
	return m.Perm == last.Perm && m.Start != last.End
}

// Bias returns what has to be added to an address of the ELF file, whose program headers are progs,
// to get the process's address; it is subtracted (modulo 2^64) for the opposite direction. It
// returns false if no mapping shows a loadable segment.
func (m Module) Bias(progs []objfile.Segment) (uint64, bool) {
	if m.VDSO() {
		for _, s := range progs {
			if s.Type == elf.PT_LOAD && s.Off == 0 {
				return m.Start - s.Vaddr, true
			}
		}
		return 0, false
	}
	// Segments may share a page of the file, so that an offset alone can match two of them.
	// Executable mappings are first compared with executable segments, and a mapping that starts
	// where a segment does comes before one that lies within.
	for _, exact := range []bool{true, false} {
		for _, x := range m.Mappings {
			if x.Perm&PermExec == 0 {
				continue
			}
			for _, s := range progs {
				if s.Type != elf.PT_LOAD || s.Flags&elf.PF_X == 0 || s.Filesz == 0 {
					continue
				}
				first := s.Off &^ (segmentPage - 1)
				if exact && x.Offset != first || x.Offset < first || x.Offset-first >= s.Filesz+(s.Off-first) {
					continue
				}
				return x.Start - x.Offset + s.Off - s.Vaddr, true
			}
		}
	}
	return 0, false
}

// segmentPage is the smallest page size with which a loader maps.
const segmentPage = 4096

// maxVDSO bounds the image of the vdso: 8 KiB on x86-64, 4 KiB on arm64 today.
const maxVDSO = 1 << 20

// VDSO reads the image of the vdso, a whole ELF file, from the process's memory. The error wraps
// ErrUnsupported if the process has none.
func (p *Process) VDSO() ([]byte, Mapping, error) {
	maps, err := p.Mappings()
	if err != nil {
		return nil, Mapping{}, err
	}
	for _, m := range maps {
		if m.Path != vdsoName {
			continue
		}
		if m.End-m.Start > maxVDSO {
			return nil, m, fmt.Errorf("the vdso of process %d has %d bytes: %w", p.PID, m.End-m.Start, ErrFormat)
		}
		image := make([]byte, m.End-m.Start)
		if err := p.mem.ReadAt(image, m.Start); err != nil {
			return nil, m, fmt.Errorf("vdso of process %d: %w", p.PID, err)
		}
		return image, m, nil
	}
	return nil, Mapping{}, fmt.Errorf("process %d has no vdso: %w", p.PID, ErrUnsupported)
}
