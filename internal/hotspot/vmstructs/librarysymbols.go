package vmstructs

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/objfile"
	"github.com/candid-profiler/candid/internal/target"
)

const (
	// maxSymbolBytes bounds a symbol table, and its names, in bytes each; libjvm's have 1.6 and 4
	// MB.
	maxSymbolBytes = 256 << 20
	// SymbolSize is the size of an Elf64_Sym: name, info, other, section, value, size.
	SymbolSize = 24
)

// LibrarySymbols returns the symbol table of the VM's library in its raw form, with its names and
// what to add to its addresses. Distributions of JDK 9 and later mostly leave it in; it is an error
// if it was stripped.
func (vm *VM) LibrarySymbols() (syms, strs []byte, bias uint64, err error) {
	fail := func(err error) ([]byte, []byte, uint64, error) {
		return nil, nil, 0, fmt.Errorf("read the symbols of the VM's library %s: %w", vm.File, err)
	}
	if vm.Process == nil {
		return fail(errors.New("there is only an image of memory"))
	}
	maps, err := vm.Process.Mappings()
	if err != nil {
		return fail(err)
	}
	if strings.HasSuffix(vm.File, ".dll") {
		return fail(errors.New("Windows keeps them in a PDB, which is not there"))
	}
	i := slices.IndexFunc(maps, func(m target.Mapping) bool { return m.Path == vm.File && m.FileBacked() })
	if i < 0 {
		return fail(errors.New("it is not mapped any more"))
	}
	f, err := vm.Process.OpenFile(maps[i])
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	e, err := objfile.Open(f)
	if err != nil {
		return fail(err)
	}
	bias, ok := loadBias(e, maps[i], maps)
	table := e.SectionOf(elf.SHT_SYMTAB)
	switch {
	case !ok:
		return fail(errors.New("no mapping matches its segments"))
	case table == nil:
		return fail(errors.New("it has been stripped"))
	case !e.Wide() || e.Order != binary.LittleEndian || e.Linked(table) == nil:
		return fail(errors.New("they are of no known form"))
	}
	if syms, err = e.Raw(table, maxSymbolBytes); err != nil {
		return fail(err)
	}
	if strs, err = e.Raw(e.Linked(table), maxSymbolBytes); err != nil {
		return fail(err)
	}
	return syms, strs, bias, nil
}
