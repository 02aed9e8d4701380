package vmstructs

import (
	"debug/elf"
	"errors"
	"fmt"
	"sort"

	"github.com/candid-profiler/candid/internal/fileid"
	"github.com/candid-profiler/candid/internal/objfile"
	"github.com/candid-profiler/candid/internal/target"
)

// maxModules bounds how many mapped files are looked at for the VM.
const maxModules = 512

// errNoTables is returned for files that hold no VM, whichever process maps them.
var errNoTables = fmt.Errorf("no VM tables are exported: %w", ErrNotHotSpot)

// Find looks for the file among p's mappings that exports the VM's tables and returns the
// addresses of its symbols in the process, the file and the mappings. known may be nil.
func Find(p *target.Process, known *Finder) (symbols map[string]uint64, file string, maps []target.Mapping, err error) {
	if maps, err = p.Mappings(); err != nil {
		return nil, "", nil, err
	}
	// The first mapping of each file, the likely ones first: most processes are not Java, and
	// opening every library that they have mapped would be slow.
	var files []target.Mapping
	seen := make(map[fileid.ID]bool)
	for _, m := range maps {
		id := m.ID()
		if !m.FileBacked() || seen[id] {
			continue
		}
		seen[id] = true
		if known.Without(m) {
			continue
		}
		files = append(files, m)
	}
	sort.SliceStable(files, func(i, j int) bool { return likelyVM(files[i]) && !likelyVM(files[j]) })
	if len(files) > maxModules {
		files = files[:maxModules]
	}
	var denied error
	for _, m := range files {
		symbols, err := vmSymbols(p, m, maps)
		switch {
		case err == nil:
			return symbols, m.Path, maps, nil
		case errors.Is(err, errNoTables):
			known.note(m)
		case likelyVM(m) && !errors.Is(err, ErrNotHotSpot):
			denied = err
		}
	}
	if denied != nil {
		return nil, "", nil, fmt.Errorf("look for the Java VM's tables: %w", denied)
	}
	return nil, "", nil, fmt.Errorf("look for gHotSpotVMStructs in %d mapped files: %w", len(seen), ErrNotHotSpot)
}

// vmSymbols returns the addresses of the VM's tables if the file of mapping m
// exports them, else an error wrapping ErrNotHotSpot.
func vmSymbols(p *target.Process, m target.Mapping, maps []target.Mapping) (map[string]uint64, error) {
	f, err := p.OpenFile(m)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var magic [4]byte
	if _, err := f.ReadAt(magic[:], 0); err != nil || string(magic[:2]) != "MZ" && string(magic[:]) != elf.ELFMAG {
		return nil, fmt.Errorf("%s is no library: %w", m.Path, errNoTables)
	}
	if string(magic[:2]) == "MZ" {
		return peSymbols(p.Memory(), m.Start)
	}
	e, err := objfile.Open(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %v: %w", m.Path, err, ErrNotHotSpot)
	}
	exports := e.Exports()
	first, ok := exports.Lookup(symbolNames[0])
	if !ok || first == 0 {
		return nil, fmt.Errorf("%s: %w", m.Path, errNoTables)
	}
	bias, ok := loadBias(e, m, maps)
	if !ok {
		return nil, fmt.Errorf("%s: no mapping matches its segments: %w", m.Path, ErrNotHotSpot)
	}
	out := make(map[string]uint64, len(symbolNames))
	for _, name := range symbolNames {
		if at, ok := exports.Lookup(name); ok {
			out[name] = at + bias
		}
	}
	return out, nil
}

// loadBias returns what to add to the addresses of the file that a mapping is of, one of maps.
func loadBias(e *objfile.File, file target.Mapping, maps []target.Mapping) (uint64, bool) {
	for _, m := range target.ModulesOf(maps) {
		if m.ID() == file.ID() {
			if bias, ok := m.Bias(e.Segments); ok {
				return bias, true
			}
		}
	}
	// Its code may have been copied to huge pages, which are of no file.
	const page = 4096 // segments are aligned to at least this
	for _, m := range maps {
		if m.ID() != file.ID() {
			continue
		}
		for _, p := range e.Segments {
			if p.Type == elf.PT_LOAD && p.Off&^(page-1) == m.Offset {
				return m.Start - p.Vaddr&^(page-1), true
			}
		}
	}
	return 0, false
}
