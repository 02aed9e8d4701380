package pgo

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"

	"github.com/candid-profiler/candid/internal/dwarfline"
	"github.com/candid-profiler/candid/internal/safeopen"
	"github.com/candid-profiler/candid/internal/symbol"
)

// Machine is a processor architecture.
type Machine uint8

// The architectures whose instructions are read.
const (
	Other Machine = iota
	AMD64
	ARM64
)

// ErrNotThis means that a file is not the one that was recorded.
var ErrNotThis = errors.New("not the file that was recorded")

// Binary is the file of a program or library. It is not safe for concurrent use.
type Binary struct {
	Path    string
	Name    string // as in recordings
	BuildID string // "" if it has none
	Machine Machine

	file      *symbol.File
	functions []symbol.Function // by address
	places    []dwarfline.Place
}

// ErrNotELF means that a program is not an ELF file, the only kind that profiles are made for.
var ErrNotELF = errors.New("an image of Windows; profiles are made for ELF files only")

// OpenBinary opens a file; the caller closes it. The error wraps ErrNotELF if it is an image of Windows.
func OpenBinary(path string) (*Binary, error) {
	f, err := safeopen.File(path)
	if err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	s, err := symbol.Open(f, symbol.Options{
		Path: path, OpenDebug: func(p string) (*os.File, error) { return safeopen.File(p) }, Discriminators: true,
	})
	if err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	if !s.IsELF() {
		_ = s.Close()
		return nil, fmt.Errorf("read the program %s: %w", path, ErrNotELF)
	}
	b := &Binary{Path: path, Name: filepath.Base(path), BuildID: s.BuildID(), file: s}
	switch s.Machine() {
	case elf.EM_X86_64:
		b.Machine = AMD64
	case elf.EM_AARCH64:
		b.Machine = ARM64
	}
	b.functions = s.Functions()
	return b, nil
}

// Close closes the file.
func (b *Binary) Close() error { return b.file.Close() }

// HasLines reports whether the file has line information of its own, or a debug file.
func (b *Binary) HasLines() bool { return b.file.HasLines() }

// function returns the function that holds an address; nil if no symbol says so.
func (b *Binary) function(addr uint64) *symbol.Function {
	i := sort.Search(len(b.functions), func(i int) bool { return b.functions[i].Start > addr }) - 1
	if i < 0 || addr >= b.functions[i].End {
		return nil
	}
	return &b.functions[i]
}

// code returns a function's instructions.
func (b *Binary) code(f *symbol.Function) []inst {
	n := min(f.End-f.Start, maxFunctionCode)
	buf := make([]byte, n)
	if !b.file.ReadCode(f.Start, buf) {
		return nil
	}
	return decode(b.Machine, buf, f.Start, make([]inst, 0, n/4))
}

// Check reports whether the file is the one that a recording has as a module: by its build id if
// both have one, else by the functions' names. An error that wraps ErrNotThis says what differs.
// byName says that there was no build id to compare.
func (b *Binary) Check(m *Module) (byName bool, err error) {
	if len(m.IDs) > 0 {
		if _, ok := m.IDs[b.BuildID]; ok && b.BuildID != "" {
			return false, nil
		}
		for id := range m.IDs {
			if id != "" {
				return false, fmt.Errorf("%s has the build id %s and the recording is of %s: %w", b.Path, or(b.BuildID, "(none)"), id, ErrNotThis)
			}
		}
	}
	same, all := 0, 0
	for addr, name := range m.Named {
		s, ok := b.file.Symbol(addr)
		if !ok {
			all++
			continue
		}
		if s.NoName {
			continue
		}
		all++
		if s.Raw == name || s.Name == name {
			same++
		}
	}
	const enough = 0.8
	if all > 0 && float64(same) < enough*float64(all) {
		return true, fmt.Errorf("%s: of %d addresses in the recording only %d lie in the function of that name: %w", b.Path, all, same, ErrNotThis)
	}
	return true, nil
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
