package vmstructs

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"

	"github.com/candid-profiler/candid/internal/target"
)

// maxModules bounds how many mapped files are looked at for the VM.
const maxModules = 512

// maxStrings bounds the dynamic string table that is searched for the VM's symbols, in bytes.
// libjvm's has about 100 KiB.
const maxStrings = 64 << 20

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
	seen := make(map[[2]uint64]bool)
	for _, m := range maps {
		id := [2]uint64{m.Dev, m.Inode}
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
	e, err := elf.NewFile(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %v: %w", m.Path, err, ErrNotHotSpot)
	}
	defer e.Close()
	if !exportsTables(e) {
		return nil, fmt.Errorf("%s: %w", m.Path, errNoTables)
	}
	bias, ok := loadBias(e, m, maps)
	if !ok {
		return nil, fmt.Errorf("%s: no mapping matches its segments: %w", m.Path, ErrNotHotSpot)
	}
	syms, err := e.DynamicSymbols()
	if err != nil {
		return nil, fmt.Errorf("%s: %v: %w", m.Path, err, ErrNotHotSpot)
	}
	out := make(map[string]uint64, len(symbolNames))
	for _, s := range syms {
		if strings.HasPrefix(s.Name, "gHotSpotVM") && s.Section != elf.SHN_UNDEF {
			name, _, _ := strings.Cut(s.Name, "@")
			out[name] = s.Value + bias
		}
	}
	if out[symbolNames[0]] == 0 {
		return nil, fmt.Errorf("%s exports no VM tables: %w", m.Path, ErrNotHotSpot)
	}
	return out, nil
}

// exportsTables looks for the name in the dynamic string table, which is much faster than decoding
// all symbols.
func exportsTables(e *elf.File) bool {
	s := e.Section(".dynstr")
	if s == nil || s.Type == elf.SHT_NOBITS || s.Size > maxStrings {
		return false
	}
	want, buf, keep := []byte(symbolNames[0]), make([]byte, 64<<10), 0
	r := s.Open()
	for {
		n, err := io.ReadFull(r, buf[keep:])
		if bytes.Contains(buf[:keep+n], want) {
			return true
		}
		if err != nil {
			return false
		}
		keep = copy(buf, buf[len(buf)-len(want):])
	}
}

// loadBias returns what to add to the file's addresses, from any mapping of the file that starts
// where a segment does.
func loadBias(e *elf.File, file target.Mapping, maps []target.Mapping) (uint64, bool) {
	const page = 4096 // segments are aligned to at least this
	for _, m := range maps {
		if m.Dev != file.Dev || m.Inode != file.Inode {
			continue
		}
		for _, p := range e.Progs {
			if p.Type == elf.PT_LOAD && p.Off&^(page-1) == m.Offset {
				return m.Start - p.Vaddr&^(page-1), true
			}
		}
	}
	return 0, false
}
